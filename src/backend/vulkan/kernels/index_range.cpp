#include "kernels/index_range.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/collapse.h"
#include "kernels/elements.h"
#include "vkml/core/error.h"

namespace vkml::vulkan {

namespace {

/// More parts than this would need blocks of terabytes.
constexpr std::int64_t kMaxParts = 1024;

bool is_within_range(const dispatch::Kernel& kernel) {
  const auto fits = [](const dispatch::Operand& operand) {
    return reach_of(operand) <= kLargestIndex;
  };
  return dispatch::numel(kernel.space) <= kLargestIndex &&
         std::all_of(kernel.loads.begin(), kernel.loads.end(), fits) &&
         std::all_of(kernel.stores.begin(), kernel.stores.end(), fits);
}

/// The longest axis outside the rows along which nobody asks for coordinates; -1 if there is none.
int axis_to_cut(const dispatch::Kernel& kernel) {
  const auto coordinates = coordinate_axes(kernel);
  int longest = -1;
  for (int axis = 0; axis < kMaxDims - kernel.reduce_dims; ++axis) {
    const auto i = static_cast<std::size_t>(axis);
    if (coordinates[i] || kernel.space[i] < 2) continue;
    if (longest < 0 || kernel.space[i] > kernel.space[static_cast<std::size_t>(longest)]) {
      longest = axis;
    }
  }
  return longest;
}

dispatch::Kernel part_of(dispatch::Kernel kernel, std::size_t axis, std::int64_t begin,
                         std::int64_t end) {
  const auto cut = [&](dispatch::Operand& operand) {
    operand.offset += begin * operand.strides[axis];
    operand.extents[axis] = end - begin;
  };
  for (dispatch::Operand& load : kernel.loads) cut(load);
  for (dispatch::Operand& store : kernel.stores) cut(store);
  kernel.space[axis] = end - begin;
  kernel.scratch = -1;  // sized for the whole
  return kernel;
}

}  // namespace

std::vector<dispatch::Kernel> within_index_range(const dispatch::Kernel& kernel) {
  const std::int64_t elements = dispatch::numel(kernel.space);
  if (elements / kLargestIndex >= kMaxParts) {
    throw OutOfMemoryError(fmt::format(
        "[vulkan] a kernel over {} elements is beyond any device's memory. Use smaller tensors",
        elements));
  }
  std::vector<dispatch::Kernel> done, waiting{kernel};
  while (!waiting.empty()) {
    dispatch::Kernel next = std::move(waiting.back());
    waiting.pop_back();
    const int axis = is_within_range(next) ? -1 : axis_to_cut(next);
    if (axis < 0) {
      done.push_back(std::move(next));
      continue;
    }
    const auto i = static_cast<std::size_t>(axis);
    const std::int64_t extent = next.space[i], middle = extent / 2;
    waiting.push_back(part_of(next, i, middle, extent));
    waiting.push_back(part_of(next, i, 0, middle));
  }
  return done;
}

}  // namespace vkml::vulkan
