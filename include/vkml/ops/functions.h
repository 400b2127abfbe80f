// Structural operators and composites on values. Each records nodes and returns at once; each
// throws ShapeError, DTypeError, DeviceError or ArgumentError naming itself and the offending
// values.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "vkml/graph/value.h"
#include "vkml/ops/attention_options.h"
#include "vkml/ops/core_kind.h"
#include "vkml/ops/elementwise.h"
#include "vkml/ops/matmul_precision.h"

namespace vkml::graph {

using Axes = std::span<const std::int64_t>;

// Numbers and types.

/// Another dtype. Float to integer truncates and saturates, NaN becomes 0; the same dtype is x.
Value cast(const Value& x, DType dtype);
/// Whether x is anything but an integer number (weak_scalar) that the integer dtype cannot hold.
bool number_fits(const Value& x, DType dtype);
/// cast() for what meets a tensor of `dtype`: an integer number that the dtype cannot hold is an
/// ArgumentError in the name of `op`, where a tensor's elements wrap.
Value cast_operand(const char* op, const Value& x, DType dtype);
/// Every element `value`, without memory of its own until it is needed. Throws ArgumentError for an
/// integer that an integer dtype cannot hold; floats are converted as cast() does.
Value full(Axes extents, Number value, DType dtype, Device device);
Value zeros_like(const Value& x);
/// The coordinate along `axis` at each element; i32, or i64 past 2^31.
Value iota(Axes extents, int axis, Device device);
/// Bits of a scalar node as a value of its compute type, for the run-time scalars of a plan.
std::uint64_t scalar_bits(const Node& node);
/// The same for another number in the place of the node's own. Throws ArgumentError for an integer
/// that the node's dtype cannot hold.
std::uint64_t scalar_bits(const Node& node, Number number);
/// The number that a scalar node holds.
double scalar_number(const Node& node);

/// What gives a scalar node its number when a recorded step runs again (api/jit.h).
enum class NumberSource : std::uint8_t {
  kConstant,    // the number it has
  kDraw,        // a word of a random key: index 2 * draw + word
  kExpression,  // a number of the recorded program
  kConverted,   // one that was converted to a dtype that cannot hold it
};
struct NumberOrigin {
  NumberSource source = NumberSource::kConstant;
  std::int64_t index = 0;
};
NumberOrigin origin_of(const Node& node);
/// The same number with an origin.
Value with_origin(const Value& number, NumberOrigin origin);

// Views.

Value reshape(const Value& x, Axes extents);  // one extent may be -1
Value permute(const Value& x, Axes axes);
Value transpose(const Value& x, std::int64_t axis0, std::int64_t axis1);
Value squeeze(const Value& x, std::int64_t axis);
Value unsqueeze(const Value& x, std::int64_t axis);
/// Errors name `op`.
Value broadcast_to(const Value& x, Axes extents, const char* op = "broadcast_to");
/// x[start:stop:step] along an axis, with Python's meaning of negative and missing bounds; the step
/// is not 0.
Value slice(const Value& x, std::int64_t axis, std::optional<std::int64_t> start,
            std::optional<std::int64_t> stop, std::int64_t step);
/// x[index] along an axis, which disappears. Throws IndexError in the name of `op`.
Value select_index(const char* op, const Value& x, std::int64_t axis, std::int64_t index);
/// The same storage, with no gradient to x.
Value detach(const Value& x);
/// Whether a recorded view is one that detach() or alias() made.
bool is_detach(const OpInfo& op);
/// Dense row-major memory; x itself when it has that.
Value contiguous(const Value& x);
/// Dense memory of its own, always.
Value copy(const Value& x);
/// The same data through `value`, but gradients arrive at `inputs` through the rule of `op`
/// (family kCustom), or through `function` where that has none.
Value with_gradient(const OpInfo& op, const Value& value, std::span<const Value> inputs,
                    const Attributes& attributes = {},
                    std::shared_ptr<const GradientFunction> function = nullptr);

// Assembly.

Value concat(std::span<const Value> parts, std::int64_t axis);
/// Constant padding: (before, after) for each axis.
Value pad(const Value& x, std::span<const std::array<std::int64_t, 2>> amounts, Number value);
/// A window on a dense base: what a chain of slices, permutations and splits shows of it. Offset
/// and strides are in elements.
struct Window {
  std::int64_t offset = 0;
  std::array<std::int64_t, kMaxDims> strides{};
};
/// `base` with the window's elements replaced by `value`, whose shape is the window's.
Value view_update(const Value& base, const Value& value, const Window& window);
/// The window itself, a view of a dense base.
Value view_window(const Value& base, Axes extents, const Window& window);
/// The window that a view shows of a dense value it was made from.
Window window_between(const Value& dense, const Value& view);
/// Records a view again, of another base: `op` is the operator of a view, with its attributes and
/// extents.
Value replay_view(const OpInfo& op, const Attributes& attributes, Axes extents, const Value& base);
/// Throws unless shape, dtype and device match, and `old` is contiguous.
void check_assignable(const Value& old, const Value& value);
/// The new value of a tensor that showed `old`, where check_assignable() throws nothing. The
/// planner writes it over the old value when nobody reads that any more. `flags` are added to the
/// node's.
Value assign(const Value& old, const Value& value, std::uint32_t flags = 0);
/// An assignment that gradients do not see: they go on to the old value.
Value assign_unseen(const Value& old, const Value& value);
/// The same value as a node of its own with these flags: how a tensor becomes a leaf.
Value alias(const Value& x, std::uint32_t flags);

// Reductions; no axes means all of them.

Value sum(const Value& x, Axes axes, bool keepdim);
Value mean(const Value& x, Axes axes, bool keepdim);
Value prod(const Value& x, Axes axes, bool keepdim);
Value max(const Value& x, Axes axes, bool keepdim);
Value min(const Value& x, Axes axes, bool keepdim);
/// max and min along one axis, whose gradient goes to the first of equal elements.
Value first_max(const Value& x, std::int64_t axis, bool keepdim);
Value first_min(const Value& x, std::int64_t axis, bool keepdim);
Value argmax(const Value& x, Axes axes, bool keepdim);  // one axis, or none for the flat index
Value argmin(const Value& x, Axes axes, bool keepdim);
Value any(const Value& x, Axes axes, bool keepdim);
Value all(const Value& x, Axes axes, bool keepdim);
/// Sums x down to a shape that broadcasts to x's.
Value sum_to(const Value& x, const Shape& shape);

// Matrix products, convolution, pooling.

Value matmul(const Value& a, const Value& b);
/// The same in the operands' own dtype and at a given precision, whatever the thread's settings.
Value matmul(const Value& a, const Value& b, MatmulPrecision precision);
/// The precision of a recorded product.
MatmulPrecision precision_of_product(const Node& node);

struct Conv2dParameters {
  std::array<std::int64_t, 2> stride{1, 1}, padding{0, 0}, dilation{1, 1};
  std::int64_t groups = 1;
};
/// input (N, C, H, W), weight (O, C / groups, KH, KW).
Value conv2d(const Value& input, const Value& weight, const Conv2dParameters& parameters);

/// The gradient of conv2d with respect to its input, as an operator: input (N, C, H, W), weight
/// (C, O / groups, KH, KW); the output has `output_padding` more rows and columns at its end.
Value conv_transpose2d(const Value& input, const Value& weight, const Conv2dParameters& parameters,
                       std::array<std::int64_t, 2> output_padding);

struct Pool2dParameters {
  std::array<std::int64_t, 2> kernel{2, 2}, stride{2, 2}, padding{0, 0}, dilation{1, 1};
  bool count_include_pad = true;
  bool ceil_mode = false;  // a last window that starts inside, and reaches past the padding
};
Value max_pool2d(const Value& input, const Pool2dParameters& parameters);
Value max_pool2d_indices(const Value& input, const Pool2dParameters& parameters);
Value avg_pool2d(const Value& input, const Pool2dParameters& parameters);

// Attention.

/// Sums of values (..., S, V), weighted by how well their keys (..., S, D) match each query
/// (..., T, D). An undefined mask is none; a bool one says what a query attends to, another is
/// added to the scores; both broadcast to (..., T, S). The scores are never held, but for f64,
/// wider heads than kMaxAttentionWidth, and masks that require a gradient.
Value scaled_dot_product_attention(const Value& query, const Value& key, const Value& value,
                                   const Value& mask, const AttentionOptions& options);
/// Its weights (..., T, S); 0 for a query that a mask leaves nothing.
Value attention_weights(const Value& query, const Value& key, const Value& mask,
                        const AttentionOptions& options);

struct PatchParameters {
  std::array<std::int64_t, 2> kernel{1, 1}, stride{1, 1}, padding{0, 0}, dilation{1, 1};
};
/// Windows of (N, C, H, W) as columns (N, C * KH * KW, windows). (patches.cpp)
Value unfold(const Value& x, const PatchParameters& parameters);
/// The sum of such columns in an image of these extents.
Value fold(const Value& columns, std::array<std::int64_t, 2> image,
           const PatchParameters& parameters);

// Indexing by data.

// `name` is what errors call the operator: that of the function that a user called, where it is
// another one.

/// out[..., i, ...] = x[..., index[..., i, ...], ...]; negative indices are errors.
Value gather(const Value& x, std::int64_t axis, const Value& index, std::string_view name = {});
/// base plus every element of `source` at its index along the axis; equal indices add.
Value scatter_add(const Value& base, std::int64_t axis, const Value& index, const Value& source);
/// `base` combined with every element of `source` at its index along the axis, in the order of the
/// source.
Value scatter(const Value& base, std::int64_t axis, const Value& index, const Value& source,
              ops::ScatterKind kind, std::string_view name = {});
/// Which operator of the user's a take is, for its errors.
enum class TakeName : std::uint8_t { kTake, kIndexSelect, kEmbedding, kGetItem };
/// Rows of x along an axis, in the shape of `indices`. Negative indices of kTake and kGetItem count
/// from the end; those of kIndexSelect and kEmbedding are errors, as in PyTorch.
Value take(const Value& x, const Value& indices, std::int64_t axis, TakeName kind = TakeName::kTake,
           std::string_view name = {});
/// x itself; when observed, IndexError in the name of `op` (family kCheck) if an element is neither
/// `exempt` nor in [0, extent). Elements out of range read as 0.
Value check_range(const OpInfo& op, const Value& x, std::int64_t extent, std::int64_t exempt);
/// x (float32) itself; when observed, ArgumentError in the name of `op` (ops::value_check) if an
/// element is outside the interval of that check.
Value check_values(const OpInfo& op, const Value& x);

// Random numbers.

/// A draw's key: two words, run-time inputs of the plan. `draw` is its number in the stream.
struct RandomKey {
  std::uint32_t words[2] = {0, 0};
  std::uint64_t draw = 0;
};
Value random_uniform(Axes extents, RandomKey key, Device device);  // f32 in [0, 1)
Value random_normal(Axes extents, RandomKey key, Device device);   // f32
Value dropout(const Value& x, double probability, RandomKey key);

// Composites that the fuser makes one kernel of.

Value softmax(const Value& x, std::int64_t axis);
Value log_softmax(const Value& x, std::int64_t axis);
Value logsumexp(const Value& x, Axes axes, bool keepdim);
/// (x - mean) / sqrt(variance + epsilon) over the axes, with the biased variance.
Value normalize(const Value& x, Axes axes, double epsilon);
/// Population variance over the axes, by the two-pass formula.
Value variance(const Value& x, Axes axes, bool keepdim, double correction);
/// -log_softmax(logits)[target] for each row; classes along axis 1 (or 0 for rank 1). Rows whose
/// target is ignore_index give 0; a target outside the classes raises IndexError when observed.
Value cross_entropy_rows(const Value& logits, const Value& target, std::int64_t ignore_index,
                         double label_smoothing);
/// x for binary_cross_entropy: an element outside [0, 1], or NaN, raises when a result is observed.
Value checked_probability(const Value& x);

}  // namespace vkml::graph
