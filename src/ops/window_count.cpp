#include "window_count.h"

#include <fmt/format.h>

#include "vkml/core/error.h"

namespace vkml::graph {

std::int64_t window_count(const char* op, const WindowAxis& axis) {
  std::int64_t reach = 0;   // elements from a window's first to its last
  std::int64_t padded = 0;  // extent with the padding
  if (__builtin_mul_overflow(axis.dilation, axis.kernel - 1, &reach) ||
      __builtin_mul_overflow(axis.padding, 2, &padded) ||
      __builtin_add_overflow(padded, axis.extent, &padded)) {
    throw ShapeError(
        fmt::format("[{}] kernel {}, dilation {} and padding {} on an axis of extent {} need more "
                    "than 2^63 places",
                    op, axis.kernel, axis.dilation, axis.padding, axis.extent));
  }
  return padded <= reach ? 0 : (padded - reach - 1) / axis.stride + 1;
}

}  // namespace vkml::graph
