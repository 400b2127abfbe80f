// Brings an iteration space to as few axes as its operands allow, so that most tensors become one
// contiguous axis and few extents and strides travel to the kernel.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "vkml/dispatch/execution_graph.h"

namespace vkml::vulkan {

struct CollapsedSpace {
  std::vector<std::int64_t> extents;               // outermost first, at least one axis
  std::vector<std::vector<std::int64_t>> strides;  // by operand, by axis, in elements
  /// Where each axis of the original space went; -1 for those of extent 1. Only axes in
  /// `coordinates` keep a place of their own.
  std::array<int, kMaxDims> place{-1, -1, -1, -1};

  int rank() const { return static_cast<int>(extents.size()); }
  std::int64_t count() const;
};

/// Drops axes of extent 1 and joins neighbours that every operand steps through as one. Axes in
/// `coordinates` are not joined: the program asks for the position along them. With `reorder`, axes
/// are sorted so that the first operand is written with its smallest stride innermost.
CollapsedSpace collapse(const dispatch::Extents& space,
                        const std::vector<const dispatch::Operand*>& operands,
                        const std::array<bool, kMaxDims>& coordinates, bool reorder);

/// The axes whose coordinates a kernel's program asks for.
std::array<bool, kMaxDims> coordinate_axes(const dispatch::Kernel& kernel);

}  // namespace vkml::vulkan
