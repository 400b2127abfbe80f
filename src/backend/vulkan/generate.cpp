#include <fmt/format.h>

#include "dispatch_list.h"
#include "kernels/kernels.h"
#include "kernels/program.h"
#include "vkml/core/error.h"

namespace vkml::vulkan {

using dispatch::KernelKind;

namespace {

/// Nothing to write. A row of no elements still has a value.
bool is_empty(const dispatch::Kernel& kernel) {
  std::int64_t results = 1;
  for (int axis = 0; axis < kMaxDims - kernel.reduce_dims; ++axis) {
    results *= kernel.space[static_cast<std::size_t>(axis)];
  }
  return results == 0;
}

}  // namespace

std::vector<Dispatch> generate(const dispatch::Kernel& kernel,
                               const dispatch::ExecutionGraph& graph, const DeviceTraits& traits) {
  const Context context{kernel, graph, traits};
  require_program_types(context);
  if (is_empty(kernel)) return {};
  switch (kernel.kind) {
    case KernelKind::kRegion:
      return kernel.reduce_dims > 0 ? generate_rows(context) : generate_map(context);
    case KernelKind::kMatmul:
      return generate_matmul(context);
    default:
      break;
  }
  throw UnsupportedError(
      fmt::format("[{}] is not available on vulkan. Compute it on the CPU: vkml.tensor(t.numpy(), "
                  "device=vkml.cpu)",
                  dispatch::name_of(kernel.kind)));
}

std::int64_t scratch_bytes(const dispatch::Kernel& kernel, const DeviceTraits& traits) {
  if (is_empty(kernel)) return 0;
  switch (kernel.kind) {
    case KernelKind::kRegion:
      return kernel.reduce_dims > 0 ? row_scratch_bytes(kernel, traits) : 0;
    case KernelKind::kMatmul:
      return matmul_scratch_bytes(kernel, traits);
    default:
      return 0;
  }
}

}  // namespace vkml::vulkan
