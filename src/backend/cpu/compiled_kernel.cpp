#include "compiled_kernel.h"

#include <fmt/format.h>

#include "cores/core_result.h"
#include "cores/matmul.h"
#include "tile/region.h"
#include "vkml/core/error.h"

namespace vkml::cpu {
namespace {

using dispatch::Kernel;
using dispatch::KernelKind;

class RegionKernel final : public CompiledKernel {
 public:
  RegionKernel(const Kernel& kernel, const dispatch::ExecutionGraph& graph)
      : region_(kernel, graph.buffers) {}
  void run(const RunContext& run) override { region_.run(run); }

 private:
  Region region_;
};

}  // namespace

std::unique_ptr<CompiledKernel> compile_kernel(const dispatch::ExecutionGraph& graph,
                                               std::size_t index) {
  const Kernel& kernel = graph.kernels[index];
  switch (kernel.kind) {
    case KernelKind::kRegion:
      return std::make_unique<RegionKernel>(kernel, graph);
    case KernelKind::kMatmul:
      return compile_matmul(kernel, graph);
    default:
      break;
  }
  throw UnsupportedError(fmt::format("[cpu] no kernel for {}", dispatch::name_of(kernel.kind)));
}

std::int64_t scratch_bytes_of(const Kernel& kernel) {
  return kernel.kind == KernelKind::kRegion ? 0 : core_scratch_bytes(kernel);
}

}  // namespace vkml::cpu
