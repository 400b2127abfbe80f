#include "kernel_traits.h"

#include <fmt/format.h>

#include <algorithm>

#include "vkml/core/error.h"
#include "vkml/dispatch/kernel_cost.h"

namespace vkml::vulkan {

namespace {

constexpr std::int64_t kWord = 4;

std::int64_t floor_to_word(std::int64_t value) {
  return value >= 0 ? value / kWord * kWord : -((-value + kWord - 1) / kWord * kWord);
}

void include(ByteHulls& hulls, const dispatch::Operand& operand) {
  if (operand.buffer < 0 || dispatch::numel(operand.extents) == 0) return;
  std::int64_t first = operand.offset;
  std::int64_t last = operand.offset;
  for (std::size_t axis = 0; axis < operand.extents.size(); ++axis) {
    const std::int64_t reach = (operand.extents[axis] - 1) * operand.strides[axis];
    (reach < 0 ? first : last) += reach;
  }
  const auto bytes = static_cast<std::int64_t>(size_of(operand.dtype));
  const ByteHull hull{floor_to_word(first * bytes), floor_to_word((last + 1) * bytes + kWord - 1)};
  const auto [place, is_new] = hulls.try_emplace(operand.buffer, hull);
  place->second.begin = std::min(place->second.begin, hull.begin);
  place->second.end = std::max(place->second.end, hull.end);
}

}  // namespace

ByteHulls byte_hulls(const dispatch::Kernel& kernel, const dispatch::ExecutionGraph& graph) {
  ByteHulls hulls;
  for (const auto* operands :
       {&kernel.core_inputs, &kernel.loads, &kernel.stores, &kernel.core_stores}) {
    for (const dispatch::Operand& operand : *operands) include(hulls, operand);
  }
  if (kernel.scratch >= 0) {
    hulls[kernel.scratch] = {0, graph.buffers[static_cast<std::size_t>(kernel.scratch)].bytes};
  }
  return hulls;
}

DeviceTraits traits_for(const ByteHulls& hulls, const DeviceProfile& profile, vkml::Device name) {
  DeviceTraits traits = profile.traits;
  if (traits.use_addresses) return traits;
  for (const auto& [buffer, hull] : hulls) {
    // The descriptor begins at an aligned offset, before the range.
    const auto bytes =
        static_cast<std::uint64_t>(hull.end - hull.begin) + profile.limits.storage_offset_alignment;
    if (bytes <= profile.limits.max_storage_range) continue;
    if (!profile.has_addresses) {
      throw UnsupportedError(fmt::format(
          "[{}] a kernel touches {} bytes of one tensor, but the device's maxStorageBufferRange is "
          "{} and it has no bufferDeviceAddress. Use smaller tensors, or vkml.cpu",
          to_string(name), hull.end - hull.begin, profile.limits.max_storage_range));
    }
    traits.use_addresses = true;
  }
  return traits;
}

double estimate_seconds(const dispatch::Kernel& kernel, const ByteHulls& hulls, bool is_software) {
  // A weak GPU, and lavapipe on two cores.
  const double bytes_per_second = is_software ? 1e9 : 2e10;
  const double operations_per_second = is_software ? 1e9 : 5e11;
  double bytes = 0;
  for (const auto& [buffer, hull] : hulls) bytes += static_cast<double>(hull.end - hull.begin);
  const double operations =
      2 * dispatch::core_terms(kernel) + static_cast<double>(kernel.program.code.size()) *
                                             static_cast<double>(dispatch::numel(kernel.space));
  return bytes / bytes_per_second + operations / operations_per_second;
}

}  // namespace vkml::vulkan
