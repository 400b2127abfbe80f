// Max and average pooling over two axes, with gradients that add in a fixed order.

#include "record.h"
#include "vkml/ops/functions.h"
#include "window_count.h"

namespace vkml::graph {
namespace {

using ops::CoreKind;

// attributes: kernel h, w; stride h, w; padding h, w; then dilation h, w (max) or
// count_include_pad (average); then ceil_mode, which kernels see in the extents alone.
constexpr int kMaxAttributes = 9;
Attributes max_attributes(const Pool2dParameters& p) {
  return {p.kernel[0],  p.kernel[1],   p.stride[0],   p.stride[1],        p.padding[0],
          p.padding[1], p.dilation[0], p.dilation[1], p.ceil_mode ? 1 : 0};
}
Attributes average_attributes(const Pool2dParameters& p) {
  return {p.kernel[0],
          p.kernel[1],
          p.stride[0],
          p.stride[1],
          p.padding[0],
          p.padding[1],
          p.count_include_pad ? 1 : 0,
          p.ceil_mode ? 1 : 0};
}
Pool2dParameters parameters_of(const Attributes& a) {
  Pool2dParameters p;
  p.kernel = {a[0], a[1]};
  p.stride = {a[2], a[3]};
  p.padding = {a[4], a[5]};
  p.ceil_mode = a[a.size() - 1] != 0;
  if (a.size() == kMaxAttributes) {
    p.dilation = {a[6], a[7]};
  } else {
    p.count_include_pad = a[6] != 0;
  }
  return p;
}

Value max_gradient(const Value& gradient, const Value& indices, Axes extents,
                   const Attributes& attributes);
Value average_gradient(const Value& gradient, Axes extents, const Attributes& attributes);

void max_pool_rule(const Value& output, const Value& gradient, std::span<Value> gradients) {
  const Value x(output->source(0));
  const Value indices = max_pool2d_indices(x, parameters_of(output->attributes()));
  gradients[0] = max_gradient(gradient, indices, x.shape().extents(), output->attributes());
}
/// The gradient is linear in its first source: its own gradient picks the chosen inputs.
void max_pool_gradient_rule(const Value& output, const Value& gradient,
                            std::span<Value> gradients) {
  const Value indices(output->source(1));
  const Shape& x = output.shape();
  const Shape& y = indices.shape();
  const Value flat = reshape(gradient, as_span({x[0], x[1], x[2] * x[3]}));
  const Value picked = gather(flat, 2, reshape(indices, as_span({y[0], y[1], y[2] * y[3]})));
  gradients[0] = reshape(picked, y.extents());
}
void average_pool_rule(const Value& output, const Value& gradient, std::span<Value> gradients) {
  gradients[0] =
      average_gradient(gradient, output->source(0)->shape().extents(), output->attributes());
}
void average_pool_gradient_rule(const Value& output, const Value& gradient,
                                std::span<Value> gradients) {
  gradients[0] = avg_pool2d(gradient, parameters_of(output->attributes()));
}

constexpr OpInfo kMaxPoolOp =
    ops::core_op("max_pool2d", CoreKind::kMaxPool2d, &max_pool_rule, {.operands = 0b1});
constexpr OpInfo kIndicesOp = ops::core_op("max_pool2d_indices", CoreKind::kMaxPool2dIndices);
constexpr OpInfo kMaxGradientOp = ops::core_op("max_pool2d_gradient", CoreKind::kMaxPool2dGradient,
                                               &max_pool_gradient_rule, {.operands = 0b10});
constexpr OpInfo kAveragePoolOp =
    ops::core_op("avg_pool2d", CoreKind::kAvgPool2d, &average_pool_rule);
constexpr OpInfo kAverageGradientOp =
    ops::core_op("avg_pool2d_gradient", CoreKind::kAvgPool2dGradient, &average_pool_gradient_rule);

Value max_gradient(const Value& gradient, const Value& indices, Axes extents,
                   const Attributes& attributes) {
  return record(kMaxGradientOp, {gradient.node(), indices.node()}, extents, gradient.dtype(),
                gradient.device(), attributes);
}
Value average_gradient(const Value& gradient, Axes extents, const Attributes& attributes) {
  return record(kAverageGradientOp, {gradient.node()}, extents, gradient.dtype(), gradient.device(),
                attributes);
}

void check_numbers(const char* op, const Value& x) {
  if (x.dtype() != DType::kBool) return;
  throw DTypeError(fmt::format("[{}] takes numbers, not bools. Use x.to(vkml.uint8)", op));
}

ExtentList pooled_extents(const char* op, const Value& x, const Pool2dParameters& p) {
  if (x.rank() != 4) {
    throw ShapeError(
        fmt::format("[{}] needs input (N, C, H, W), not {}", op, x.shape().to_string()));
  }
  ExtentList extents(x.shape().extents());
  for (int axis = 0; axis < 2; ++axis) {
    const auto i = static_cast<std::size_t>(axis);
    const bool positive = p.kernel[i] > 0 && p.stride[i] > 0 && p.dilation[i] > 0;
    // A window of padding alone has no value: an axis of no elements has no place for it.
    if (!positive || p.padding[i] < 0 ||
        window_count(op, {0, p.kernel[i], 1, p.padding[i], p.dilation[i]}) > 1) {
      throw ArgumentError(fmt::format(
          "[{}] kernel {}, stride {}, dilation {} must be positive and padding {} at most half the "
          "kernel",
          op, p.kernel[i], p.stride[i], p.dilation[i], p.padding[i]));
    }
    extents[2 + axis] = window_count(
        op, {x.shape()[2 + axis], p.kernel[i], p.stride[i], p.padding[i], p.dilation[i]});
    if (extents[2 + axis] == 0) {
      throw ShapeError(
          fmt::format("[{}] the window (kernel {}, dilation {}) is larger than the padded input {}",
                      op, p.kernel[i], p.dilation[i], x.shape().to_string()));
    }
    const std::int64_t room =
        x.shape()[2 + axis] + 2 * p.padding[i] - p.dilation[i] * (p.kernel[i] - 1) - 1;
    if (p.ceil_mode && room % p.stride[i] != 0) {
      // The last window starts inside the image or the padding before it.
      const bool starts_inside =
          extents[2 + axis] * p.stride[i] < x.shape()[2 + axis] + p.padding[i];
      extents[2 + axis] += starts_inside ? 1 : 0;
    }
  }
  return extents;
}

}  // namespace

Value max_pool2d(const Value& x, const Pool2dParameters& p) {
  check_numbers("max_pool2d", x);
  return record(kMaxPoolOp, {x.node()}, pooled_extents("max_pool2d", x, p).span(), x.dtype(),
                x.device(), max_attributes(p));
}
Value max_pool2d_indices(const Value& x, const Pool2dParameters& p) {
  check_numbers("max_pool2d_indices", x);
  const ExtentList extents = pooled_extents("max_pool2d", x, p);
  check_positions("max_pool2d", x.shape()[2] * x.shape()[3]);
  return record(kIndicesOp, {x.node()}, extents.span(), DType::kI32, x.device(), max_attributes(p));
}
Value avg_pool2d(const Value& x, const Pool2dParameters& p) {
  if (!is_floating(x.dtype())) {
    throw DTypeError(fmt::format("[avg_pool2d] takes floats, not {}", name_of(x.dtype())));
  }
  return record(kAveragePoolOp, {x.node()}, pooled_extents("avg_pool2d", x, p).span(), x.dtype(),
                x.device(), average_attributes(p));
}

}  // namespace vkml::graph
