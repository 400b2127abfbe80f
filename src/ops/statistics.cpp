// Norms, counts and quantiles over axes.

#include <algorithm>
#include <cmath>

#include "record.h"
#include "vkml/ops/composites.h"
#include "vkml/ops/ordering.h"

namespace vkml::graph {
namespace {

Value as_float(const char* op, const Value& x) {
  if (!is_floating(x.dtype())) {
    throw DTypeError(
        fmt::format("[{}] takes floats, not {}. Use x.to(vkml.float32)", op, name_of(x.dtype())));
  }
  return cast(x, size_of(x.dtype()) == 2 ? DType::kF32 : x.dtype());
}

/// function(x) where the condition holds, 0 elsewhere, with a gradient of 0 there too.
template <typename Function>
Value guarded(const Value& condition, const Value& x, Function function) {
  const Value one = weak_scalar(1.0, x.device());
  return where_else_zero(condition, function(where(condition, x, one)));
}

}  // namespace

Value standard_deviation(const Value& x, Axes axes, bool keepdim, double correction) {
  const Value spread = variance(as_float("std", x), axes, keepdim, correction);
  return cast(guarded(ne(spread, 0.0), spread, [](const Value& v) { return sqrt(v); }), x.dtype());
}

Value norm(const Value& x, double order, Axes axes, bool keepdim) {
  const Value wide = as_float("norm", x);
  const Value size = abs(wide);
  Value result;
  if (std::isinf(order)) {
    result = order > 0 ? max(size, axes, keepdim) : min(size, axes, keepdim);
  } else if (order == 0) {
    // Rounding has the gradient 0, which a count has too.
    const Value one = weak_scalar(1.0, x.device());
    result = sum(trunc(where(ne(wide, 0.0), one, wide)), axes, keepdim);
  } else if (order == 1) {
    result = sum(size, axes, keepdim);
  } else if (order == 2) {
    const Value total = sum(wide * wide, axes, keepdim);
    result = guarded(ne(total, 0.0), total, [](const Value& v) { return sqrt(v); });
  } else {
    const Value power = weak_scalar(order, x.device());
    const Value root = weak_scalar(1.0 / order, x.device());
    const Value raised =
        order > 0 ? guarded(ne(size, 0.0), size, [&](const Value& v) { return pow(v, power); })
                  : pow(size, power);
    const Value total = sum(raised, axes, keepdim);
    result = guarded(ne(total, 0.0), total, [&](const Value& v) { return pow(v, root); });
  }
  return cast(result, x.dtype());
}

Value count_nonzero(const Value& x, Axes axes, bool keepdim) {
  return sum(cast(cast(x, DType::kBool), DType::kI32), axes, keepdim);
}

Value quantile(const Value& x, double fraction, std::int64_t axis, bool keepdim,
               Interpolation interpolation) {
  if (!(fraction >= 0 && fraction <= 1)) {
    throw ArgumentError(fmt::format("[quantile] {} is outside [0, 1]", fraction));
  }
  const Value wide = as_float("quantile", x);
  const int along = normalize_axis("quantile", axis, x.rank());
  const std::int64_t count = x.shape()[along];
  if (count == 0) {
    throw ShapeError(fmt::format("[quantile] of no elements: shape {}", x.shape().to_string()));
  }
  const double place = fraction * static_cast<double>(count - 1);
  const auto lower = static_cast<std::int64_t>(std::floor(place));
  const std::int64_t upper = std::min(lower + 1, count - 1);
  double weight = place - std::floor(place);
  // An exact half goes to the even one, as rounding does elsewhere.
  if (interpolation == Interpolation::kNearest) {
    weight = std::nearbyint(place) > static_cast<double>(lower) ? 1 : 0;
  }
  if (interpolation == Interpolation::kLower) weight = 0;
  if (interpolation == Interpolation::kHigher) weight = weight > 0 ? 1 : 0;
  if (interpolation == Interpolation::kMidpoint) weight = weight > 0 ? 0.5 : 0;
  const Value order = argsort(detach(wide), along, false);
  const auto element = [&](std::int64_t position) {
    return gather(wide, along, slice(order, along, position, position + 1, 1));
  };
  Value result = element(lower);
  if (weight > 0) {
    const Value above = element(upper);
    result = weight == 1 ? above : result * (1 - weight) + above * weight;
  }
  // NaN is sorted last: the whole axis is NaN when its last element is.
  const Value last = element(count - 1);
  result = where(isnan(last), last, result);
  return cast(keepdim ? result : squeeze(result, along), x.dtype());
}

}  // namespace vkml::graph
