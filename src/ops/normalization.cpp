// Softmax and normalisation: row expressions that the fuser makes one kernel of. Each states its
// own gradient, so that the backward pass is one row expression too.

#include <algorithm>
#include <bit>

#include "record.h"
#include "vkml/ops/functions.h"

namespace vkml::graph {
namespace {

// attributes of the rules here: mask of the axes, then the bits of epsilon where there is one.
ExtentList axes_of(std::int64_t mask, int rank) {
  ExtentList axes;
  for (int axis = 0; axis < rank; ++axis) {
    if (((mask >> axis) & 1) != 0) axes.push_back(axis);
  }
  return axes;
}

DType wide_float(DType dtype) { return size_of(dtype) == 2 ? DType::kF32 : dtype; }

Value as_float(const char* op, const Value& x) {
  if (!is_floating(x.dtype())) {
    throw DTypeError(fmt::format("[{}] takes floats, not {}", op, name_of(x.dtype())));
  }
  return cast(x, wide_float(x.dtype()));
}

void softmax_rule(const Value& output, const Value& gradient, std::span<Value> gradients) {
  const ExtentList axes = axes_of(output->attributes()[0], output.rank());
  const DType wide = wide_float(output.dtype());
  const Value y = cast(output, wide);
  const Value g = cast(gradient, wide);
  gradients[1] = cast(y * (g - sum(g * y, axes.span(), true)), output.dtype());
}
constexpr OpInfo kSoftmaxOp{"softmax", Family::kCustom, 0, &softmax_rule, {.output = true}};

void log_softmax_rule(const Value& output, const Value& gradient, std::span<Value> gradients) {
  const ExtentList axes = axes_of(output->attributes()[0], output.rank());
  const DType wide = wide_float(output.dtype());
  const Value g = cast(gradient, wide);
  const Value y = cast(output, wide);
  gradients[1] = cast(g - exp(y) * sum(g, axes.span(), true), output.dtype());
}
constexpr OpInfo kLogSoftmaxOp{
    "log_softmax", Family::kCustom, 0, &log_softmax_rule, {.output = true}};

/// The row maximum, or 0 where it is infinite: exp(x - shift) is then right for infinite rows too.
Value finite_shift(const Value& wide, Axes axes) {
  // No elements have no largest; the sum of their exponentials is 0.
  if (wide->numel() == 0) return scalar(0, wide.dtype(), wide.device());
  const Value top = max(wide, axes, true);
  return where_else_zero(isfinite(top), top);
}

void logsumexp_rule(const Value& output, const Value& gradient, std::span<Value> gradients) {
  const Value x(output->source(1));
  const DType wide = wide_float(x.dtype());
  const ExtentList axes = axes_of(output->attributes()[0], x.rank());
  const Value rows = cast(x, wide);
  const Value shift = finite_shift(rows, axes.span());
  const Value e = exp(rows - shift);
  ExtentList kept(x.shape().extents());
  for (int i = 0; i < axes.rank; ++i)
    kept[static_cast<int>(axes.values[static_cast<std::size_t>(i)])] = 1;
  const Value g = reshape(cast(gradient, wide), kept.span());
  gradients[1] = cast(g * (e / sum(e, axes.span(), true)), x.dtype());
}
constexpr OpInfo kLogSumExpOp{"logsumexp", Family::kCustom, 0, &logsumexp_rule, {.operands = 0b10}};

struct Moments {
  Value centred, inverse_deviation;
};
Moments moments_of(const Value& wide, Axes axes, double epsilon) {
  const Value centred = wide - mean(wide, axes, true);
  return {centred, rsqrt(mean(centred * centred, axes, true) + epsilon)};
}

/// d x = s (g - mean(g) - y mean(g y)), with s the inverse deviation.
void normalize_rule(const Value& output, const Value& gradient, std::span<Value> gradients) {
  const Value x(output->source(1));
  const DType wide = wide_float(x.dtype());
  const ExtentList axes = axes_of(output->attributes()[0], x.rank());
  const double epsilon = std::bit_cast<double>(output->attributes()[1]);
  const Moments moments = moments_of(cast(x, wide), axes.span(), epsilon);
  const Value y = moments.centred * moments.inverse_deviation;
  const Value g = cast(gradient, wide);
  const Value inner = g - mean(g, axes.span(), true) - y * mean(g * y, axes.span(), true);
  gradients[1] = cast(moments.inverse_deviation * inner, x.dtype());
}
constexpr OpInfo kNormalizeOp{"normalize", Family::kCustom, 0, &normalize_rule, {.operands = 0b10}};

}  // namespace

Value softmax(const Value& x, std::int64_t axis) {
  const std::int64_t mask = std::int64_t{1} << normalize_axis("softmax", axis, x.rank());
  const ExtentList axes = axes_of(mask, x.rank());
  Value y;
  {
    const GradientMode without_gradients(false);
    const Value wide = as_float("softmax", x);
    if (x->numel() == 0) return x;
    const Value e = exp(wide - max(wide, axes.span(), true));
    // One division a row.
    y = cast(e * reciprocal(sum(e, axes.span(), true)), x.dtype());
  }
  return with_gradient(kSoftmaxOp, y, std::span(&x, 1), {mask});
}

Value log_softmax(const Value& x, std::int64_t axis) {
  const std::int64_t mask = std::int64_t{1} << normalize_axis("log_softmax", axis, x.rank());
  const ExtentList axes = axes_of(mask, x.rank());
  Value y;
  {
    const GradientMode without_gradients(false);
    const Value wide = as_float("log_softmax", x);
    if (x->numel() == 0) return x;
    const Value shifted = wide - max(wide, axes.span(), true);
    y = cast(shifted - log(sum(exp(shifted), axes.span(), true)), x.dtype());
  }
  return with_gradient(kLogSoftmaxOp, y, std::span(&x, 1), {mask});
}

Value logsumexp(const Value& given_x, Axes given, bool keepdim) {
  const Value x = is_floating(given_x.dtype()) ? given_x : cast(given_x, kDefaultFloat);
  const std::int64_t mask = mask_of("logsumexp", given, x.rank());
  const ExtentList axes = axes_of(mask, x.rank());
  Value y;
  {
    const GradientMode without_gradients(false);
    const Value wide = as_float("logsumexp", x);
    const Value shift = finite_shift(wide, axes.span());
    const Value total = log(sum(exp(wide - shift), axes.span(), true)) + shift;
    ExtentList extents;
    for (int axis = 0; axis < x.rank(); ++axis) {
      if (((mask >> axis) & 1) == 0) extents.push_back(x.shape()[axis]);
    }
    y = cast(keepdim ? total : reshape(total, extents.span()), x.dtype());
  }
  return with_gradient(kLogSumExpOp, y, std::span(&x, 1), {mask});
}

Value normalize(const Value& x, Axes given, double epsilon) {
  const std::int64_t mask = mask_of("normalize", given, x.rank());
  const ExtentList axes = axes_of(mask, x.rank());
  Value y;
  {
    const GradientMode without_gradients(false);
    const Moments moments = moments_of(as_float("normalize", x), axes.span(), epsilon);
    y = cast(moments.centred * moments.inverse_deviation, x.dtype());
  }
  return with_gradient(kNormalizeOp, y, std::span(&x, 1),
                       {mask, std::bit_cast<std::int64_t>(epsilon)});
}

Value variance(const Value& x, Axes given, bool keepdim, double correction) {
  const Value wide = as_float("var", x);
  const ExtentList axes = axes_of(mask_of("var", given, x.rank()), x.rank());
  std::int64_t count = 1;
  for (int i = 0; i < axes.rank; ++i) {
    count *= x.shape()[static_cast<int>(axes.values[static_cast<std::size_t>(i)])];
  }
  const Value centred = wide - mean(wide, axes.span(), true);
  const double degrees = std::max(0.0, static_cast<double>(count) - correction);
  return cast(sum(centred * centred, axes.span(), keepdim) / degrees, x.dtype());
}

}  // namespace vkml::graph
