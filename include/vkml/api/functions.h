// Operators on tensors. Each records and returns at once. Errors name the operator and the values;
// indices inside data are checked when the result is observed.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "vkml/api/tensor.h"
#include "vkml/core/number.h"
#include "vkml/ops/attention_options.h"

namespace vkml {

// One function for each row of the elementwise table; operands broadcast and promote.
#define VKML_ROW(arity, name, ...) Tensor name(VKML_PARAMETERS_##arity(Tensor));
#include "vkml/ops/elementwise.def.h"

// Making tensors. The device defaults to default_device().

/// Every element `value`. Throws ArgumentError for an integer that an integer dtype cannot hold;
/// floats become integers as in to().
Tensor full(const Extents& extents, Number value, DType dtype = kDefaultFloat,
            std::optional<Device> device = {});
Tensor zeros(const Extents& extents, DType dtype = kDefaultFloat,
             std::optional<Device> device = {});
/// zeros: there are no uninitialised tensors.
Tensor empty(const Extents& extents, DType dtype = kDefaultFloat,
             std::optional<Device> device = {});
Tensor ones(const Extents& extents, DType dtype = kDefaultFloat, std::optional<Device> device = {});
/// start, start + step, ... below stop (above it for a negative step). Integers are exact; for an
/// integer dtype floats are truncated first. Throws ArgumentError for a step of 0, for infinite
/// bounds, and for elements that the dtype cannot hold.
Tensor arange(Number start, Number stop, Number step, DType dtype,
              std::optional<Device> device = {});
/// Uniform in [0, 1) and standard normal numbers, drawn in float32 and converted to `dtype`.
Tensor rand(const Extents& extents, DType dtype = kDefaultFloat, std::optional<Device> device = {});
Tensor randn(const Extents& extents, DType dtype = kDefaultFloat,
             std::optional<Device> device = {});
/// Integers in [low, high), which holds 2^40 at most and must fit the dtype (ArgumentError).
Tensor randint(std::int64_t low, std::int64_t high, const Extents& extents,
               DType dtype = DType::kI64, std::optional<Device> device = {});

/// Another dtype: floats become integers by truncation, saturated, NaN as 0; wider integers wrap.
Tensor to(const Tensor& x, DType dtype);
/// Another device, through host memory: computes x and waits. Gradients go back the same way.
Tensor to(const Tensor& x, Device device);

// Views: assigning to one changes what it was taken of, except of broadcast_to, which refuses
// (ArgumentError). reshape and flatten copy where strides do not allow a view; one extent of a
// reshape may be -1. Impossible axes, extents and ranks above 4 are a ShapeError.
Tensor reshape(const Tensor& x, const Extents& extents);
Tensor permute(const Tensor& x, const Extents& axes);
Tensor transpose(const Tensor& x, std::int64_t axis0, std::int64_t axis1);
Tensor squeeze(const Tensor& x, std::optional<std::int64_t> axis = {});
Tensor unsqueeze(const Tensor& x, std::int64_t axis);
Tensor flatten(const Tensor& x, std::int64_t first = 0, std::int64_t last = -1);
Tensor broadcast_to(const Tensor& x, const Extents& extents);
Tensor slice(const Tensor& x, std::int64_t axis, std::optional<std::int64_t> start,
             std::optional<std::int64_t> stop, std::int64_t step = 1);
/// Dense row-major memory: x itself where it has that.
Tensor contiguous(const Tensor& x);
/// A value with memory of its own.
Tensor to_copy(const Tensor& x);

// Assembly. Parts are promoted to a common dtype; ShapeError where they do not fit together.
Tensor concat(std::span<const Tensor> parts, std::int64_t axis = 0);
Tensor stack(std::span<const Tensor> parts, std::int64_t axis = 0);
/// Parts of `size` along the axis; the last may be smaller.
std::vector<Tensor> split(const Tensor& x, std::int64_t size, std::int64_t axis = 0);
/// Constant padding, (before, after) for each axis from the first on; negative amounts crop.
Tensor pad(const Tensor& x, const std::vector<std::array<std::int64_t, 2>>& amounts,
           Number value = 0);

// Reductions; no axes means all. sum and prod of bool, uint8 and int32 are int32, of int64 int64;
// mean, var and logsumexp of halves are taken in float32, and mean of integers is float32. argmax
// and argmin take one axis or none (then the flat index), and give int32, the first of equal ones;
// any and all give bool. A NaN wins max, min, argmax and argmin. max, min, argmax and argmin of no
// elements are a ShapeError; sum is 0 there, prod 1, mean NaN. Equal extremes share the gradient.
Tensor sum(const Tensor& x, const Extents& axes = {}, bool keepdim = false);
Tensor mean(const Tensor& x, const Extents& axes = {}, bool keepdim = false);
Tensor prod(const Tensor& x, const Extents& axes = {}, bool keepdim = false);
Tensor max(const Tensor& x, const Extents& axes = {}, bool keepdim = false);
Tensor min(const Tensor& x, const Extents& axes = {}, bool keepdim = false);
Tensor argmax(const Tensor& x, const Extents& axes = {}, bool keepdim = false);
Tensor argmin(const Tensor& x, const Extents& axes = {}, bool keepdim = false);
Tensor any(const Tensor& x, const Extents& axes = {}, bool keepdim = false);
Tensor all(const Tensor& x, const Extents& axes = {}, bool keepdim = false);
/// Sum of squared differences from the mean over (count - correction). Floats (DTypeError).
Tensor var(const Tensor& x, const Extents& axes = {}, bool keepdim = false, double correction = 1);
Tensor logsumexp(const Tensor& x, const Extents& axes = {}, bool keepdim = false);

/// exp(x) / sum(exp(x)) along an axis, and its logarithm, without overflow. Floats (DTypeError).
Tensor softmax(const Tensor& x, std::int64_t axis);
Tensor log_softmax(const Tensor& x, std::int64_t axis);

/// NumPy's rule for every rank from 1 to 4: (..., m, k) @ (..., k, n), batches broadcast, vectors
/// as a row on the left and a column on the right. Any dtype but bool, promoted; halves are summed
/// in float32, integers wrap. ShapeError names both shapes.
Tensor matmul(const Tensor& a, const Tensor& b);

/// Sums of values (..., heads, keys, value width), weighted by how well their keys
/// (..., heads, keys, width) match each query (..., heads, queries, width): softmax(query @ key^T *
/// scale + mask) @ value. Floats (DTypeError); the mask is undefined, bool (whether a query attends
/// to a key) or floats, and broadcasts to (..., queries, keys). The scores are never held, but for
/// float64, heads wider than graph::kMaxAttentionWidth, and masks that require a gradient.
Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                    const Tensor& mask = {},
                                    const graph::AttentionOptions& options = {});
