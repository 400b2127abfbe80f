// Indexing by data. Indices are checked where they are used, on the device: the first one outside
// its axis raises IndexError when the result is observed, and nothing has been written.

#include <array>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "record.h"
#include "vkml/ops/composites.h"
#include "vkml/ops/core_kind.h"
#include "vkml/ops/functions.h"
#include "vkml/ops/ordering.h"

namespace vkml::graph {
namespace {

using ops::CoreKind;

void gather_rule(const Value& output, const Value& gradient, std::span<Value> gradients) {
  const Value x(output->source(0));
  gradients[0] =
      scatter_add(zeros_like(x), output->attributes()[0], Value(output->source(1)), gradient);
}
void scatter_add_rule(const Value& output, const Value& gradient, std::span<Value> gradients) {
  gradients[0] = gradient;
  gradients[2] = gather(gradient, output->attributes()[0], Value(output->source(1)));
}
/// A gather in the name of the operator that a user called, which errors of its indices carry.
constexpr OpInfo gather_named(const char* name) {
  return ops::core_op(name, CoreKind::kGather, &gather_rule, {.operands = 0b10});
}
constexpr OpInfo kGatherOp = gather_named("gather");
constexpr OpInfo kTakeOps[] = {gather_named("take"), gather_named("index_select"),
                               gather_named("embedding"), gather_named("getitem")};
const OpInfo& take_op(TakeName name) { return kTakeOps[static_cast<std::size_t>(name)]; }

// attributes: axis, ScatterKind.
struct Scattered {
  explicit Scattered(const Value& output)
      : axis(output->attributes()[0]),
        base(output->source(0)),
        index(output->source(1)),
        source(output->source(2)) {}
  std::int64_t axis;
  Value base, index, source;
};

/// The last source element at a place is the one that stays, and gets the gradient.
void scatter_replace_rule(const Value& output, const Value& gradient, std::span<Value> gradients) {
  const Scattered s(output);
  const std::int64_t count[] = {s.source->numel()};
  const Value number = reshape(iota(count, 0, s.source.device()), s.source.shape().extents());
  const Value none = full(s.base.shape().extents(), -1, number.dtype(), s.base.device());
  const Value winner = scatter(none, s.axis, s.index, number, ops::ScatterKind::kReplace);
  const Value is_kept = lt(winner, weak_scalar(std::int64_t{0}, s.base.device()));
  gradients[0] = where_else_zero(is_kept, gradient);
  gradients[2] = where_else_zero(eq(gather(winner, s.axis, s.index), number),
                                 gather(gradient, s.axis, s.index));
}

/// For each source element the product of those that meet it at its place: of those before it in
/// the sorted line times those after it. Without a division, so that zeros need no care in
/// derivatives of any order.
Value product_of_others(const Scattered& s) {
  const Value order = argsort(s.index, s.axis, false);
  const Value places = gather(s.index, s.axis, order);
  const Value elements = gather(s.source, s.axis, order);
  const auto of_earlier = [&](const Value& x, const Value& at) {
    const Value is_same = eq(slice(at, s.axis, 1, {}, 1), slice(at, s.axis, 0, -1, 1));
    const Value earlier = slice(x, s.axis, 0, -1, 1);
    std::vector<std::array<std::int64_t, 2>> before(static_cast<std::size_t>(x.rank()));
    before[static_cast<std::size_t>(s.axis)] = {1, 0};
    const Value factor = pad(where_else_zero(is_same, earlier), before, 0);
    const Value start = pad(cast(logical_not(is_same), x.dtype()), before, 1);
    return linear_recurrence(factor, start, s.axis);
  };
  const std::int64_t axis[] = {s.axis};
  const Value of_later = flip(of_earlier(flip(elements, axis), flip(places, axis)), axis);
  return gather(of_earlier(elements, places) * of_later, s.axis, argsort(order, s.axis, false));
}

void scatter_multiply_rule(const Value& output, const Value& gradient, std::span<Value> gradients) {
  const Scattered s(output);
  const Value one = full(s.base.shape().extents(), 1, s.base.dtype(), s.base.device());
  gradients[0] = gradient * scatter(one, s.axis, s.index, s.source, ops::ScatterKind::kMultiply);
  gradients[2] = gather(gradient * s.base, s.axis, s.index) * product_of_others(s);
}

/// Equal extremes share the gradient equally.
void scatter_extreme_rule(const Value& output, const Value& gradient, std::span<Value> gradients) {
  const Scattered s(output);
  const Value base_hit = eq(s.base, output);
  const Value source_hit = eq(s.source, gather(output, s.axis, s.index));
  const Value hits = scatter_add(cast(base_hit, s.base.dtype()), s.axis, s.index,
                                 cast(source_hit, s.base.dtype()));
  const Value share = gradient / hits;
  gradients[0] = where_else_zero(base_hit, share);
  gradients[2] = where_else_zero(source_hit, gather(share, s.axis, s.index));
}

constexpr OpInfo scatter_named(const char* name, GradientRule rule, GradientReads reads) {
  return ops::core_op(name, CoreKind::kScatter, rule, reads);
}
constexpr OpInfo kScatterAddOp =
    scatter_named("scatter_add", &scatter_add_rule, {.operands = 0b10});
constexpr OpInfo kReplaceOp = scatter_named("scatter", &scatter_replace_rule, {.operands = 0b10});
constexpr OpInfo kMultiplyOp =
    scatter_named("scatter_prod", &scatter_multiply_rule, {.operands = 0b111});
constexpr GradientReads kOfExtremes{.operands = 0b111, .output = true};
constexpr OpInfo kMaxOp = scatter_named("scatter_amax", &scatter_extreme_rule, kOfExtremes);
constexpr OpInfo kMinOp = scatter_named("scatter_amin", &scatter_extreme_rule, kOfExtremes);

const OpInfo& scatter_op(ops::ScatterKind kind) {
  constexpr const OpInfo* kOps[] = {&kScatterAddOp, &kReplaceOp, &kMultiplyOp, &kMaxOp, &kMinOp};
  return *kOps[static_cast<std::size_t>(kind)];
}

/// An operator under the name of the function that a user called. Nodes refer to their operator, so
/// each stays for good; there are as many as functions that are made of gather and scatter.
const OpInfo& renamed(const OpInfo& op, std::string_view name) {
  if (name.empty()) return op;
  static std::mutex mutex;
  static auto& table = *new std::map<std::pair<const OpInfo*, std::string>, OpInfo>;
  const std::scoped_lock lock(mutex);
  const auto [entry, is_new] = table.try_emplace({&op, std::string(name)}, op);
  if (is_new) entry->second.name = entry->first.second.c_str();
  return entry->second;
}

void check_index(const char* op, const Value& x, int axis, const Value& index) {
  check_same_device(op, x, index);
  if (index.dtype() != DType::kI32 && index.dtype() != DType::kI64) {
    throw DTypeError(
        fmt::format("[{}] the index is {}; use int32 or int64", op, name_of(index.dtype())));
  }
  bool fits = index.rank() == x.rank();
  for (int i = 0; fits && i < x.rank(); ++i) fits = i == axis || index.shape()[i] <= x.shape()[i];
  if (!fits) {
    throw ShapeError(
        fmt::format("[{}] an index of shape {} does not fit a tensor of shape {} along "
                    "axis {}",
                    op, index.shape().to_string(), x.shape().to_string(), axis));
  }
}

Value gather_as(const OpInfo& op, const Value& x, std::int64_t axis, const Value& index) {
  const int along = normalize_axis(op.name, axis, x.rank());
  check_index(op.name, x, along, index);
  return record(op, {x.node(), index.node()}, index.shape().extents(), x.dtype(), x.device(),
                {along});
}

}  // namespace

Value gather(const Value& x, std::int64_t axis, const Value& index, std::string_view name) {
  return gather_as(renamed(kGatherOp, name), x, axis, index);
}

Value scatter(const Value& base, std::int64_t axis, const Value& index, const Value& source,
              ops::ScatterKind kind, std::string_view name) {
  const OpInfo& op = renamed(scatter_op(kind), name);
  const int along = normalize_axis(op.name, axis, base.rank());
  check_index(op.name, base, along, index);
  check_same_device(op.name, base, source);
  if (!source.shape().same_extents(index.shape())) {
    throw ShapeError(fmt::format("[{}] the index has shape {}, the source {}", op.name,
                                 index.shape().to_string(), source.shape().to_string()));
  }
  // A bool has no arithmetic of its own.
  if (base.dtype() == DType::kBool) {
    return cast(scatter(cast(base, DType::kU8), axis, index, cast(source, DType::kU8), kind, name),
                DType::kBool);
  }
  return record(op, {base.node(), index.node(), cast(source, base.dtype()).node()},
                base.shape().extents(), base.dtype(), base.device(),
                {along, static_cast<std::int64_t>(kind)});
}

Value scatter_add(const Value& base, std::int64_t axis, const Value& index, const Value& source) {
  return scatter(base, axis, index, source, ops::ScatterKind::kAdd);
}

namespace {

/// Whether -1 is the last place, as in an index of Python's; PyTorch's operators refuse it.
bool counts_from_end(TakeName kind) {
  return kind == TakeName::kTake || kind == TakeName::kGetItem;
}

/// Places on an axis, of which negative ones count from its end, counted from its start. What lies
/// before the start stays as it is, so that the error names the index as it was given.
Value places_from_start(const Value& indices, std::int64_t axis_extent) {
  const Value zero = weak_scalar(std::int64_t{0}, indices.device());
  const Value extent = weak_scalar(axis_extent, indices.device());
  const bool narrow = indices.dtype() == DType::kU8 || !number_fits(extent, indices.dtype());
  const Value wide = narrow ? cast(indices, extent.dtype()) : indices;
  const Value from_end = bitwise_and(lt(wide, zero), ge(wide, neg(extent)));
  return where(from_end, wide + extent, wide);
}

}  // namespace

Value take(const Value& x, const Value& indices, std::int64_t axis, TakeName kind,
           std::string_view name) {
  const OpInfo& op = renamed(take_op(kind), name);
  const int along = normalize_axis(op.name, axis, x.rank());
  check_same_device(op.name, x, indices);
  if (x.rank() - 1 + indices.rank() > kMaxDims) {
    throw ShapeError(fmt::format("[{}] rank {} exceeds kMaxDims={}", op.name,
                                 x.rank() - 1 + indices.rank(), kMaxDims));
  }
  // A number of its own for every element along the other axes: a view of the flat indices.
  const std::int64_t count = indices->numel();
  ExtentList column;
  ExtentList repeated;
  ExtentList result;
  for (int i = 0; i < x.rank(); ++i) {
    column.push_back(i == along ? count : 1);
    repeated.push_back(i == along ? count : x.shape()[i]);
    if (i != along) {
      result.push_back(x.shape()[i]);
    } else {
      for (const std::int64_t extent : indices.shape().extents()) result.push_back(extent);
    }
  }
  if (is_floating(indices.dtype()) || indices.dtype() == DType::kBool) {
    throw DTypeError(fmt::format("[{}] the indices are {}; use int32 or int64", op.name,
                                 name_of(indices.dtype())));
  }
  const Value places = counts_from_end(kind) ? places_from_start(indices, x.shape()[along])
                       : indices.dtype() == DType::kU8 ? cast(indices, DType::kI32)
                                                       : indices;
  const Value index = broadcast_to(reshape(places, column.span()), repeated.span());
  return reshape(gather_as(op, x, along, index), result.span());
}

Value check_range(const OpInfo& op, const Value& x, std::int64_t extent, std::int64_t exempt) {
  return record(op, {x.node()}, x.shape().extents(), x.dtype(), x.device(), {extent, exempt});
}

Value check_values(const OpInfo& op, const Value& x) {
  return record(op, {x.node()}, x.shape().extents(), x.dtype(), x.device());
}

}  // namespace vkml::graph
