// Kernels: rates in ideal traffic (each operand read once, each result written once) or in
// floating-point operations, by the wall and (`device`) by the time of the kernels alone. `kernels`
// counts those of the plan: fusion shows there.
#include <functional>
#include <vector>

#include "bench.h"

namespace vkml::bench {
namespace {

struct Case {
  std::string name;
  std::function<std::function<Tensor()>(Device)> prepare;
  double bytes = 0;
  double operations = 0;
};

/// Kernels of a call, and the seconds that they take on the device, each by itself.
struct Alone {
  double kernels = 0;
  double seconds = 0;
};

Alone run_alone(const std::function<Tensor()>& call) {
  constexpr int kCalls = 5;
  Profile profile;
  for (int i = 0; i < kCalls; ++i) call().realize();
  profile.close();
  Alone alone;
  for (const KernelSummary& kernel : profile.kernels(false)) {
    alone.kernels += static_cast<double>(kernel.count) / kCalls;
    alone.seconds += kernel.seconds / kCalls;
  }
  return alone;
}

void run(benchmark::State& state, const Case& workload, Device device) {
  const std::function<Tensor()> call = workload.prepare(device);
  call().realize();
  const Alone alone = run_alone(call);
  synchronize(device);
  for (auto _ : state) call().realize();
  synchronize(device);
  const auto iterations = static_cast<double>(state.iterations());
  state.counters["kernels"] = alone.kernels;
  if (workload.bytes > 0) {
    state.counters["B/s"] =
        benchmark::Counter(workload.bytes * iterations, benchmark::Counter::kIsRate);
    state.counters["device B/s"] = workload.bytes / alone.seconds;
  }
  if (workload.operations > 0) {
    state.counters["FLOP/s"] =
        benchmark::Counter(workload.operations * iterations, benchmark::Counter::kIsRate);
    state.counters["device FLOP/s"] = workload.operations / alone.seconds;
  }
}

Case chain(std::int64_t size) {
  const auto prepare = [size](Device device) -> std::function<Tensor()> {
    const Tensor a = normal({size}, device);
    const Tensor b = normal({size}, device);
    return [a, b] { return sigmoid(a * b + a) * tanh(b) - a / 2; };
  };
  return {"chain/" + std::to_string(size), prepare, 12.0 * static_cast<double>(size)};
}

Case total(std::int64_t size) {
  const auto prepare = [size](Device device) -> std::function<Tensor()> {
    const Tensor x = normal({size}, device);
    return [x] { return sum(x); };
  };
  return {"sum/" + std::to_string(size), prepare, 4.0 * static_cast<double>(size)};
}

Case softmax_rows(std::int64_t rows) {
  const auto prepare = [rows](Device device) -> std::function<Tensor()> {
    const Tensor x = normal({rows, rows}, device);
    return [x] { return softmax(x, -1); };
  };
  return {"softmax/" + std::to_string(rows), prepare, 8.0 * static_cast<double>(rows * rows)};
}

Case layer_norm_rows(std::int64_t rows) {
  const auto prepare = [rows](Device device) -> std::function<Tensor()> {
    const Tensor x = normal({rows, rows}, device);
    const Tensor weight = normal({rows}, device);
    const Tensor bias = normal({rows}, device);
    return [=] { return layer_norm(x, {rows}, weight, bias); };
  };
  return {"layer_norm/" + std::to_string(rows), prepare, 8.0 * static_cast<double>(rows * rows)};
}

Case matmul_square(std::int64_t size) {
  const auto prepare = [size](Device device) -> std::function<Tensor()> {
    const Tensor a = normal({size, size}, device);
    const Tensor b = normal({size, size}, device);
    return [a, b] { return matmul(a, b); };
  };
  return {"matmul/" + std::to_string(size), prepare, 0,
          2.0 * static_cast<double>(size * size * size)};
}

struct Sizes {
  std::vector<std::int64_t> chains;
  std::int64_t total;
  std::int64_t rows;
  std::vector<std::int64_t> products;
};

Sizes sizes_for(Device device, bool is_software) {
  constexpr std::int64_t kMega = 1 << 20;
  if (is_software) return {{kMega}, kMega, 512, {256, 512}};
  if (device.kind == DeviceKind::kCpu) {
    return {{1 << 12, 1 << 16, kMega, 16 * kMega}, 16 * kMega, 4096, {256, 1024, 2048, 4096}};
  }
  return {{kMega, 16 * kMega, 256 * kMega}, 256 * kMega, 8192, {1024, 2048, 4096, 8192}};
}

}  // namespace

void register_kernels(Device device, bool is_software) {
  const Sizes sizes = sizes_for(device, is_software);
  std::vector<Case> cases;
  for (const std::int64_t size : sizes.chains) cases.push_back(chain(size));
  cases.push_back(total(sizes.total));
  cases.push_back(softmax_rows(sizes.rows));
  cases.push_back(layer_norm_rows(sizes.rows));
  for (const std::int64_t size : sizes.products) cases.push_back(matmul_square(size));
  for (const Case& workload : cases) {
    benchmark::RegisterBenchmark(name_on(workload.name, device).c_str(), run, workload, device)
        ->UseRealTime()
        ->Unit(benchmark::kMicrosecond);
  }
}

}  // namespace vkml::bench