/// The weights alone, (..., heads, queries, keys).
Tensor attention_weights(const Tensor& query, const Tensor& key, const Tensor& mask = {},
                         const graph::AttentionOptions& options = {});

using Pair = std::array<std::int64_t, 2>;
/// Cross-correlation: input (N, C, H, W), weight (O, C / groups, KH, KW), bias (O) or undefined;
/// the result is (N, O, H', W') with H' = (H + 2 padding - dilation (KH - 1) - 1) / stride + 1,
/// rounded down. Floats (DTypeError).
Tensor conv2d(const Tensor& input, const Tensor& weight, const Tensor& bias = {},
              Pair stride = {1, 1}, Pair padding = {0, 0}, Pair dilation = {1, 1},
              std::int64_t groups = 1);
/// (N, C, H, W) to (N, C, H', W'), as conv2d. Padding, half a window at most, never wins a maximum;
/// it counts in a mean's divisor with count_include_pad. max takes numbers, avg floats
/// (DTypeError).
Tensor max_pool2d(const Tensor& input, Pair kernel, Pair stride, Pair padding = {0, 0},
                  Pair dilation = {1, 1}, bool ceil_mode = false);
Tensor avg_pool2d(const Tensor& input, Pair kernel, Pair stride, Pair padding = {0, 0},
                  bool count_include_pad = true, bool ceil_mode = false);

// Indices are int32 or int64 (DTypeError). One outside its axis is an IndexError that names the
// operator and the index, when the result is observed; nothing has been written then.

/// out[..., i, ...] = x[..., index[..., i, ...], ...]; negative indices are outside. The index has
/// x's rank, and extents no larger than x's along the other axes. `name` is what errors call the
/// operator, for functions that are made of it.
Tensor gather(const Tensor& x, std::int64_t axis, const Tensor& index, std::string_view name = {});
/// base with every element of source added at its index along the axis, equal indices in order;
/// index and source have one shape.
Tensor scatter_add(const Tensor& base, std::int64_t axis, const Tensor& index,
                   const Tensor& source);
/// Slices of x at `indices` along the axis, whose place the axes of `indices` take; negative
/// indices count from the end.
Tensor take(const Tensor& x, const Tensor& indices, std::int64_t axis = 0);
/// The same, but negative indices are outside, as in PyTorch.
Tensor index_select(const Tensor& x, std::int64_t axis, const Tensor& indices);
/// Rows of weight (V, D): (..., D) for indices (...); negative ones are outside.
Tensor embedding(const Tensor& indices, const Tensor& weight, std::string_view name = {});

/// Zeroes elements with a probability in [0, 1] and scales the others by 1 / (1 - probability); x
/// itself unless training.
Tensor dropout(const Tensor& x, double probability, bool training = true);
/// Over the last axes, which have the extents of `normalized`; weight and bias may be undefined.
Tensor layer_norm(const Tensor& x, const Extents& normalized, const Tensor& weight,
                  const Tensor& bias, double epsilon = 1e-5);
/// (x - mean) / sqrt(variance + epsilon) over the axes, with the biased variance.
Tensor normalize(const Tensor& x, const Extents& axes, double epsilon);

enum class Reduction { kNone, kMean, kSum };
/// logits (N, C, ...) or (C), integer classes (N, ...) or (). Rows with ignore_index count neither
/// in the sum nor in the mean; the mean over no rows is NaN.
Tensor cross_entropy(const Tensor& logits, const Tensor& target,
                     Reduction reduction = Reduction::kMean, std::int64_t ignore_index = -100,
                     double label_smoothing = 0);
/// A product and what is added to it: under autocast in the product's precision, so that a bias in
/// float32 does not take what follows back to it.
Tensor add_to_product(const Tensor& product, const Tensor& addend);
/// x, as binary cross entropy takes it: ArgumentError under that name, when a result is observed,
/// where an element is outside [0, 1] or NaN.
Tensor checked_probability(const Tensor& x);

}  // namespace vkml
