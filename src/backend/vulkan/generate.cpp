#include <fmt/format.h>

#include "dispatch_list.h"
#include "kernels/kernels.h"
#include "kernels/program.h"
#include "vkml/core/error.h"

namespace vkml::vulkan {

using dispatch::KernelKind;

std::vector<Dispatch> generate(const dispatch::Kernel& kernel,
                               const dispatch::ExecutionGraph& graph, const DeviceTraits& traits) {
  const Context context{kernel, graph, traits};
  require_program_types(context);
  switch (kernel.kind) {
    case KernelKind::kRegion:
      if (kernel.reduce_dims == 0) {
        if (dispatch::numel(kernel.space) == 0) return {};
        return generate_map(context);
      }
      break;
    default:
      break;
  }
  throw UnsupportedError(
      fmt::format("[{}] is not available on vulkan. Compute it on the CPU: vkml.tensor(t.numpy(), "
                  "device=vkml.cpu)",
                  dispatch::name_of(kernel.kind)));
}

std::int64_t scratch_bytes(const dispatch::Kernel&, const DeviceTraits&) { return 0; }

}  // namespace vkml::vulkan
