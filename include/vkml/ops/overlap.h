// Whether a view shows an element more than once, as overlapping windows do.
#pragma once

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

#include "vkml/core/shape.h"

namespace vkml::graph {

/// False where every axis steps past all that the axes of smaller steps span, which is so of every
/// view but broadcast ones and windows that overlap.
inline bool may_overlap(const Shape& shape) {
  std::array<std::pair<std::int64_t, std::int64_t>, kMaxDims> axes{};  // step, extent
  std::size_t count = 0;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (shape[axis] > 1) axes[count++] = {std::abs(shape.stride(axis)), shape[axis]};
  }
  std::sort(axes.begin(), axes.begin() + static_cast<std::ptrdiff_t>(count));
  std::int64_t span = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (axes[i].first <= span) return true;
    span += axes[i].first * (axes[i].second - 1);
  }
  return false;
}

}  // namespace vkml::graph
