// Selection by integer tensors and boolean masks. Several indices become one: the indexed axes are
// brought together and merged, and the index into them is the sum of the single ones times their
// strides, so that reading is one gather and writing one scatter.

#include <fmt/format.h>

#include <algorithm>
#include <variant>

#include "indexing.h"
#include "record_tensor.h"
#include "vkml/api/structure.h"
#include "vkml/ops/composites.h"
#include "vkml/ops/ordering.h"

namespace vkml {
namespace {

using graph::Value;

/// The checks of positions, in the names of the operators that take them; errors of shapes and
/// dtypes carry the same names.
constexpr graph::OpInfo check_of(const char* name) {
  return {name, graph::Family::kCheck, 0, nullptr};
}
constexpr graph::OpInfo kGet = check_of("getitem");
constexpr graph::OpInfo kSet = check_of("setitem");
constexpr graph::OpInfo kPut = check_of("index_put");
constexpr graph::OpInfo kMaskedScatter = check_of("masked_scatter");

Extents extents_of(const Value& x) {
  return Extents(x.shape().extents().begin(), x.shape().extents().end());
}

std::int64_t product(std::span<const std::int64_t> extents) {
  std::int64_t count = 1;
  for (const std::int64_t extent : extents) count *= extent;
  return count;
}

/// Positions in row-major order of the elements that are true; waits for their number.
Value true_positions(const Tensor& mask) {
  const Tensor flat = reshape(mask, {mask.numel()});
  const std::int64_t extent = flat.numel();
  if (extent == 0) return graph::full(Extents{0}, 0, DType::kI64, mask.device());
  const Tensor ends = cumsum(to(flat, DType::kBool), 0);
  const std::int64_t count = slice(ends, 0, extent - 1, extent).item_integer();
  // The k-th true element is where the running count first reaches k.
  const Tensor number = arange(1, static_cast<double>(count) + 1, 1, ends.dtype(), mask.device());
  return graph::cast(searchsorted(ends, number).value(), DType::kI64);
}

/// The coordinate along each axis of positions in row-major order.
std::vector<Value> unravelled(const Value& positions, const Extents& extents) {
  std::vector<Value> coordinates(extents.size());
  Value rest = positions;
  for (std::size_t axis = extents.size(); axis-- > 0;) {
    const Value extent =
        graph::weak_scalar(std::max<std::int64_t>(extents[axis], 1), positions.device());
    coordinates[axis] = graph::remainder(rest, extent);
    rest = graph::floor_divide(rest, extent);
  }
  return coordinates;
}

bool is_mask(const Tensor& index) { return index.is_defined() && index.dtype() == DType::kBool; }

/// Masks become the coordinates of their true elements.
std::vector<Value> without_masks(const graph::OpInfo& op, const Tensor& x,
                                 std::span<const Tensor> indices) {
  std::vector<Value> result;
  for (const Tensor& index : indices) {
    if (!is_mask(index)) {
      result.push_back(index.is_defined() ? index.value() : Value());
      continue;
    }
    const auto first = static_cast<int>(result.size());
    for (int axis = 0; axis < index.rank(); ++axis) {
      if (first + axis < x.rank() && x.shape()[first + axis] == index.shape()[axis]) continue;
      throw IndexError(fmt::format("[{}] a mask of shape {} does not match shape {} from axis {}",
                                   op.name, index.shape().to_string(), x.shape().to_string(),
                                   first));
    }
    for (const Value& coordinate : unravelled(true_positions(index), extents_of(index.value()))) {
      result.push_back(coordinate);
    }
  }
  return result;
}

/// An index with negative positions counted from the end, checked on the device. What lies before
/// the start stays as it is, so that the error names the index as it was given.
Value resolved(const graph::OpInfo& op, const Value& index, std::int64_t extent) {
  const bool is_integer = !is_floating(index.dtype()) && index.dtype() != DType::kBool;
  if (!is_integer) {
    throw DTypeError(fmt::format("[{}] the indices are {}; use int32, int64 or bool", op.name,
                                 name_of(index.dtype())));
  }
  const Value wide = index.dtype() == DType::kU8 ? graph::cast(index, DType::kI32) : index;
  const Value zero = graph::weak_scalar(std::int64_t{0}, index.device());
  const Value lowest = graph::weak_scalar(-extent, index.device());
  const Value is_from_end = graph::logical_and(graph::lt(wide, zero), graph::ge(wide, lowest));
  const Value from_start =
      graph::where(is_from_end, wide + graph::weak_scalar(extent, index.device()), wide);
  return graph::check_range(op, from_start, extent, extent == 0 ? -1 : 0);
}

/// How several indices on x become one on its merged axes.
struct MergedIndex {
  Extents order;            // x's axes with the indexed ones next to each other
  Extents permuted;         // x's extents in that order
  Extents before, after;    // extents around the indexed axes
  std::int64_t merged = 1;  // product of the indexed extents
  Extents index_extents;    // what the indices broadcast to
  Value index;              // flat
  Value single;             // as it was given, where there is one alone

