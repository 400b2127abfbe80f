// Convolution over two axes and its two gradients, which are each other's gradients too.

#include "record.h"
#include "vkml/ops/autocast.h"
#include "vkml/ops/functions.h"
#include "window_count.h"

namespace vkml::graph {
namespace {

using ops::CoreKind;

// attributes: stride h, w; padding h, w; dilation h, w; groups.
Attributes attributes_of(const Conv2dParameters& p) {
  return {p.stride[0],   p.stride[1],   p.padding[0], p.padding[1],
          p.dilation[0], p.dilation[1], p.groups};
}
Conv2dParameters parameters_of(const Attributes& a) {
  return {{a[0], a[1]}, {a[2], a[3]}, {a[4], a[5]}, a[6]};
}

Value input_gradient(const Value& gradient, const Value& weight, Axes extents,
                     const Attributes& attributes);
Value weight_gradient(const Value& input, const Value& gradient, Axes extents,
                      const Attributes& attributes);

void conv2d_rule(const Value& output, const Value& gradient, std::span<Value> gradients) {
  const Value input(output->source(0));
  const Value weight(output->source(1));
  gradients[0] = input_gradient(gradient, weight, input.shape().extents(), output->attributes());
  gradients[1] = weight_gradient(input, gradient, weight.shape().extents(), output->attributes());
}
void input_gradient_rule(const Value& output, const Value& gradient, std::span<Value> gradients) {
  const Value upstream(output->source(0));
  const Value weight(output->source(1));
  gradients[0] = conv2d(gradient, weight, parameters_of(output->attributes()));
  gradients[1] =
      weight_gradient(gradient, upstream, weight.shape().extents(), output->attributes());
}
void weight_gradient_rule(const Value& output, const Value& gradient, std::span<Value> gradients) {
  const Value input(output->source(0));
  const Value upstream(output->source(1));
  gradients[0] = input_gradient(upstream, gradient, input.shape().extents(), output->attributes());
  gradients[1] = conv2d(input, gradient, parameters_of(output->attributes()));
}

constexpr GradientReads kBoth{.operands = 0b11};
constexpr OpInfo kConv2dOp = ops::core_op("conv2d", CoreKind::kConv2d, &conv2d_rule, kBoth);
constexpr OpInfo kInputGradientOp = ops::core_op(
    "conv2d_input_gradient", CoreKind::kConv2dInputGradient, &input_gradient_rule, kBoth);
constexpr OpInfo kWeightGradientOp = ops::core_op(
    "conv2d_weight_gradient", CoreKind::kConv2dWeightGradient, &weight_gradient_rule, kBoth);

Value input_gradient(const Value& gradient, const Value& weight, Axes extents,
                     const Attributes& attributes) {
  return record(kInputGradientOp, {gradient.node(), weight.node()}, extents, gradient.dtype(),
                gradient.device(), attributes);
}
Value weight_gradient(const Value& input, const Value& gradient, Axes extents,
                      const Attributes& attributes) {
  return record(kWeightGradientOp, {input.node(), gradient.node()}, extents, gradient.dtype(),
                gradient.device(), attributes);
}

void check_parameters(const char* op, const Conv2dParameters& p) {
  const bool positive = p.groups > 0 && p.stride[0] > 0 && p.stride[1] > 0 && p.dilation[0] > 0 &&
                        p.dilation[1] > 0 && p.padding[0] >= 0 && p.padding[1] >= 0;
  if (positive) return;
  throw ArgumentError(fmt::format(
      "[{}] stride ({}, {}), dilation ({}, {}) and groups {} must be positive, padding ({}, {}) "
      "not negative",
      op, p.stride[0], p.stride[1], p.dilation[0], p.dilation[1], p.groups, p.padding[0],
      p.padding[1]));
}

}  // namespace

Value conv_transpose2d(const Value& input_given, const Value& weight_given,
                       const Conv2dParameters& p, std::array<std::int64_t, 2> output_padding) {
  check_same_device("conv_transpose2d", input_given, weight_given);
  Value input = as_product_operand(input_given);
  Value weight = as_product_operand(weight_given);
  const DType dtype = promote(input.dtype(), weight.dtype());
  if (!is_floating(dtype)) {
    throw DTypeError(fmt::format("[conv_transpose2d] takes floats, not {}", name_of(dtype)));
  }
  input = cast(input, dtype);
  weight = cast(weight, dtype);
  check_parameters("conv_transpose2d", p);
  if (input.rank() != 4 || weight.rank() != 4 || input.shape()[1] != weight.shape()[0] ||
      input.shape()[1] % p.groups != 0) {
    throw ShapeError(fmt::format(
        "[conv_transpose2d] needs input (N, C, H, W) and weight (C, O / groups, KH, KW) in {} "
        "groups: input {}, weight {}",
        p.groups, input.shape().to_string(), weight.shape().to_string()));
  }
  const char* const op = "conv_transpose2d";
  std::array<std::int64_t, 4> extents{input.shape()[0],
                                      multiply_or_throw(op, weight.shape()[1], p.groups), 0, 0};
  for (std::size_t i = 0; i < 2; ++i) {
    if (output_padding[i] < 0 || output_padding[i] >= p.stride[i]) {
      throw ArgumentError(
          fmt::format("[conv_transpose2d] output padding {} is not in [0, {}), the stride",
                      output_padding[i], p.stride[i]));
    }
    const int axis = 2 + static_cast<int>(i);
    const std::int64_t moved = multiply_or_throw(op, input.shape()[axis] - 1, p.stride[i]);
    const std::int64_t reach = multiply_or_throw(op, p.dilation[i], weight.shape()[axis] - 1);
    const std::int64_t cropped = multiply_or_throw(op, p.padding[i], -2);
    extents[static_cast<std::size_t>(axis)] = add_or_throw(
        op, add_or_throw(op, add_or_throw(op, moved, reach), cropped), 1 + output_padding[i]);
    if (extents[static_cast<std::size_t>(axis)] <= 0) {
      throw ShapeError(
          fmt::format("[conv_transpose2d] nothing remains of axis {}: input {}, weight "
                      "{}, padding {}",
                      axis, input.shape().to_string(), weight.shape().to_string(), p.padding[i]));
    }
  }
  return input_gradient(input, weight, extents, attributes_of(p));
}

Value conv2d(const Value& input_given, const Value& weight_given, const Conv2dParameters& p) {
  check_same_device("conv2d", input_given, weight_given);
  Value input = as_product_operand(input_given);
  Value weight = as_product_operand(weight_given);
  const DType dtype = promote(input.dtype(), weight.dtype());
  if (!is_floating(dtype)) {
    throw DTypeError(fmt::format("[conv2d] takes floats, not {}", name_of(dtype)));
  }
  input = cast(input, dtype);
  weight = cast(weight, dtype);
  const auto shapes =
      fmt::format("input {}, weight {}", input.shape().to_string(), weight.shape().to_string());
  if (input.rank() != 4 || weight.rank() != 4) {
    throw ShapeError("[conv2d] needs input (N, C, H, W) and weight (O, C / groups, KH, KW): " +
                     shapes);
  }
  check_parameters("conv2d", p);
  const std::int64_t channels = input.shape()[1];
  const std::int64_t outputs = weight.shape()[0];
  if (channels % p.groups != 0 || outputs % p.groups != 0 ||
      weight.shape()[1] != channels / p.groups) {
    throw ShapeError(fmt::format("[conv2d] {} channels in {} groups do not fit: {}", channels,
                                 p.groups, shapes));
  }
  ExtentList extents;
  extents.push_back(input.shape()[0]);
  extents.push_back(outputs);
  for (int axis = 0; axis < 2; ++axis) {
    const auto i = static_cast<std::size_t>(axis);
    const std::int64_t kernel = weight.shape()[2 + axis];
    if (kernel == 0) {
      throw ShapeError(
          fmt::format("[conv2d] the kernel is empty on axis {}: {}", 2 + axis, shapes));
    }
    extents.push_back(window_count(
        "conv2d", {input.shape()[2 + axis], kernel, p.stride[i], p.padding[i], p.dilation[i]}));
    if (extents[2 + axis] == 0) {
      throw ShapeError(
          fmt::format("[conv2d] the kernel (extent {}, dilation {} on axis {}) is larger than the "
                      "padded input: {}",
                      kernel, p.dilation[i], 2 + axis, shapes));
    }
  }
  return record(kConv2dOp, {input.node(), weight.node()}, extents.span(), dtype, input.device(),
                attributes_of(p));
}

}  // namespace vkml::graph
