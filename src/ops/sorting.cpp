// Positions that sort an axis, and places in sorted values. Values move by gather, whose gradient
// is a scatter: sorting needs no gradient rule of its own.

#include "record.h"
#include "vkml/ops/core_kind.h"
#include "vkml/ops/functions.h"
#include "vkml/ops/ordering.h"

namespace vkml::graph {
namespace {

constexpr OpInfo kArgSortOp = ops::core_op("argsort", ops::CoreKind::kArgSort);
constexpr OpInfo kSearchSortedOp = ops::core_op("searchsorted", ops::CoreKind::kSearchSorted);

Value as_numbers(const Value& x) { return x.dtype() == DType::kBool ? cast(x, DType::kU8) : x; }

}  // namespace

Value argsort(const Value& given, std::int64_t axis, bool descending) {
  const int along = normalize_axis("argsort", axis, given.rank());
  check_positions("argsort", given.shape()[along]);
  const Value x = as_numbers(given);
  return record(kArgSortOp, {x.node()}, x.shape().extents(), DType::kI32, x.device(),
                {along, descending ? 1 : 0});
}

Value search_sorted(const Value& sorted, const Value& values, bool right) {
  check_same_device("searchsorted", sorted, values);
  bool fits = sorted.rank() == 1 || sorted.rank() == values.rank();
  for (int axis = 0; fits && sorted.rank() > 1 && axis + 1 < sorted.rank(); ++axis) {
    fits = sorted.shape()[axis] == values.shape()[axis];
  }
  if (!fits || values.rank() == 0) {
    throw ShapeError(fmt::format(
        "[searchsorted] sorted values of shape {} do not fit values of shape {}. They need one "
        "axis, or all but the last in common",
        sorted.shape().to_string(), values.shape().to_string()));
  }
  check_positions("searchsorted", sorted.shape()[sorted.rank() - 1] + 1);
  const DType dtype = promote(sorted.dtype(), values.dtype());
  const Value lines = as_numbers(cast(sorted, dtype));
  const Value numbers = as_numbers(cast(values, dtype));
  return record(kSearchSortedOp, {lines.node(), numbers.node()}, values.shape().extents(),
                DType::kI32, values.device(), {right ? 1 : 0});
}

}  // namespace vkml::graph