  Extents result_extents() const {
    Extents extents = before;
    extents.insert(extents.end(), index_extents.begin(), index_extents.end());
    extents.insert(extents.end(), after.begin(), after.end());
    return extents;
  }
};

/// Indices of other devices are moved to that of x.
MergedIndex merge(const graph::OpInfo& op, const Value& x, std::vector<Value> indices) {
  if (static_cast<int>(indices.size()) > x.rank()) {
    throw IndexError(
        fmt::format("[{}] {} indices for a tensor of rank {}", op.name, indices.size(), x.rank()));
  }
  std::vector<int> indexed, others;
  for (int axis = 0; axis < x.rank(); ++axis) {
    const auto i = static_cast<std::size_t>(axis);
    (i < indices.size() && indices[i] ? indexed : others).push_back(axis);
  }
  if (indexed.empty()) {
    throw IndexError(fmt::format("[{}] needs at least one index tensor", op.name));
  }
  const bool adjacent = indexed.back() - indexed.front() + 1 == static_cast<int>(indexed.size());
  MergedIndex result;
  for (const int axis : others) {
    const bool is_before = adjacent && axis < indexed.front();
    (is_before ? result.before : result.after).push_back(x.shape()[axis]);
    if (is_before) result.order.push_back(axis);
  }
  for (const int axis : indexed) result.order.push_back(axis);
  for (const int axis : others) {
    if (!adjacent || axis > indexed.front()) result.order.push_back(axis);
  }
  for (const std::int64_t axis : result.order) {
    result.permuted.push_back(x.shape()[static_cast<int>(axis)]);
  }
  for (const int axis : indexed) {
    const std::int64_t extent = x.shape()[axis];
    Value& given = indices[static_cast<std::size_t>(axis)];
    if (given.device() != x.device()) given = to(record(given), x.device()).value();
    const Value own = resolved(op, given, extent);
    result.index = result.index ? result.index * graph::weak_scalar(extent, x.device()) + own : own;
    result.merged *= extent;
  }
  if (indexed.size() == 1) result.single = indices[static_cast<std::size_t>(indexed[0])];
  result.index_extents = extents_of(result.index);
  return result;
}

Value merged_axes(const Value& x, const MergedIndex& by) {
  Extents extents = by.before;
  extents.push_back(by.merged);
  extents.insert(extents.end(), by.after.begin(), by.after.end());
  return graph::reshape(graph::permute(x, by.order), extents);
}

/// Values as the result's elements; leading axes of 1 may be more than it has.
Value broadcast_values(const char* op, const Value& values, const Extents& extents, DType dtype) {
  Value result = graph::cast_operand(op, values, dtype);
  while (result.rank() > static_cast<int>(extents.size()) && result.shape()[0] == 1) {
    result = graph::squeeze(result, 0);
  }
  return graph::broadcast_to(result, extents);
}

Value put(const graph::OpInfo& op, const Tensor& tensor, std::span<const Tensor> indices,
          const Value& values, bool accumulate) {
  const Value x = tensor.value();
  const MergedIndex by = merge(op, x, without_masks(op, tensor, indices));
  const std::int64_t outer = product(by.before);
  const std::int64_t inner = product(by.after);
  const std::int64_t count = product(by.index_extents);
  const Extents lines{outer, count, inner};
  const Value source = graph::reshape(
      broadcast_values(op.name, on_device(values, x.device()), by.result_extents(), x.dtype()),
      lines);
  const Value index = graph::broadcast_to(graph::reshape(by.index, Extents{1, count, 1}), lines);
  const Value base = graph::reshape(merged_axes(x, by), Extents{outer, by.merged, inner});
  const Value written = graph::scatter(base, 1, index, source,
                                       accumulate ? ScatterKind::kAdd : ScatterKind::kReplace);
  Extents inverse(by.order.size());
  for (std::size_t i = 0; i < by.order.size(); ++i) {
    inverse[static_cast<std::size_t>(by.order[i])] = static_cast<std::int64_t>(i);
  }
  return graph::permute(graph::reshape(written, by.permuted), inverse);
}

/// An index of slices, and the tensors that index the axes which those leave.
struct SplitIndex {
  Index basic;
  bool is_whole = true;  // the slices take everything
  std::vector<Tensor> tensors;
};

SplitIndex split_index(const char* op, const Tensor& x, const std::vector<AdvancedPart>& parts) {
  std::int64_t consumed = 0;
  for (const AdvancedPart& part : parts) {
    if (const auto* tensor = std::get_if<Tensor>(&part)) {
      consumed += is_mask(*tensor) ? tensor->rank() : 1;
      continue;
    }
    const IndexPart& basic = std::get<IndexPart>(part);
    const bool takes_axis =
        std::holds_alternative<std::int64_t>(basic) || std::holds_alternative<IndexSlice>(basic);
    consumed += takes_axis ? 1 : 0;
  }
  if (consumed > x.rank()) {
    throw IndexError(
        fmt::format("[{}] {} indices for a tensor of rank {}", op, consumed, x.rank()));
  }
  SplitIndex result;
  const auto skip = [&](std::int64_t axes) {
    result.tensors.insert(result.tensors.end(), static_cast<std::size_t>(axes), Tensor());
  };
  for (const AdvancedPart& part : parts) {
    if (const auto* tensor = std::get_if<Tensor>(&part)) {
      if (is_mask(*tensor) && tensor->rank() == 0) {
        // A single truth value stands for an axis of its own, which is kept or empty.
        result.basic.emplace_back(IndexNewAxis{});
        result.is_whole = false;
        result.tensors.push_back(reshape(*tensor, {1}));
        continue;
      }
      const int axes = is_mask(*tensor) ? tensor->rank() : 1;
      for (int i = 0; i < axes; ++i) result.basic.emplace_back(IndexSlice{});
      result.tensors.push_back(*tensor);
      continue;
    }
    const IndexPart& basic = std::get<IndexPart>(part);
    result.basic.push_back(basic);
    const auto* slice = std::get_if<IndexSlice>(&basic);
    const bool is_ellipsis = std::holds_alternative<IndexEllipsis>(basic);
    const bool is_everything =
        is_ellipsis || (slice != nullptr && !slice->start && !slice->stop && slice->step == 1);
    result.is_whole = result.is_whole && is_everything;
    if (is_ellipsis) {
      skip(x.rank() - consumed);
    } else if (!std::holds_alternative<std::int64_t>(basic)) {
      skip(1);
    }
  }
  return result;
}

/// `value` where the mask, which covers the axes of y from `axis` on, is true.
Tensor replaced_where(const Tensor& y, const Tensor& mask, int axis, const Tensor& value) {
  Extents extents(static_cast<std::size_t>(y.rank()), 1);
  for (int i = 0; i < mask.rank(); ++i) {
    if (axis + i >= y.rank() || y.shape()[axis + i] != mask.shape()[i]) {
      throw IndexError(
          fmt::format("[setitem] a mask of shape {} does not match shape {} from axis {}",
                      mask.shape().to_string(), y.shape().to_string(), axis));
    }
    extents[static_cast<std::size_t>(axis) + static_cast<std::size_t>(i)] = mask.shape()[i];
  }
  return where(reshape(to(mask, y.device()), extents), reshape(to(value, y.dtype()), {}), y);
}

}  // namespace

Tensor nonzero(const Tensor& x) {
  const Value positions = true_positions(x);
  if (x.rank() == 0) return zeros({positions->numel(), 0}, DType::kI64, x.device());
  std::vector<Value> columns = unravelled(positions, extents_of(x.value()));
  for (Value& column : columns) column = graph::unsqueeze(column, 1);
  return record(graph::concat(columns, 1));
}

Tensor masked_select(const Tensor& x, const Tensor& mask) {
  if (mask.dtype() != DType::kBool) {
    throw DTypeError(
        fmt::format("[masked_select] the mask is {}, not bool", name_of(mask.dtype())));
  }
  const std::vector<Tensor> both = broadcast_tensors(std::vector<Tensor>{x, mask});
  const Extents flat{both[0].numel()};
  return record(graph::take(graph::reshape(both[0].value(), flat), true_positions(both[1]), 0));
}

Tensor masked_scatter(const Tensor& x, const Tensor& mask, const Tensor& source) {
  if (mask.dtype() != DType::kBool) {
    throw DTypeError(
        fmt::format("[masked_scatter] the mask is {}, not bool", name_of(mask.dtype())));
  }
  const Extents extents = extents_of(x.value());
  if (x.numel() == 0) return x;
  const Tensor flat = reshape(broadcast_to(mask, extents), {x.numel()});
  if (source.numel() == 0) {
    if (any(flat).item() == 0) return reshape(x, extents);
    throw IndexError("[masked_scatter] the source has no elements, the mask is true somewhere");
  }
  const Tensor number = where(flat, cumsum(flat, 0) - Tensor(1), Tensor(-1));
  const Value place = graph::check_range(kMaskedScatter, number.value(), source.numel(), -1);
  // Where nothing is to be taken the place is -1, and any number will do.
  const Tensor line = reshape(to(source, x.dtype()), {source.numel()});
  const Tensor values = take(line, maximum(record(place), Tensor(0)), 0);
  return reshape(where(flat, values, reshape(x, {x.numel()})), extents);
}

Tensor index_by(const Tensor& x, std::span<const Tensor> indices) {
  const Value value = x.value();
  const MergedIndex by = merge(kGet, value, without_masks(kGet, x, indices));
  return record(graph::take(merged_axes(value, by), by.single ? by.single : by.index,
                            static_cast<std::int64_t>(by.before.size()),
                            graph::TakeName::kGetItem));
}

Tensor index_put(const Tensor& x, std::span<const Tensor> indices, const Tensor& values,
                 bool accumulate) {
  return record(put(kPut, x, indices, values.value(), accumulate));
}

Tensor get_advanced(const Tensor& x, const std::vector<AdvancedPart>& index) {
  const SplitIndex split = split_index(kGet.name, x, index);
  return index_by(split.is_whole ? x : x.index(split.basic), split.tensors);
}

void set_advanced(Tensor& x, const std::vector<AdvancedPart>& index, const Tensor& value) {
  const SplitIndex split = split_index(kSet.name, x, index);
  const Tensor window = split.is_whole ? x : index_as(kSet.name, x, split.basic);
  std::vector<std::size_t> used;
  for (std::size_t i = 0; i < split.tensors.size(); ++i) {
    if (split.tensors[i].is_defined()) used.push_back(i);
  }
  const bool fills_mask = used.size() == 1 && is_mask(split.tensors[used[0]]) && value.numel() == 1;
  const Tensor updated =
      fills_mask ? replaced_where(window, split.tensors[used[0]], static_cast<int>(used[0]), value)
                 : record(put(kSet, window, split.tensors, value.value(), false));
  if (split.is_whole) {
    x.update_(updated);
  } else {
    x.index_put_(split.basic, updated);
  }
}

}  // namespace vkml
