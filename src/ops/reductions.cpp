// Reductions over any set of axes. Integer sums and products are taken in the default integer (or
// i64 for i64), half floats in f32.

#include "record.h"
#include "vkml/ops/functions.h"
#include "vkml/ops/ordering.h"
#include "vkml/ops/scalar_program.h"

namespace vkml::graph {
namespace {

using ops::ReduceKind;

// attributes: mask of reduced axes, whether they stay with extent 1.
ExtentList reduced_extents(const Shape& shape, std::int64_t mask, bool keepdim) {
  ExtentList extents;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const bool reduced = ((mask >> axis) & 1) != 0;
    if (!reduced) extents.push_back(shape[axis]);
    if (reduced && keepdim) extents.push_back(1);
  }
  return extents;
}

std::int64_t reduced_count(const Shape& shape, std::int64_t mask) {
  std::int64_t count = 1;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (((mask >> axis) & 1) != 0) count *= shape[axis];
  }
  return count;
}

/// A reduction's result or its gradient, with the reduced axes put back as extents of 1.
Value with_kept_axes(const Value& value, const Value& output) {
  const Shape& source = output->source(0)->shape();
  return reshape(value, reduced_extents(source, output->attributes()[0], true).span());
}

void sum_gradient(const Value& output, const Value& gradient, std::span<Value> gradients) {
  gradients[0] =
      broadcast_to(with_kept_axes(gradient, output), output->source(0)->shape().extents());
}

/// Equal extremes share the gradient equally.
void extreme_gradient(const Value& output, const Value& gradient, std::span<Value> gradients) {
  const Value x(output->source(0));
  const Value hit = eq(x, with_kept_axes(output, output));
  ExtentList axes;
  for (int axis = 0; axis < x.rank(); ++axis) {
    if (((output->attributes()[0] >> axis) & 1) != 0) axes.push_back(axis);
  }
  const Value share =
      with_kept_axes(gradient, output) / sum(cast(hit, x.dtype()), axes.span(), true);
  gradients[0] = where_else_zero(hit, broadcast_to(share, x.shape().extents()));
}

/// The first of equal extremes, whose index argmax gives, has the whole gradient.
template <Value (*Index)(const Value&, Axes, bool)>
void first_extreme_gradient(const Value& output, const Value& gradient,
                            std::span<Value> gradients) {
  const Value x(output->source(0));
  const int axis = std::countr_zero(static_cast<std::uint64_t>(output->attributes()[0]));
  const std::int64_t axes[] = {axis};
  const Value place = iota(x.shape().extents(), axis, x.device());
  const Value spread = broadcast_to(with_kept_axes(gradient, output), x.shape().extents());
  gradients[0] = where_else_zero(eq(place, Index(x, Axes(axes), true)), spread);
}

/// The product of the others is that of the elements before times that of those after: without a
/// division, so that zeros have their right gradients, of every order.
void prod_gradient(const Value& output, const Value& gradient, std::span<Value> gradients) {
  const Value given(output->source(0));
  const Value x = cast(given, size_of(given.dtype()) == 2 ? DType::kF32 : given.dtype());
  if (x->numel() <= 1) {
    gradients[0] = x->numel() == 0 ? zeros_like(given) : reshape(gradient, x.shape().extents());
    return;
  }
  ExtentList order, inverse(x.shape().extents()), rows;
  const auto is_reduced = [&](int axis) { return ((output->attributes()[0] >> axis) & 1) != 0; };
  for (const bool reduced : {false, true}) {
    for (int axis = 0; axis < x.rank(); ++axis) {
      if (is_reduced(axis) != reduced) continue;
      inverse[axis] = order.rank;
      order.push_back(axis);
      if (!reduced) rows.push_back(x.shape()[axis]);
    }
  }
  const Value permuted = permute(x, order.span());
  rows.push_back(reduced_count(x.shape(), output->attributes()[0]));
  const Value row = reshape(permuted, rows.span());
  const auto reversed = [](const Value& v) { return slice(v, -1, {}, {}, -1); };
  const Value others = exclusive_cumprod(row, -1) * reversed(exclusive_cumprod(reversed(row), -1));
  const Value by_axis = permute(reshape(others, permuted.shape().extents()), inverse.span());
  gradients[0] = cast(with_kept_axes(cast(gradient, x.dtype()), output) * by_axis, given.dtype());
}

constexpr OpInfo kSum{"sum", Family::kReduce, static_cast<int>(ReduceKind::kSum), &sum_gradient};
constexpr OpInfo kProd{"prod",
                       Family::kReduce,
                       static_cast<int>(ReduceKind::kProd),
                       &prod_gradient,
                       {.operands = 0b1}};
constexpr OpInfo kMax{"max",
                      Family::kReduce,
                      static_cast<int>(ReduceKind::kMax),
                      &extreme_gradient,
                      {.operands = 0b1, .output = true}};
constexpr OpInfo kMin{"min",
                      Family::kReduce,
                      static_cast<int>(ReduceKind::kMin),
                      &extreme_gradient,
                      {.operands = 0b1, .output = true}};
constexpr OpInfo kFirstMax{"max",
                           Family::kReduce,
                           static_cast<int>(ReduceKind::kMax),
                           &first_extreme_gradient<&argmax>,
                           {.operands = 0b1}};
