// Google Benchmark over every device: bench_cpp --benchmark_filter=matmul.*vulkan
#include "bench.h"

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  vkml::manual_seed(0);
  for (const vkml::DeviceDescription& description : vkml::devices()) {
    vkml::bench::register_overhead(description.device);
    vkml::bench::register_kernels(description.device, description.is_software);
  }
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
