// How many places a window has along a padded axis: convolution and pooling share the rule.
#pragma once

#include <cstdint>

namespace vkml::graph {

/// A window of `kernel` elements, `dilation` apart, that moves by `stride` over `extent` elements
/// with `padding` on both sides. kernel, stride and dilation are positive, padding is not negative.
struct WindowAxis {
  std::int64_t extent, kernel, stride, padding, dilation;
};

/// Places of the window; 0 where it is larger than the padded axis. Throws ShapeError in the name
/// of `op` for sizes past 63 bits.
std::int64_t window_count(const char* op, const WindowAxis& axis);

}  // namespace vkml::graph
