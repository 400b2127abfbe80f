// How one value is read at the elements of another shape: through views, down to the dense buffer
// of an input or of a computed value.
#pragma once

#include "schedule.h"
#include "vkml/dispatch/execution_graph.h"

namespace vkml::dispatch {

/// Offset and strides in elements over the reader's axes, padded on the left.
struct Access {
  int root = -1;  // position of the value read
  std::int64_t offset = 0;
  Extents strides{0, 0, 0, 0};
};

/// Extents padded on the left with 1.
Extents padded(const Shape& shape);
/// Row-major strides in elements; 0 along axes of extent 1.
Extents dense_strides(const Extents& extents);
/// Reads `source` at the elements of `reader`, which the source broadcasts to.
Access access_of(const Schedule& schedule, int source, const Shape& reader);
/// Position of the value that `source` is a view of, or itself.
int root_of(const Schedule& schedule, int source);

/// Which axis of one shape is which of another, matching axes of extent above 1 in order. -1: an
/// axis of extent 1.
using AxisMap = std::array<int, kMaxDims>;
/// False when the shapes differ by more than axes of extent 1. `allowed` masks the target's axes.
bool match_axes(const Extents& from, const Extents& to, unsigned allowed, AxisMap& map);

}  // namespace vkml::dispatch
