// Host time: recording a node, giving a chain up, finding a plan again, running a tiny plan.
#include <chrono>

#include "bench.h"

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
}

}  // namespace vkml::bench
