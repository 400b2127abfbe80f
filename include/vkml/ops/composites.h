// Structural operators that are expressions of other operators: they have no kernel and no gradient
// rule of their own, and the fuser finds their kernels.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "vkml/ops/composite_modes.h"
#include "vkml/ops/functions.h"

namespace vkml::graph {

// Products.

/// The sum of products of two vectors; halves accumulate in f32.
Value dot(const Value& a, const Value& b);
/// a_i b_j of two vectors.
Value outer(const Value& a, const Value& b);
/// beta * input + alpha * (a @ b); an input is not read when beta is 0.
Value add_product(const Value& input, const Value& a, const Value& b, double beta, double alpha);
/// Sums of products over pairs of axes; the result has the other axes of a, then those of b.
Value tensordot(const Value& a, const Value& b, Axes axes_a, Axes axes_b);
/// Sums of products in Einstein's notation, as numpy.einsum: "bij,bjk->bik"; operands are
/// contracted from left to right.
Value einsum(const std::string& equation, std::span<const Value> operands);

// Statistics; no axes means all of them.

Value standard_deviation(const Value& x, Axes axes, bool keepdim, double correction);
/// sum(|x|^order)^(1 / order); the largest or smallest |x| for an infinite order, the number of
/// nonzeros for 0. The gradient at 0 is 0.
Value norm(const Value& x, double order, Axes axes, bool keepdim);
/// How many elements are not 0; i32.
Value count_nonzero(const Value& x, Axes axes, bool keepdim);

/// The element of the sorted axis at (N - 1) * fraction; NaN if the axis has one.
Value quantile(const Value& x, double fraction, std::int64_t axis, bool keepdim,
               Interpolation interpolation);

// Arrangement.

Value flip(const Value& x, Axes axes);
/// Elements moved along axes, those that leave coming in at the other end.
Value roll(const Value& x, Axes shifts, Axes axes);
/// x repeated `counts` times along each axis; counts may name more axes than x has.
Value repeat(const Value& x, Axes counts);
/// Each element `count` times in a row along an axis.
Value repeat_interleave(const Value& x, std::int64_t count, std::int64_t axis);

/// Padding from x itself, (before, after) for each axis.
Value pad_from_inside(const Value& x, std::span<const std::array<std::int64_t, 2>> amounts,
                      PadMode mode);
/// The part of the last two axes on and above (or on and below) a diagonal; 0 elsewhere.
Value triangle(const Value& x, std::int64_t diagonal, bool upper);
/// A view of the diagonal of two axes, which becomes the last axis.
Value diagonal(const Value& x, std::int64_t offset, std::int64_t axis0, std::int64_t axis1);
/// Square matrices with the last axis of x on their diagonal.
Value diag_embed(const Value& x, std::int64_t offset);
/// Ones on a diagonal.
Value eye(std::int64_t rows, std::int64_t columns, std::int64_t offset, DType dtype, Device device);
/// `steps` numbers from `start` to `stop`, both included.
Value linspace(double start, double stop, std::int64_t steps, DType dtype, Device device);
/// i64 rows of zeros with a single 1. IndexError when observed for a class outside [0, classes).
Value one_hot(const Value& x, std::int64_t classes);
/// Windows of `size` elements at every `step`; the axis counts windows, a new last axis elements.
Value sliding_windows(const Value& x, std::int64_t axis, std::int64_t size, std::int64_t step);
/// Axes moved to other places, the rest in order.
Value movedim(const Value& x, Axes from, Axes to);

// Special functions.

/// The derivative of digamma of an order from 0 to 100; infinite at 0 and negative integers.
Value polygamma(std::int64_t order, const Value& x);
/// i1(x) / x of y = i1(x), and i1e(x) / x of y = i1e(x): near 0 by a series, whose derivatives keep
/// their digits there.
Value bessel_ratio(const Value& x, const Value& y);
Value scaled_bessel_ratio(const Value& x, const Value& y);

}  // namespace vkml::graph
