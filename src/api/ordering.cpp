// Sorting and what follows from it. Where the number of results depends on values, the operands are
// computed and the count is read: those functions wait.

#include <fmt/format.h>

#include <algorithm>

#include "record_tensor.h"
#include "vkml/api/structure.h"
#include "vkml/ops/composites.h"
#include "vkml/ops/ordering.h"

namespace vkml {
namespace {

using graph::Value;

Tensor flat_of(const Tensor& x) { return reshape(x, {x.numel()}); }

/// The elements at positions along an axis; the gradient flows back through them.
Ranked ranked_at(const Value& x, std::int64_t axis, const Value& indices, bool keepdim) {
  const Value values = graph::gather(x, axis, indices);
  const auto shown = [&](const Value& v) { return keepdim ? v : graph::squeeze(v, axis); };
  return {record(shown(values)), record(shown(indices))};
}

/// Runs of equal neighbours: where each begins, the number of the run at each place, its length.
struct Runs {
  Tensor first, number, length;
};

/// `differs` says of each of `count` places but the first whether it begins a run.
Runs runs_of(const Tensor& differs, std::int64_t count) {
  const Tensor none = zeros({0}, DType::kI64, differs.device());
  if (count == 0) return {none, none, none};
  const Tensor starts =
      concat(std::vector<Tensor>{full({1}, 1, DType::kBool, differs.device()), differs});
  const Tensor first = reshape(nonzero(starts), {-1});
  const Tensor past = concat(
      std::vector<Tensor>{slice(first, 0, 1, {}), full({1}, count, DType::kI64, differs.device())});
  return {first, to(cumsum(starts, 0), DType::kI64) - Tensor(1), past - first};
}

/// Distinct values of a vector in which equals are neighbours.
Unique distinct_neighbours(const Tensor& line) {
  // A NaN differs from everything, itself included, as in NumPy before 1.21 and PyTorch.
  const Runs runs = runs_of(ne(slice(line, 0, 1, {}), slice(line, 0, 0, -1)), line.numel());
  return {take(line, runs.first, 0), runs.number, runs.length};
}

/// Slices along an axis as rows, (slices, elements of each).
Tensor rows_of(const Tensor& x, int axis) {
  const std::int64_t count = x.shape()[axis];
  const std::int64_t width = x.numel() / std::max<std::int64_t>(count, 1);
  return reshape(movedim(x.detach(), {axis}, {0}), {count, width});
}

/// Distinct slices of x, whose equals are neighbours in an order.
Unique distinct_slices(const Tensor& x, int axis, const Tensor& order) {
  const Tensor rows = take(rows_of(x, axis), order, 0);
  const Tensor differs = any(ne(slice(rows, 0, 1, {}), slice(rows, 0, 0, -1)), {1});
  const Runs runs = runs_of(differs, rows.size(0));
  return {take(x.detach(), take(order, runs.first, 0), axis), runs.number, runs.length};
}

Tensor places_along(const Tensor& x, int axis) {
  return arange(0, static_cast<double>(x.shape()[axis]), 1, DType::kI64, x.device());
}

}  // namespace

Tensor argsort(const Tensor& x, std::int64_t axis, bool descending) {
  if (x.rank() == 0) return zeros({}, DType::kI32, x.device());
  return record(graph::argsort(graph::detach(x.value()), axis, descending));
}

Ranked sort(const Tensor& x, std::int64_t axis, bool descending) {
  if (x.rank() == 0) return {to_copy(x), argsort(x, axis, descending)};
  const Value value = x.value();
  return ranked_at(value, axis, graph::argsort(graph::detach(value), axis, descending), true);
}

Ranked topk(const Tensor& x, std::int64_t count, std::int64_t axis, bool largest) {
  const int along = normalize_axis("topk", axis, x.rank());
  if (count < 0 || count > x.shape()[along]) {
    throw ArgumentError(
        fmt::format("[topk] {} elements of an axis of extent {}", count, x.shape()[along]));
  }
  const Value value = x.value();
  const Value order = graph::argsort(graph::detach(value), along, largest);
  return ranked_at(value, along, graph::slice(order, along, 0, count, 1), true);
}

Ranked kthvalue(const Tensor& x, std::int64_t position, std::int64_t axis, bool keepdim) {
  const int along = normalize_axis("kthvalue", axis, x.rank());
  if (position < 1 || position > x.shape()[along]) {
    throw ArgumentError(
        fmt::format("[kthvalue] position {} is not in [1, {}]", position, x.shape()[along]));
  }
  const Value value = x.value();
  const Value order = graph::argsort(graph::detach(value), along, false);
  return ranked_at(value, along, graph::slice(order, along, position - 1, position, 1), keepdim);
}

Ranked median(const Tensor& x, std::int64_t axis, bool keepdim) {
  const int along = normalize_axis("median", axis, x.rank());
  const std::int64_t count = x.shape()[along];
  if (count == 0) {
    throw ShapeError(fmt::format("[median] of no elements: shape {}", x.shape().to_string()));
  }
  const Value value = x.value();
  const Value order = graph::argsort(graph::detach(value), along, false);
  const auto at = [&](std::int64_t place) {
    return graph::slice(order, along, place, place + 1, 1);
  };
  Value index = at((count - 1) / 2);
  if (is_floating(x.dtype())) {
    // NaN is sorted last.
    const Value last = at(count - 1);
    index =
        graph::where(graph::isnan(graph::gather(graph::detach(value), along, last)), last, index);
  }
  return ranked_at(value, along, index, keepdim);
}

Tensor searchsorted(const Tensor& sorted, const Tensor& values, bool right) {
  const Value numbers = values.value();
  if (numbers.rank() > 0) return record(graph::search_sorted(sorted.value(), numbers, right));
  const std::int64_t one[] = {1};
  return record(graph::reshape(
      graph::search_sorted(sorted.value(), graph::reshape(numbers, one), right), {}));
}

Unique unique(const Tensor& x) {
  const Tensor line = flat_of(x.detach());
  const Ranked sorted = sort(line, 0);
  const Unique distinct = distinct_neighbours(sorted.values);
  // The inverse is known in sorted order; it goes back to where the elements were.
  const Tensor inverse = scatter(zeros({x.numel()}, DType::kI64, x.device()), 0, sorted.indices,
                                 distinct.inverse, ScatterKind::kReplace);
  return {distinct.values, reshape(inverse, x.extents()), distinct.counts};
}

Unique unique_consecutive(const Tensor& x) {
  const Unique distinct = distinct_neighbours(flat_of(x.detach()));
  return {distinct.values, reshape(distinct.inverse, x.extents()), distinct.counts};
}

Unique unique(const Tensor& x, std::int64_t axis) {
  const int along = normalize_axis("unique", axis, x.rank());
  const Tensor rows = rows_of(x, along);
  // Stable sorts by the last element, then the one before it, and so on.
  Tensor order = places_along(x, along);
  for (std::int64_t column = rows.size(1); column-- > 0;) {
    const Tensor key = take(reshape(slice(rows, 1, column, column + 1), {-1}), order, 0);
    order = take(order, argsort(key, 0), 0);
  }
  const Unique distinct = distinct_slices(x, along, order);
  const Tensor inverse = scatter(zeros({rows.size(0)}, DType::kI64, x.device()), 0, order,
                                 distinct.inverse, ScatterKind::kReplace);
  return {distinct.values, inverse, distinct.counts};
}

Unique unique_consecutive(const Tensor& x, std::int64_t axis) {
  const int along = normalize_axis("unique_consecutive", axis, x.rank());
  return distinct_slices(x, along, places_along(x, along));
}

Tensor bincount(const Tensor& x, const Tensor& weights, std::int64_t least) {
  if (x.rank() != 1 || is_floating(x.dtype()) || x.dtype() == DType::kBool) {
    throw ArgumentError(fmt::format("[bincount] needs a vector of integers, not {} {}",
                                    name_of(x.dtype()), x.shape().to_string()));
  }
  const std::int64_t found = x.numel() == 0 ? 0 : max(x).item_integer() + 1;
  const std::int64_t bins = std::max(found, least);
  if (x.numel() > 0 && min(x).item_integer() < 0) {
    throw ArgumentError(
        fmt::format("[bincount] the integer {} is negative", min(x).item_integer()));
  }
  const Tensor ones_or_weights =
      weights.is_defined() ? weights : ones({x.numel()}, DType::kI64, x.device());
  if (bins == 0) return zeros({0}, ones_or_weights.dtype(), x.device());
  // Two sorted searches count without a scatter, whose every bin would look at every element.
  if (!weights.is_defined()) {
    const Tensor sorted = sort(to(x, DType::kI64), 0).values;
    const Tensor bin = arange(0, static_cast<double>(bins), 1, DType::kI64, x.device());
    return to(searchsorted(sorted, bin, true) - searchsorted(sorted, bin, false), DType::kI64);
  }
  return scatter_add(zeros({bins}, weights.dtype(), x.device()), 0, to(x, DType::kI64), weights);
}

Tensor histogram(const Tensor& x, const Tensor& edges, const Tensor& weights) {
  if (edges.rank() != 1 || edges.numel() < 2) {
    throw ShapeError(fmt::format("[histogram] needs at least two edges, not shape {}",
                                 edges.shape().to_string()));
  }
  const std::int64_t bins = edges.numel() - 1;
  const Tensor line = flat_of(x);
  const Ranked sorted = sort(line.detach(), 0);
  // Elements below each edge; the last edge itself counts.
  const Tensor below = concat(
      std::vector<Tensor>{searchsorted(sorted.values, slice(edges, 0, 0, bins), false),
                          searchsorted(sorted.values, slice(edges, 0, bins, bins + 1), true)});
  if (!weights.is_defined()) {
    return to(slice(below, 0, 1, {}) - slice(below, 0, 0, bins), DType::kF32);
  }
  const Tensor sums = cumsum(take(flat_of(weights), sorted.indices, 0), 0);
  const Tensor from_zero = concat(std::vector<Tensor>{zeros({1}, sums.dtype(), x.device()), sums});
  const Tensor at_edges = take(from_zero, below, 0);
  return slice(at_edges, 0, 1, {}) - slice(at_edges, 0, 0, bins);
}

Tensor repeat_interleave(const Tensor& x, const Tensor& counts, std::int64_t axis) {
  const int along = normalize_axis("repeat_interleave", axis, x.rank());
  const std::int64_t extent = x.shape()[along];
  if (counts.rank() > 1 || (counts.numel() != extent && counts.numel() != 1)) {
    throw ShapeError(fmt::format("[repeat_interleave] counts of shape {} for an axis of extent {}",
                                 counts.shape().to_string(), extent));
  }
  const Tensor ends = cumsum(to(broadcast_to(counts, {extent}), DType::kI64), 0);
  if (extent == 0) return x;
  const std::int64_t total = slice(ends, 0, extent - 1, extent).item_integer();
  const Tensor place = arange(0, static_cast<double>(total), 1, DType::kI64, x.device());
  return take(x, searchsorted(ends, place, true), along);
}

}  // namespace vkml