constexpr OpInfo kFirstMin{"min",
                           Family::kReduce,
                           static_cast<int>(ReduceKind::kMin),
                           &first_extreme_gradient<&argmin>,
                           {.operands = 0b1}};
constexpr OpInfo kArgMax{"argmax", Family::kReduce, static_cast<int>(ReduceKind::kArgMax), nullptr};
constexpr OpInfo kArgMin{"argmin", Family::kReduce, static_cast<int>(ReduceKind::kArgMin), nullptr};
constexpr OpInfo kAny{"any", Family::kReduce, static_cast<int>(ReduceKind::kAny), nullptr};
constexpr OpInfo kAll{"all", Family::kReduce, static_cast<int>(ReduceKind::kAll), nullptr};

Value reduce(const OpInfo& op, const Value& x, Axes axes, bool keepdim, DType result) {
  const std::int64_t mask = mask_of(op.name, axes, x.rank());
  return record(op, {x.node()}, reduced_extents(x.shape(), mask, keepdim).span(), result,
                x.device(), {mask, keepdim ? 1 : 0});
}

DType accumulated(DType dtype) {
  return is_floating(dtype) || dtype == DType::kI64 ? dtype : kDefaultInteger;
}

/// Reductions with no identity refuse empty rows.
void check_not_empty(const char* op, const Value& x, Axes axes) {
  const std::int64_t mask = mask_of(op, axes, x.rank());
  if (reduced_count(x.shape(), mask) == 0) {
    throw ShapeError(fmt::format("[{}] of no elements: shape {}", op, x.shape().to_string()));
  }
}

/// What can be ordered: bools as 0 and 1.
Value numbers_of(const Value& x) { return x.dtype() == DType::kBool ? cast(x, DType::kU8) : x; }

Value arg_reduce(const OpInfo& op, const Value& x, Axes axes, bool keepdim) {
  if (axes.size() > 1) throw ArgumentError(fmt::format("[{}] takes one axis or none", op.name));
  check_not_empty(op.name, x, axes);
  check_positions(op.name, reduced_count(x.shape(), mask_of(op.name, axes, x.rank())));
  return reduce(op, numbers_of(x), axes, keepdim, DType::kI32);
}

Value first_extreme(const OpInfo& op, const Value& x, std::int64_t axis, bool keepdim) {
  const std::int64_t axes[] = {axis};
  check_not_empty(op.name, x, axes);
  const Value numbers = numbers_of(x);
  return cast(reduce(op, numbers, axes, keepdim, numbers.dtype()), x.dtype());
}

}  // namespace

Value sum(const Value& x, Axes axes, bool keepdim) {
  const DType dtype = accumulated(x.dtype());
  return reduce(kSum, cast(x, dtype), axes, keepdim, dtype);
}

Value prod(const Value& x, Axes axes, bool keepdim) {
  const DType dtype = accumulated(x.dtype());
  return reduce(kProd, cast(x, dtype), axes, keepdim, dtype);
}

Value mean(const Value& x, Axes axes, bool keepdim) {
  // Halves are summed in f32: 65,536 ones overflow f16.
  const DType result = is_floating(x.dtype()) ? x.dtype() : kDefaultFloat;
  const DType wide = size_of(result) == 2 ? DType::kF32 : result;
  const std::int64_t count = reduced_count(x.shape(), mask_of("mean", axes, x.rank()));
  const Value total = sum(cast(x, wide), axes, keepdim);
  return cast(total / static_cast<double>(count), result);
}

Value max(const Value& x, Axes axes, bool keepdim) {
  check_not_empty("max", x, axes);
  if (x.dtype() == DType::kBool) return any(x, axes, keepdim);
  return reduce(kMax, x, axes, keepdim, x.dtype());
}
Value min(const Value& x, Axes axes, bool keepdim) {
  check_not_empty("min", x, axes);
  if (x.dtype() == DType::kBool) return all(x, axes, keepdim);
  return reduce(kMin, x, axes, keepdim, x.dtype());
}
Value first_max(const Value& x, std::int64_t axis, bool keepdim) {
  return first_extreme(kFirstMax, x, axis, keepdim);
}
Value first_min(const Value& x, std::int64_t axis, bool keepdim) {
  return first_extreme(kFirstMin, x, axis, keepdim);
}
Value argmax(const Value& x, Axes axes, bool keepdim) {
  return arg_reduce(kArgMax, x, axes, keepdim);
}
Value argmin(const Value& x, Axes axes, bool keepdim) {
  return arg_reduce(kArgMin, x, axes, keepdim);
}
Value any(const Value& x, Axes axes, bool keepdim) {
  return reduce(kAny, cast(x, DType::kBool), axes, keepdim, DType::kBool);
}
Value all(const Value& x, Axes axes, bool keepdim) {
  return reduce(kAll, cast(x, DType::kBool), axes, keepdim, DType::kBool);
}

Value sum_to(const Value& x, const Shape& shape) {
  if (x.shape().same_extents(shape)) return x;
  const int added = x.rank() - shape.rank();
  ExtentList axes;
  for (int axis = 0; axis < x.rank(); ++axis) {
    if (axis < added || (shape[axis - added] == 1 && x.shape()[axis] != 1)) axes.push_back(axis);
  }
  const Value total = axes.rank == 0 ? x : sum(x, axes.span(), true);
  return reshape(total, shape.extents());
}

}  // namespace vkml::graph
