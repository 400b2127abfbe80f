// Host time: recording a node, giving a chain up, finding a plan again, running a tiny plan.
#include <chrono>

#include "bench.h"
#include "vkml/api/transforms.h"

namespace vkml::bench {
namespace {

constexpr int kChain = 1000;  // below the bound at which unread chains run by themselves

Tensor record_chain(const Tensor& x, const Tensor& y) {
  Tensor result = x;
  for (int i = 0; i < kChain; ++i) result = result + y;
  return result;
}

void report_per_node(benchmark::State& state) {
  const auto flags = benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert;
  state.counters["s/node"] = benchmark::Counter(kChain, flags);
}

void record(benchmark::State& state, Device device) {
  const Tensor x = normal({1}, device);
  const Tensor y = normal({1}, device);
  for (auto _ : state) {
    const auto start = std::chrono::steady_clock::now();
    const Tensor result = record_chain(x, y);
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    state.SetIterationTime(taken.count());
  }
  report_per_node(state);
}

void record_and_drop(benchmark::State& state, Device device) {
  const Tensor x = normal({1}, device);
  const Tensor y = normal({1}, device);
  for (auto _ : state) {
    const auto start = std::chrono::steady_clock::now();
    { const Tensor result = record_chain(x, y); }
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    state.SetIterationTime(taken.count());
  }
  report_per_node(state);
}

// The plan is in the cache; the time is linearising, looking up, binding and running one kernel on
// one element.
void realize_cached(benchmark::State& state, Device device) {
  const Tensor a = normal({1}, device);
  const Tensor b = normal({1}, device);
  for (auto _ : state) (sigmoid(a * b + a) * tanh(b) - a / 2).realize();
  synchronize(device);
}

// A plan whose cost is in its number of nodes.
void realize_cached_chain(benchmark::State& state, Device device) {
  const Tensor x = normal({1}, device);
  const Tensor y = normal({1}, device);
  for (auto _ : state) record_chain(x, y).realize();
  synchronize(device);
  report_per_node(state);
}

/// A perceptron of three layers of four, and its step of Adam: about 200 nodes over few elements,
/// so that what is timed is the host.
class TinyStep {
 public:
  /// What a step would change, recorded and not computed, all of it new.
  std::vector<Tensor> record() const {
    Tensor y = x_;
    for (const Tensor& weight : weights_) y = tanh(matmul(y, weight));
    const Tensor loss = mean(square(y));
    const Tensor one = ones({}, DType::kF32, x_.device());
    const std::vector<Tensor> gradients = cotangents({&loss, 1}, {&one, 1}, weights_);
    const NoGrad scope;
    std::vector<Tensor> changed;
    for (std::size_t i = 0; i < weights_.size(); ++i) {
      const Tensor& gradient = gradients[i];
      const Tensor mean = means_[i] * 0.9 + gradient * 0.1;
      const Tensor square = squares_[i] * 0.999 + gradient * gradient * 0.001;
      changed.insert(changed.end(),
                     {mean, square, weights_[i] - mean * 0.001 / (sqrt(square) * 1.1 + 1e-8)});
    }
    return changed;
  }

  explicit TinyStep(Device device) : x_(normal({2, 4}, device)) {
    for (int layer = 0; layer < kLayers; ++layer) {
      weights_.push_back(normal({4, 4}, device).requires_grad_());
      means_.push_back(normal({4, 4}, device));
      squares_.push_back(square(normal({4, 4}, device)).realize());
    }
  }

  Tensor operator()() {
    for (Tensor& weight : weights_) weight.set_grad({});
    Tensor y = x_;
    for (const Tensor& weight : weights_) y = tanh(matmul(y, weight));
    const Tensor loss = mean(square(y));
    loss.backward();
    const NoGrad scope;
    std::vector<Tensor> changed;
    for (std::size_t i = 0; i < weights_.size(); ++i) {
      const Tensor gradient = weights_[i].grad();
      means_[i].assign_(means_[i] * 0.9 + gradient * 0.1);
      squares_[i].assign_(squares_[i] * 0.999 + gradient * gradient * 0.001);
      weights_[i].assign_(weights_[i] - means_[i] * 0.001 / (sqrt(squares_[i]) * 1.1 + 1e-8));
      for (const Tensor& tensor : {means_[i], squares_[i], weights_[i]}) changed.push_back(tensor);
    }
    realize(changed);
    return loss;
  }

 private:
  static constexpr int kLayers = 6;
  Tensor x_;
  std::vector<Tensor> weights_, means_, squares_;
};

// Recording the step, finding its two plans, running them.
void step_cached(benchmark::State& state, Device device) {
  TinyStep step(device);
  for (auto _ : state) step();
  synchronize(device);
}

// Replaying it.
void step_recorded(benchmark::State& state, Device device) {
  TinyStep step(device);
  const JitFunction recorded =
      jit([&](std::span<const Tensor>) { return std::vector<Tensor>{step()}; });
  for (auto _ : state) recorded({});
  synchronize(device);
}

/// Times `work` alone, on an idle device, after `prepare`, whose result it is given.
template <typename Prepare, typename Work>
void time_alone(benchmark::State& state, Device device, Prepare prepare, Work work) {
  for (auto _ : state) {
    auto prepared = prepare();
    synchronize(device);
    const auto start = std::chrono::steady_clock::now();
    work(prepared);
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    state.SetIterationTime(taken.count());
  }
  synchronize(device);
}

// From the call of realize() to the submission; on a device without a queue, to the end.
void realize_step_cached(benchmark::State& state, Device device) {
  const TinyStep step(device);
  time_alone(
      state, device, [&] { return step.record(); },
      [](const std::vector<Tensor>& changed) { realize(changed); });
}

void step_replayed(benchmark::State& state, Device device) {
  const TinyStep step(device);
  const JitFunction recorded = jit([&](std::span<const Tensor>) { return step.record(); });
  recorded({});
  time_alone(
      state, device, [] { return 0; }, [&](int) { recorded({}); });
}

}  // namespace

void register_overhead(Device device) {
  benchmark::RegisterBenchmark(name_on("record", device).c_str(), record, device)->UseManualTime();
  benchmark::RegisterBenchmark(name_on("record_and_drop", device).c_str(), record_and_drop, device)
      ->UseManualTime();
  benchmark::RegisterBenchmark(name_on("realize_cached", device).c_str(), realize_cached, device)
      ->UseRealTime();
  benchmark::RegisterBenchmark(name_on("realize_cached_chain_1000", device).c_str(),
                               realize_cached_chain, device)
      ->UseRealTime();
  benchmark::RegisterBenchmark(name_on("realize_step_cached", device).c_str(), realize_step_cached,
                               device)
      ->UseManualTime();
  benchmark::RegisterBenchmark(name_on("step_replayed", device).c_str(), step_replayed, device)
      ->UseManualTime();
  benchmark::RegisterBenchmark(name_on("step_cached", device).c_str(), step_cached, device)
      ->UseRealTime();
  benchmark::RegisterBenchmark(name_on("step_recorded", device).c_str(), step_recorded, device)
      ->UseRealTime();
}

}  // namespace vkml::bench
