// Structural operators on tensors beyond those of functions.h: products, statistics, arrangement,
// scans, sorting, selection by index and mask, images.
//
// Those marked "waits" have a result whose extents depend on values: they compute their operands
// and read the count, as PyTorch does.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "vkml/api/functions.h"
#include "vkml/ops/composites.h"
#include "vkml/ops/core_kind.h"

namespace vkml {

using graph::Interpolation;
using graph::PadMode;
using ops::ScatterKind;

// Products.
Tensor dot(const Tensor& a, const Tensor& b);
Tensor outer(const Tensor& a, const Tensor& b);
/// beta * input + alpha * (a @ b).
Tensor add_product(const Tensor& input, const Tensor& a, const Tensor& b, double beta = 1,
                   double alpha = 1);
Tensor tensordot(const Tensor& a, const Tensor& b, const Extents& axes_a, const Extents& axes_b);
Tensor einsum(const std::string& equation, std::span<const Tensor> operands);

// Statistics; no axes means all.
Tensor standard_deviation(const Tensor& x, const Extents& axes = {}, bool keepdim = false,
                          double correction = 1);
Tensor norm(const Tensor& x, double order = 2, const Extents& axes = {}, bool keepdim = false);
Tensor count_nonzero(const Tensor& x, const Extents& axes = {}, bool keepdim = false);
/// Without an axis, of the flattened tensor.
Tensor quantile(const Tensor& x, double fraction, std::optional<std::int64_t> axis = {},
                bool keepdim = false, Interpolation interpolation = Interpolation::kLinear);

// Arrangement.
Tensor flip(const Tensor& x, const Extents& axes);
Tensor roll(const Tensor& x, const Extents& shifts, const Extents& axes = {});
Tensor repeat(const Tensor& x, const Extents& counts);
Tensor repeat_interleave(const Tensor& x, std::int64_t count, std::int64_t axis);
/// Each slice as often as its count says; waits.
Tensor repeat_interleave(const Tensor& x, const Tensor& counts, std::int64_t axis);
Tensor pad_from_inside(const Tensor& x, const std::vector<std::array<std::int64_t, 2>>& amounts,
                       PadMode mode);
Tensor triangle(const Tensor& x, std::int64_t offset, bool upper);
/// A view where x is dense.
Tensor diagonal(const Tensor& x, std::int64_t offset = 0, std::int64_t axis0 = 0,
                std::int64_t axis1 = 1);
Tensor diag_embed(const Tensor& x, std::int64_t offset = 0);
Tensor eye(std::int64_t rows, std::int64_t columns, std::int64_t offset = 0,
           DType dtype = kDefaultFloat, std::optional<Device> device = {});
Tensor linspace(double start, double stop, std::int64_t steps, DType dtype = kDefaultFloat,
                std::optional<Device> device = {});
Tensor one_hot(const Tensor& x, std::int64_t classes);
Tensor sliding_windows(const Tensor& x, std::int64_t axis, std::int64_t size, std::int64_t step);
Tensor movedim(const Tensor& x, const Extents& from, const Extents& to);
std::vector<Tensor> unbind(const Tensor& x, std::int64_t axis = 0);
std::vector<Tensor> broadcast_tensors(std::span<const Tensor> tensors);

// Scans.
Tensor cumsum(const Tensor& x, std::int64_t axis);
Tensor cumprod(const Tensor& x, std::int64_t axis);
Tensor logcumsumexp(const Tensor& x, std::int64_t axis);
Tensor linear_recurrence(const Tensor& a, const Tensor& b, std::int64_t axis);
/// Values with their positions (i32) along an axis.
struct Ranked {
  Tensor values, indices;
};
Ranked cummax(const Tensor& x, std::int64_t axis);
Ranked cummin(const Tensor& x, std::int64_t axis);

// Sorting; stable, NaN is the largest.
Tensor argsort(const Tensor& x, std::int64_t axis = -1, bool descending = false);
Ranked sort(const Tensor& x, std::int64_t axis = -1, bool descending = false);
Ranked topk(const Tensor& x, std::int64_t count, std::int64_t axis = -1, bool largest = true);
/// The element at the (count - 1) / 2 of the sorted axis, NaN where the axis has one.
Ranked median(const Tensor& x, std::int64_t axis, bool keepdim = false);
/// The `position`-th smallest, counted from 1.
Ranked kthvalue(const Tensor& x, std::int64_t position, std::int64_t axis = -1,
                bool keepdim = false);
Tensor searchsorted(const Tensor& sorted, const Tensor& values, bool right = false);
/// Sorted distinct values of the flattened tensor, where each element went, and how often each
/// occurs; waits.
struct Unique {
  Tensor values, inverse, counts;
};
Unique unique(const Tensor& x);
/// The same of the slices along an axis, in lexicographic order; inverse and counts are vectors.
Unique unique(const Tensor& x, std::int64_t axis);
/// The same for runs of equal neighbours, in their order; waits.
Unique unique_consecutive(const Tensor& x);
Unique unique_consecutive(const Tensor& x, std::int64_t axis);
/// Occurrences, or sums of weights, of 0, 1, ... in a vector of non-negative integers; waits.
Tensor bincount(const Tensor& x, const Tensor& weights = {}, std::int64_t least = 0);
/// How many elements lie between neighbouring edges (the last bin holds its upper edge), or the sum
/// of their weights.
Tensor histogram(const Tensor& x, const Tensor& edges, const Tensor& weights = {});

// Selection.
/// `base` with source elements written, multiplied, ... at their indices.
Tensor scatter(const Tensor& base, std::int64_t axis, const Tensor& index, const Tensor& source,
               ScatterKind kind);
/// Positions of elements that are not 0: (count, rank), i64; waits.
Tensor nonzero(const Tensor& x);
/// The elements where the mask is true, in row-major order; waits.
Tensor masked_select(const Tensor& x, const Tensor& mask);
/// x with the next element of `source` wherever the mask is true.
Tensor masked_scatter(const Tensor& x, const Tensor& mask, const Tensor& source);
/// An index for each of the leading axes of x; an undefined tensor takes the whole axis. Indices
/// broadcast; negative ones count from the end. The result has their axes where they stand next to
/// each other, else first.
Tensor index_by(const Tensor& x, std::span<const Tensor> indices);
/// x with values written (or added) at such indices; of repeated places the last value stays (or
/// all add).
Tensor index_put(const Tensor& x, std::span<const Tensor> indices, const Tensor& values,
                 bool accumulate = false);

/// One part of an index that may hold tensors.
using AdvancedPart = std::variant<IndexPart, Tensor>;
/// x[...] and x[...] = value with integer and boolean tensors among slices, as NumPy has it.
Tensor get_advanced(const Tensor& x, const std::vector<AdvancedPart>& index);
void set_advanced(Tensor& x, const std::vector<AdvancedPart>& index, const Tensor& value);

// Images.
Tensor conv_transpose2d(const Tensor& input, const Tensor& weight, const Tensor& bias = {},
                        Pair stride = {1, 1}, Pair padding = {0, 0}, Pair output_padding = {0, 0},
                        std::int64_t groups = 1, Pair dilation = {1, 1});
Tensor unfold(const Tensor& x, Pair kernel, Pair dilation = {1, 1}, Pair padding = {0, 0},
              Pair stride = {1, 1});
Tensor fold(const Tensor& columns, Pair image, Pair kernel, Pair dilation = {1, 1},
            Pair padding = {0, 0}, Pair stride = {1, 1});
/// Maxima of windows, and their positions h * W + w (i32).
Ranked max_pool2d_with_indices(const Tensor& input, Pair kernel, Pair stride, Pair padding = {0, 0},
                               Pair dilation = {1, 1}, bool ceil_mode = false);

}  // namespace vkml
