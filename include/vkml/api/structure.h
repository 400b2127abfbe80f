// Structural operators on tensors beyond those of functions.h: products, statistics, arrangement,
// scans, sorting, selection by index and mask, images.
//
// Those marked "waits" have a result whose extents depend on values: they compute their operands
// and read the count, as PyTorch does. Axes count from the end when negative; one that does not
// exist, or is named twice, is a ShapeError, as are extents that do not fit and ranks above 4.
// Operands of two tensors are promoted to a common dtype.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "vkml/api/functions.h"
#include "vkml/ops/composite_modes.h"
#include "vkml/ops/core_kind.h"

namespace vkml {

using graph::Interpolation;
using graph::PadMode;
using ops::ScatterKind;

// Products of any dtype but bool; halves are summed in float32, integers wrap.
/// The sum of products of two vectors of one extent.
Tensor dot(const Tensor& a, const Tensor& b);
/// a_i b_j of vectors.
Tensor outer(const Tensor& a, const Tensor& b);
/// beta * input + alpha * (a @ b), input broadcast; it is not read when beta is 0.
Tensor add_product(const Tensor& input, const Tensor& a, const Tensor& b, double beta = 1,
                   double alpha = 1);
/// Sums of products over pairs of axes; the result has the other axes of a, then those of b.
Tensor tensordot(const Tensor& a, const Tensor& b, const Extents& axes_a, const Extents& axes_b);
/// numpy.einsum: "bij,bjk->bik", with an ellipsis or without, the result's labels or without.
/// Contracted from left to right. ArgumentError for an equation that cannot be read.
Tensor einsum(const std::string& equation, std::span<const Tensor> operands);

// Statistics of floats (DTypeError); no axes means all.
/// The square root of var.
Tensor standard_deviation(const Tensor& x, const Extents& axes = {}, bool keepdim = false,
                          double correction = 1);
/// sum(|x|^order)^(1 / order); the largest or smallest |x| for an infinite order, the number of
/// nonzeros for 0. The gradient at 0 is 0.
Tensor norm(const Tensor& x, double order = 2, const Extents& axes = {}, bool keepdim = false);
/// How many elements are not 0, of any dtype; int32.
Tensor count_nonzero(const Tensor& x, const Extents& axes = {}, bool keepdim = false);
/// The element at (N - 1) * fraction of the sorted axis, NaN where the axis has one; without an
/// axis, of the flattened tensor. ArgumentError for a fraction outside [0, 1].
Tensor quantile(const Tensor& x, double fraction, std::optional<std::int64_t> axis = {},
                bool keepdim = false, Interpolation interpolation = Interpolation::kLinear);

// Arrangement, of any dtype.
/// Axes in reverse.
Tensor flip(const Tensor& x, const Extents& axes);
/// Elements moved along axes (along the flattened tensor without any), those that leave coming in
/// at the other end.
Tensor roll(const Tensor& x, const Extents& shifts, const Extents& axes = {});
/// x repeated along each axis; counts may name more axes than x has, on the left.
Tensor repeat(const Tensor& x, const Extents& counts);
/// Each slice `count` times in a row. ArgumentError for a negative count.
Tensor repeat_interleave(const Tensor& x, std::int64_t count, std::int64_t axis);
/// Each slice as often as its count says; waits.
Tensor repeat_interleave(const Tensor& x, const Tensor& counts, std::int64_t axis);
/// Padding from x itself, (before, after) for each axis from the first on. ShapeError where x has
/// too few elements for it.
Tensor pad_from_inside(const Tensor& x, const std::vector<std::array<std::int64_t, 2>>& amounts,
                       PadMode mode);
/// The part of the last two axes on and above (or below) the diagonal `offset`; 0 elsewhere.
Tensor triangle(const Tensor& x, std::int64_t offset, bool upper);
/// The diagonal of two axes, which becomes the last axis: a view where x is dense.
Tensor diagonal(const Tensor& x, std::int64_t offset = 0, std::int64_t axis0 = 0,
                std::int64_t axis1 = 1);
/// Square matrices with the last axis of x on a diagonal, 0 elsewhere.
Tensor diag_embed(const Tensor& x, std::int64_t offset = 0);
/// Ones on a diagonal.
Tensor eye(std::int64_t rows, std::int64_t columns, std::int64_t offset = 0,
           DType dtype = kDefaultFloat, std::optional<Device> device = {});
/// `steps` numbers from `start` to `stop`, both included. ArgumentError for negative steps.
Tensor linspace(double start, double stop, std::int64_t steps, DType dtype = kDefaultFloat,
                std::optional<Device> device = {});
/// Rows of zeros with a single 1, int64, for classes in any integer dtype. IndexError when observed
/// for a class outside [0, classes).
Tensor one_hot(const Tensor& x, std::int64_t classes);
/// Windows of `size` elements at every `step`: the axis counts windows, a new last axis
/// elements.
Tensor sliding_windows(const Tensor& x, std::int64_t axis, std::int64_t size, std::int64_t step);
/// A view with axes moved to other places, the rest in order.
Tensor movedim(const Tensor& x, const Extents& from, const Extents& to);
/// Views of the slices along an axis.
std::vector<Tensor> unbind(const Tensor& x, std::int64_t axis = 0);
/// Views of one common shape, by NumPy's rule.
std::vector<Tensor> broadcast_tensors(std::span<const Tensor> tensors);

// Scans along an axis. Sums and products of bool, uint8 and int32 are int32, as reductions are;
// those of halves are taken in float32.
Tensor cumsum(const Tensor& x, std::int64_t axis);
Tensor cumprod(const Tensor& x, std::int64_t axis);
/// Logarithms of sums of exponentials, without overflow. Floats (DTypeError).
Tensor logcumsumexp(const Tensor& x, std::int64_t axis);
/// The derivative of digamma of an order from 0 to 100 (ArgumentError), in float32 for integers.
Tensor polygamma(std::int64_t order, const Tensor& x);
/// y_i = a_i y_(i - 1) + b_i, y before the first being 0; a and b have one shape and one float
/// dtype.
Tensor linear_recurrence(const Tensor& a, const Tensor& b, std::int64_t axis);
/// Values with their positions (i32) along an axis.
struct Ranked {
  Tensor values, indices;
};
/// The largest (smallest) along an axis, the first of equal ones: it has the gradient, where those
/// of max() and min() share it.
Ranked max_along(const Tensor& x, std::int64_t axis, bool keepdim = false);
Ranked min_along(const Tensor& x, std::int64_t axis, bool keepdim = false);
/// The largest (smallest) so far, the last of equal ones; NaN stays.
Ranked cummax(const Tensor& x, std::int64_t axis);
Ranked cummin(const Tensor& x, std::int64_t axis);

// Sorting; stable, NaN is the largest, indices are int32. Gradients go where values came from.
Tensor argsort(const Tensor& x, std::int64_t axis = -1, bool descending = false);
Ranked sort(const Tensor& x, std::int64_t axis = -1, bool descending = false);
/// The `count` largest (smallest), sorted. ArgumentError where the axis has fewer.
Ranked topk(const Tensor& x, std::int64_t count, std::int64_t axis = -1, bool largest = true);
/// The element at the (count - 1) / 2 of the sorted axis, NaN where the axis has one.
Ranked median(const Tensor& x, std::int64_t axis, bool keepdim = false);
/// The `position`-th smallest, counted from 1. ArgumentError outside the axis.
Ranked kthvalue(const Tensor& x, std::int64_t position, std::int64_t axis = -1,
                bool keepdim = false);
/// Where each value would go in a sorted vector, or in rows that fit those of `values`, so that it
/// stays sorted: before equal elements, or (right) after them; int32.
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
/// `base` with source elements written, multiplied, ... at their indices. `name` is what errors
/// call the operator, for functions that are made of it.
Tensor scatter(const Tensor& base, std::int64_t axis, const Tensor& index, const Tensor& source,
               ScatterKind kind, std::string_view name = {});
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

// Images (N, C, H, W) of floats (DTypeError).
/// The gradient of conv2d with respect to its input, as an operator: the weight is
/// (C, O / groups, KH, KW), and
/// H' = (H - 1) stride - 2 padding + dilation (KH - 1) + output_padding + 1.
Tensor conv_transpose2d(const Tensor& input, const Tensor& weight, const Tensor& bias = {},
                        Pair stride = {1, 1}, Pair padding = {0, 0}, Pair output_padding = {0, 0},
                        std::int64_t groups = 1, Pair dilation = {1, 1});
/// The windows of an image as columns, (N, C KH KW, count of windows).
Tensor unfold(const Tensor& x, Pair kernel, Pair dilation = {1, 1}, Pair padding = {0, 0},
              Pair stride = {1, 1});
/// The image (H, W) that columns add up to: the gradient of unfold, as an operator.
Tensor fold(const Tensor& columns, Pair image, Pair kernel, Pair dilation = {1, 1},
            Pair padding = {0, 0}, Pair stride = {1, 1});
/// Maxima of windows, and their positions h * W + w (i32).
Ranked max_pool2d_with_indices(const Tensor& input, Pair kernel, Pair stride, Pair padding = {0, 0},
                               Pair dilation = {1, 1}, bool ceil_mode = false);

}  // namespace vkml
