// Sliding windows as columns (im2col) and their sum back into an image (col2im): slices of the
// padded image joined, and windows of it written; each is the other's gradient through the rules of
// slices and joins. Bound: memory, kernel-height times kernel-width copies.

#include <vector>

#include "record.h"
#include "vkml/ops/functions.h"
#include "window_count.h"

namespace vkml::graph {
namespace {

struct Grid {
  std::array<std::int64_t, 2> padded{}, steps{};  // extents with padding; windows along each axis
};

Grid grid_of(const char* op, std::array<std::int64_t, 2> image, const PatchParameters& p) {
  Grid grid;
  for (std::size_t i = 0; i < 2; ++i) {
    if (p.kernel[i] <= 0 || p.stride[i] <= 0 || p.dilation[i] <= 0 || p.padding[i] < 0) {
      throw ArgumentError(fmt::format(
          "[{}] kernel {}, stride {} and dilation {} must be positive, padding {} not negative", op,
          p.kernel[i], p.stride[i], p.dilation[i], p.padding[i]));
    }
    grid.steps[i] =
        window_count(op, {image[i], p.kernel[i], p.stride[i], p.padding[i], p.dilation[i]});
    grid.padded[i] = image[i] + 2 * p.padding[i];
    if (grid.steps[i] == 0) {
      throw ShapeError(fmt::format("[{}] a window of {} with dilation {} does not fit {} elements",
                                   op, p.kernel[i], p.dilation[i], grid.padded[i]));
    }
  }
  return grid;
}

/// The elements of the padded image that lie at place (i, j) of the windows.
Value elements_at(const Value& padded, const Grid& grid, const PatchParameters& p, std::int64_t i,
                  std::int64_t j) {
  const auto along = [&](const Value& x, std::size_t k, std::int64_t place) {
    const std::int64_t first = place * p.dilation[k];
    return slice(x, 2 + static_cast<std::int64_t>(k), first,
                 first + (grid.steps[k] - 1) * p.stride[k] + 1, p.stride[k]);
  };
  return along(along(padded, 0, i), 1, j);
}

}  // namespace

Value unfold(const Value& x, const PatchParameters& p) {
  if (x.rank() != 4) {
    throw ShapeError(
        fmt::format("[unfold] needs input (N, C, H, W), not {}", x.shape().to_string()));
  }
  const Grid grid = grid_of("unfold", {x.shape()[2], x.shape()[3]}, p);
  const std::array<std::array<std::int64_t, 2>, 4> amounts{
      {{0, 0}, {0, 0}, {p.padding[0], p.padding[0]}, {p.padding[1], p.padding[1]}}};
  const Value padded = p.padding == std::array<std::int64_t, 2>{} ? x : pad(x, amounts, 0);
  const std::int64_t windows = grid.steps[0] * grid.steps[1];
  std::vector<Value> parts;
  for (std::int64_t i = 0; i < p.kernel[0]; ++i) {
    for (std::int64_t j = 0; j < p.kernel[1]; ++j) {
      parts.push_back(reshape(elements_at(padded, grid, p, i, j),
                              as_span({x.shape()[0], x.shape()[1], 1, windows})));
    }
  }
  return reshape(concat(parts, 2),
                 as_span({x.shape()[0], x.shape()[1] * p.kernel[0] * p.kernel[1], windows}));
}

Value fold(const Value& columns, std::array<std::int64_t, 2> image, const PatchParameters& p) {
  const Grid grid = grid_of("fold", image, p);
  const std::int64_t places = p.kernel[0] * p.kernel[1];
  if (columns.rank() != 3 || columns.shape()[1] % places != 0 ||
      columns.shape()[2] != grid.steps[0] * grid.steps[1]) {
    throw ShapeError(fmt::format(
        "[fold] needs columns (N, C * {}, {}) for an image of {} by {}, not {}", places,
        grid.steps[0] * grid.steps[1], image[0], image[1], columns.shape().to_string()));
  }
  const std::int64_t batch = columns.shape()[0];
  const std::int64_t channels = columns.shape()[1] / places;
  const Value by_place =
      reshape(columns, as_span({batch, channels, places, grid.steps[0] * grid.steps[1]}));
  const std::int64_t padded_extents[] = {batch, channels, grid.padded[0], grid.padded[1]};
  const Value zeros = full(padded_extents, 0, columns.dtype(), columns.device());
  const Value dense = contiguous(zeros);
  Value sum;
  for (std::int64_t i = 0; i < p.kernel[0]; ++i) {
    for (std::int64_t j = 0; j < p.kernel[1]; ++j) {
      const Value part = reshape(select_index("fold", by_place, 2, i * p.kernel[1] + j),
                                 as_span({batch, channels, grid.steps[0], grid.steps[1]}));
      const Window window = window_between(dense, elements_at(dense, grid, p, i, j));
      const Value placed = view_update(zeros, part, window);
      sum = sum ? sum + placed : placed;
    }
  }
  return slice(slice(sum, 2, p.padding[0], p.padding[0] + image[0], 1), 3, p.padding[1],
               p.padding[1] + image[1], 1);
}

}  // namespace vkml::graph
