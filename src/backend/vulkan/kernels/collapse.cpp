#include "kernels/collapse.h"

#include <algorithm>
#include <cstdlib>

namespace vkml::vulkan {

std::int64_t CollapsedSpace::count() const {
  std::int64_t count = 1;
  for (const std::int64_t extent : extents) count *= extent;
  return count;
}

std::array<bool, kMaxDims> coordinate_axes(const dispatch::Kernel& kernel) {
  std::array<bool, kMaxDims> axes{};
  for (const ops::Instruction& instruction : kernel.program.code) {
    if (instruction.op == ops::Opcode::kIota)
      axes[static_cast<std::size_t>(instruction.imm)] = true;
  }
  return axes;
}

CollapsedSpace collapse(const dispatch::Extents& space,
                        const std::vector<const dispatch::Operand*>& operands,
                        const std::array<bool, kMaxDims>& coordinates, bool reorder) {
  std::vector<std::size_t> axes;
  for (std::size_t axis = 0; axis < space.size(); ++axis) {
    if (space[axis] != 1) axes.push_back(axis);
  }
  if (reorder && !operands.empty()) {
    std::stable_sort(axes.begin(), axes.end(), [&](std::size_t a, std::size_t b) {
      return std::abs(operands[0]->strides[a]) > std::abs(operands[0]->strides[b]);
    });
  }
  CollapsedSpace result;
  result.strides.resize(operands.size());
  bool previous_is_kept_apart = true;
  for (const std::size_t axis : axes) {
    bool joins = !previous_is_kept_apart && !coordinates[axis];
    for (std::size_t i = 0; joins && i < operands.size(); ++i) {
      joins = result.strides[i].back() == operands[i]->strides[axis] * space[axis];
    }
    if (joins) {
      result.extents.back() *= space[axis];
      for (std::size_t i = 0; i < operands.size(); ++i) {
        result.strides[i].back() = operands[i]->strides[axis];
      }
    } else {
      result.extents.push_back(space[axis]);
      for (std::size_t i = 0; i < operands.size(); ++i) {
        result.strides[i].push_back(operands[i]->strides[axis]);
      }
    }
    result.place[axis] = result.rank() - 1;
    previous_is_kept_apart = coordinates[axis];
  }
  if (result.extents.empty()) {
    result.extents.push_back(1);
    for (auto& strides : result.strides) strides.push_back(0);
  }
  return result;
}

}  // namespace vkml::vulkan
