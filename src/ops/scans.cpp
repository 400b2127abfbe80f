// Scans along an axis, with gradients that are scans in the other direction. None of them divides,
// so that products with zeros have their right gradients, of every order.

#include <limits>

#include "record.h"
#include "vkml/ops/core_kind.h"
#include "vkml/ops/functions.h"
#include "vkml/ops/ordering.h"

namespace vkml::graph {
namespace {

using ops::ScanKind;

// attributes: axis, ScanKind.
Value flip(const Value& x, std::int64_t axis) { return slice(x, axis, {}, {}, -1); }

/// Elements moved by one along the axis, towards the end or the start; `fill` comes in.
Value shift(const Value& x, std::int64_t axis, bool to_end, double fill) {
  const std::int64_t extent = x.shape()[static_cast<int>(axis)];
  if (extent == 0) return x;
  const Value rest = to_end ? slice(x, axis, 0, extent - 1, 1) : slice(x, axis, 1, extent, 1);
  ExtentList edge_extents(x.shape().extents());
  edge_extents[static_cast<int>(axis)] = 1;
  const Value edge = full(edge_extents.span(), fill, x.dtype(), x.device());
  const std::array<Value, 2> parts{to_end ? edge : rest, to_end ? rest : edge};
  return concat(parts, axis);
}

/// h_i = g_i + a_(i+1) h_(i+1): what flows back through y_i = a_i y_(i-1) + b_i.
Value backward_recurrence(const Value& a, const Value& g, std::int64_t axis) {
  const Value next = flip(shift(a, axis, false, 0), axis);
  return flip(linear_recurrence(next, flip(g, axis), axis), axis);
}

DType wide_float(DType dtype) { return size_of(dtype) == 2 ? DType::kF32 : dtype; }

void cumsum_rule(const Value& output, const Value& gradient, std::span<Value> gradients) {
  const std::int64_t axis = output->attributes()[0];
  gradients[0] = flip(cumsum(flip(gradient, axis), axis), axis);
}

/// d x_i = (product before i) * h_i, where h flows back through y_i = x_i y_(i-1).
void cumprod_rule(const Value& output, const Value& gradient, std::span<Value> gradients) {
  const std::int64_t axis = output->attributes()[0];
  const DType wide = wide_float(output.dtype());
  const Value x = cast(Value(output->source(0)), wide);
  const Value flowing = backward_recurrence(x, cast(gradient, wide), axis);
  gradients[0] = cast(exclusive_cumprod(x, axis) * flowing, output.dtype());
}

void linear_rule(const Value& output, const Value& gradient, std::span<Value> gradients) {
  const std::int64_t axis = output->attributes()[0];
  const Value flowing = backward_recurrence(Value(output->source(0)), gradient, axis);
  gradients[0] = flowing * shift(output, axis, true, 0);
  gradients[1] = flowing;
}

constexpr OpInfo scan_named(const char* name, GradientRule rule = nullptr,
                            GradientReads reads = {}) {
  return ops::core_op(name, ops::CoreKind::kScan, rule, reads);
}
constexpr OpInfo kCumsumOp = scan_named("cumsum", &cumsum_rule);
constexpr OpInfo kCumprodOp = scan_named("cumprod", &cumprod_rule, {.operands = 0b1});
constexpr OpInfo kLinearOp =
    scan_named("linear_recurrence", &linear_rule, {.operands = 0b1, .output = true});
constexpr OpInfo kArgMaxOp = scan_named("cummax");
constexpr OpInfo kArgMinOp = scan_named("cummin");

Value scan(const OpInfo& op, ScanKind kind, SourceList sources, int axis, DType dtype) {
  const Value x(sources.span()[0]);
  return record(op, std::move(sources), x.shape().extents(), dtype, x.device(),
                {axis, static_cast<std::int64_t>(kind)});
}

DType accumulated(DType dtype) {
  return is_floating(dtype) || dtype == DType::kI64 ? dtype : kDefaultInteger;
}

Value cumulative(const OpInfo& op, ScanKind kind, const Value& given, std::int64_t axis) {
  const int along = normalize_axis(op.name, axis, given.rank());
  const Value x = cast(given, accumulated(given.dtype()));
  return scan(op, kind, {x.node()}, along, x.dtype());
}

Value cumulative_position(const OpInfo& op, ScanKind kind, const Value& given, std::int64_t axis) {
  const int along = normalize_axis(op.name, axis, given.rank());
  check_positions(op.name, given.shape()[along]);
  const Value x = given.dtype() == DType::kBool ? cast(given, DType::kU8) : given;
  return scan(op, kind, {x.node()}, along, DType::kI32);
}

void check_floats(const char* op, const Value& x) {
  if (is_floating(x.dtype())) return;
  throw DTypeError(
      fmt::format("[{}] takes floats, not {}. Use x.to(vkml.float32)", op, name_of(x.dtype())));
}

}  // namespace

Value cumsum(const Value& x, std::int64_t axis) {
  return cumulative(kCumsumOp, ScanKind::kSum, x, axis);
}
Value cumprod(const Value& x, std::int64_t axis) {
  return cumulative(kCumprodOp, ScanKind::kProduct, x, axis);
}
Value exclusive_cumprod(const Value& x, std::int64_t axis) {
  check_floats("cumprod", x);
  const int along = normalize_axis("cumprod", axis, x.rank());
  return shift(cumprod(x, along), along, true, 1);
}

Value linear_recurrence(const Value& a, const Value& b, std::int64_t axis) {
  check_same_device("linear_recurrence", a, b);
  check_floats("linear_recurrence", a);
  if (!a.shape().same_extents(b.shape()) || a.dtype() != b.dtype()) {
    throw ShapeError(fmt::format(
        "[linear_recurrence] a is {} {}, b is {} {}. Both need one shape and one dtype",
        name_of(a.dtype()), a.shape().to_string(), name_of(b.dtype()), b.shape().to_string()));
  }
  const int along = normalize_axis("linear_recurrence", axis, a.rank());
  return scan(kLinearOp, ScanKind::kLinear, {a.node(), b.node()}, along, a.dtype());
}

Value cumulative_argmax(const Value& x, std::int64_t axis) {
  return cumulative_position(kArgMaxOp, ScanKind::kArgMax, x, axis);
}
Value cumulative_argmin(const Value& x, std::int64_t axis) {
  return cumulative_position(kArgMinOp, ScanKind::kArgMin, x, axis);
}

/// With m_i the largest up to i: s_i = exp(m_(i-1) - m_i) s_(i-1) + exp(x_i - m_i), a recurrence
/// whose terms are at most 1; the result m_i + log(s_i) does not depend on m.
Value logcumsumexp(const Value& given, std::int64_t axis) {
  check_floats("logcumsumexp", given);
  const int along = normalize_axis("logcumsumexp", axis, given.rank());
  const Value x = cast(given, wide_float(given.dtype()));
  const double infinity = std::numeric_limits<double>::infinity();
  const Value top = detach(gather(x, along, cumulative_argmax(detach(x), along)));
  const Value before = shift(top, along, true, -infinity);
  const auto finite = [](const Value& v) { return where_else_zero(isfinite(v), v); };
  // Nothing is carried out of a start of -inf: the factor would be infinite, and the sum is 0.
  const Value factor = where_else_zero(before > -infinity, exp(finite(before) - finite(top)));
  const Value sum = linear_recurrence(factor, exp(x - finite(top)), along);
  const Value is_zero = eq(sum, 0.0);
  const Value one = weak_scalar(1.0, x.device());
  const Value least = weak_scalar(-infinity, x.device());
  const Value result = where(is_zero, least, log(where(is_zero, one, sum)) + finite(top));
  return cast(result, given.dtype());
}

}  // namespace vkml::graph
