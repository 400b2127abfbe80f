// Elements in other places: reversed, rolled, repeated, padded from inside, on diagonals. Views
// where strides express it, joins of slices elsewhere.

#include <algorithm>
#include <limits>
#include <vector>

#include "record.h"
#include "vkml/ops/composites.h"

namespace vkml::graph {
namespace {

/// Coordinates of the last two axes, to compare: columns minus rows.
Value diagonal_number(std::int64_t rows, std::int64_t columns, Device device) {
  const std::int64_t extents[] = {rows, columns};
  return iota(extents, 1, device) - iota(extents, 0, device);
}

void check_matrix(const char* op, const Value& x) {
  if (x.rank() >= 2) return;
  throw ShapeError(
      fmt::format("[{}] needs at least two axes, not shape {}", op, x.shape().to_string()));
}

/// x where the condition holds, a 0 of its dtype elsewhere.
Value value_or_zero(const Value& condition, const Value& x) {
  return where(condition, x, scalar(0, x.dtype(), x.device()));
}

/// What lies before and after an axis when it is padded from inside.
Value padded_along(const Value& x, int axis, std::int64_t before, std::int64_t after,
                   PadMode mode) {
  if (before == 0 && after == 0) return x;
  const std::int64_t extent = x.shape()[axis];
  const std::int64_t most = mode == PadMode::kReflect ? extent - 1 : extent;
  const bool fits = mode == PadMode::kReplicate ? extent > 0 : std::max(before, after) <= most;
  if (!fits || before < 0 || after < 0) {
    throw ShapeError(fmt::format(
        "[pad] amounts ({}, {}) are not in [0, {}] for axis {} of shape {}. Use mode='constant'",
        before, after, most, axis, x.shape().to_string()));
  }
  const auto part = [&](std::int64_t first, std::int64_t past) {
    return slice(x, axis, first, past, 1);
  };
  const auto edge = [&](std::int64_t position, std::int64_t count) {
    ExtentList extents(x.shape().extents());
    extents[axis] = count;
    return broadcast_to(part(position, position + 1), extents.span());
  };
  const auto reversed = [&](const Value& v) { return slice(v, axis, {}, {}, -1); };
  std::vector<Value> parts;
  if (before > 0) {
    parts.push_back(mode == PadMode::kReflect     ? reversed(part(1, before + 1))
                    : mode == PadMode::kReplicate ? edge(0, before)
                                                  : part(extent - before, extent));
  }
  parts.push_back(x);
  if (after > 0) {
    parts.push_back(mode == PadMode::kReflect     ? reversed(part(extent - 1 - after, extent - 1))
                    : mode == PadMode::kReplicate ? edge(extent - 1, after)
                                                  : part(0, after));
  }
  return parts.size() == 1 ? x : concat(parts, axis);
}

}  // namespace

Value flip(const Value& x, Axes axes) {
  Value result = x;
  unsigned seen = 0;
  for (const std::int64_t axis : axes) {
    const int along = normalize_axis("flip", axis, x.rank());
    if (((seen >> along) & 1u) != 0) {
      throw ShapeError(fmt::format("[flip] axis {} is repeated in {}", axis, to_string(axes)));
    }
    seen |= 1u << along;
    result = slice(result, along, {}, {}, -1);
  }
  return result;
}

Value roll(const Value& x, Axes shifts, Axes axes) {
  if (axes.empty()) {
    if (shifts.size() != 1) throw ArgumentError("[roll] without axes there is one shift");
    const std::int64_t flat[] = {x->numel()};
    const std::int64_t first[] = {0};
    return reshape(roll(reshape(x, flat), shifts, first), x.shape().extents());
  }
  if (shifts.size() != axes.size()) {
    throw ArgumentError(fmt::format("[roll] {} shifts for {} axes", shifts.size(), axes.size()));
  }
  Value result = x;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const int along = normalize_axis("roll", axes[i], x.rank());
    const std::int64_t extent = x.shape()[along];
    if (extent == 0) continue;
    const std::int64_t remainder = shifts[i] % extent;
    const std::int64_t shift = remainder < 0 ? remainder + extent : remainder;
    if (shift == 0) continue;
    const std::array<Value, 2> parts{slice(result, along, extent - shift, extent, 1),
                                     slice(result, along, 0, extent - shift, 1)};
    result = concat(parts, along);
  }
  return result;
}

Value repeat(const Value& x, Axes counts) {
  const int rank = static_cast<int>(counts.size());
  if (rank < x.rank() || rank > kMaxDims) {
    throw ShapeError(fmt::format(
        "[repeat] {} counts do not fit a tensor of rank {} (at least its rank, at most {})", rank,
        x.rank(), kMaxDims));
  }
  ExtentList extents;
  for (int axis = 0; axis < rank; ++axis) {
    const int own = axis - (rank - x.rank());
    extents.push_back(own < 0 ? 1 : x.shape()[own]);
  }
  Value result = reshape(x, extents.span());
  for (int axis = 0; axis < rank; ++axis) {
    const std::int64_t count = counts[static_cast<std::size_t>(axis)];
    if (count < 0) throw ArgumentError(fmt::format("[repeat] the count {} is negative", count));
    if (count == 1) continue;
    std::int64_t outer = 1;
    std::int64_t inner = 1;
    for (int i = 0; i < axis; ++i) outer *= extents[i];
    for (int i = axis; i < rank; ++i) inner *= extents[i];
    extents[axis] = multiply_or_throw("repeat", extents[axis], count);
    const Value copies = broadcast_to(reshape(result, as_span({outer, 1, inner})),
                                      as_span({outer, count, inner}), "repeat");
    result = reshape(copies, extents.span());
  }
  return result;
}

Value repeat_interleave(const Value& x, std::int64_t count, std::int64_t axis) {
  const int along = normalize_axis("repeat_interleave", axis, x.rank());
  if (count < 0) {
    throw ArgumentError(fmt::format("[repeat_interleave] the count {} is negative", count));
  }
  std::int64_t outer = 1;
  std::int64_t inner = 1;
  for (int i = 0; i <= along; ++i) outer *= x.shape()[i];
  for (int i = along + 1; i < x.rank(); ++i) inner *= x.shape()[i];
  ExtentList extents(x.shape().extents());
  extents[along] = multiply_or_throw("repeat_interleave", extents[along], count);
  const Value copies =
      broadcast_to(reshape(x, as_span({outer, 1, inner})), as_span({outer, count, inner}));
  return reshape(copies, extents.span());
}

Value pad_from_inside(const Value& x, std::span<const std::array<std::int64_t, 2>> amounts,
                      PadMode mode) {
  Value result = x;
  for (std::size_t axis = 0; axis < amounts.size(); ++axis) {
    result = padded_along(result, static_cast<int>(axis), amounts[axis][0], amounts[axis][1], mode);
  }
  return result;
}

Value triangle(const Value& x, std::int64_t offset, bool upper) {
  check_matrix(upper ? "triu" : "tril", x);
  const Value number =
      diagonal_number(x.shape()[x.rank() - 2], x.shape()[x.rank() - 1], x.device());
  const Value limit = weak_scalar(offset, x.device());
  const Value kept = upper ? ge(number, limit) : le(number, limit);
  return value_or_zero(kept, x);
}

Value diagonal(const Value& x, std::int64_t offset, std::int64_t axis0, std::int64_t axis1) {
  check_matrix("diagonal", x);
  const int row_axis = normalize_axis("diagonal", axis0, x.rank());
  const int column_axis = normalize_axis("diagonal", axis1, x.rank());
  if (row_axis == column_axis) {
    throw ShapeError(fmt::format("[diagonal] axis {} is both rows and columns", row_axis));
  }
  const Value dense = contiguous(x);
  const auto element = static_cast<std::int64_t>(size_of(x.dtype()));
  const auto stride = [&](int axis) { return dense.shape().stride(axis) / element; };
  // Past the matrix there is nothing, however far.
  const std::int64_t shift = std::clamp(offset, -x.shape()[row_axis], x.shape()[column_axis]);
  const std::int64_t first_row = std::max<std::int64_t>(0, -shift);
  const std::int64_t first_column = std::max<std::int64_t>(0, shift);
  const std::int64_t count = std::max<std::int64_t>(
      0, std::min(x.shape()[row_axis] - first_row, x.shape()[column_axis] - first_column));
  ExtentList extents;
  Window window;
  if (count > 0) window.offset = first_row * stride(row_axis) + first_column * stride(column_axis);
  for (int axis = 0; axis < x.rank(); ++axis) {
    if (axis == row_axis || axis == column_axis) continue;
    window.strides[static_cast<std::size_t>(extents.rank)] = stride(axis);
    extents.push_back(x.shape()[axis]);
  }
  window.strides[static_cast<std::size_t>(extents.rank)] = stride(row_axis) + stride(column_axis);
  extents.push_back(count);
  return view_window(dense, extents.span(), window);
}

Value diag_embed(const Value& x, std::int64_t offset) {
  if (x.rank() == 0) throw ShapeError("[diag_embed] needs at least one axis");
  const std::int64_t distance = multiply_or_throw("diag_embed", offset, offset < 0 ? -1 : 1);
  const std::int64_t size = add_or_throw("diag_embed", x.shape()[x.rank() - 1], distance);
  // Row i holds x[i] above the main diagonal, column j holds x[j] below it.
  std::array<std::array<std::int64_t, 2>, kMaxDims> amounts{};
  amounts[static_cast<std::size_t>(x.rank() - 1)] = {0, size - x.shape()[x.rank() - 1]};
  const Value padded = pad(x, {amounts.data(), static_cast<std::size_t>(x.rank())}, 0);
  const Value lines = unsqueeze(padded, offset >= 0 ? x.rank() : x.rank() - 1);
  const Value number = diagonal_number(size, size, x.device());
  ExtentList extents(x.shape().extents());
  extents[x.rank() - 1] = size;
  extents.push_back(size);
  return value_or_zero(eq(number, weak_scalar(offset, x.device())),
                       broadcast_to(lines, extents.span()));
}

Value eye(std::int64_t rows, std::int64_t columns, std::int64_t offset, DType dtype,
          Device device) {
  if (rows < 0 || columns < 0) {
    throw ShapeError(fmt::format("[eye] impossible extents ({}, {})", rows, columns));
  }
  return cast(eq(diagonal_number(rows, columns, device), weak_scalar(offset, device)), dtype);
}

Value linspace(double start, double stop, std::int64_t steps, DType dtype, Device device) {
  if (steps < 0)
    throw ArgumentError(fmt::format("[linspace] the number of steps {} is negative", steps));
  const std::int64_t extents[] = {steps};
  const DType wide = dtype == DType::kF64 ? DType::kF64 : DType::kF32;
  if (steps < 2) return cast(full(extents, start, wide, device), dtype);
  // From the nearer end, so that both ends are exact.
  const double step = (stop - start) / static_cast<double>(steps - 1);
  const Value index = cast(iota(extents, 0, device), wide);
  const Value rest = static_cast<double>(steps - 1) - index;
  return cast(
      where(lt(index, static_cast<double>(steps) / 2), index * step + start, stop - rest * step),
      dtype);
}

Value one_hot(const Value& x, std::int64_t classes) {
  static constexpr OpInfo kClassCheck{"one_hot", Family::kCheck, 0, nullptr};
  if (is_floating(x.dtype()) || x.dtype() == DType::kBool) {
    throw DTypeError(fmt::format("[one_hot] classes are integers, not {}", name_of(x.dtype())));
  }
  if (classes < 1) throw ArgumentError(fmt::format("[one_hot] {} classes", classes));
  const Value labels = x.dtype() == DType::kU8 ? cast(x, DType::kI32) : x;
  const Value checked = check_range(kClassCheck, labels, classes, 0);
  const std::int64_t extents[] = {classes};
  return cast(eq(unsqueeze(checked, -1), iota(extents, 0, x.device())), DType::kI64);
}

Value sliding_windows(const Value& x, std::int64_t axis, std::int64_t size, std::int64_t step) {
  const int along = normalize_axis("unfold", axis, x.rank());
  if (size < 0 || step < 1 || size > x.shape()[along]) {
    throw ArgumentError(
        fmt::format("[unfold] windows of {} elements at every {} do not fit axis {} of shape {}",
                    size, step, along, x.shape().to_string()));
  }
  if (x.rank() == kMaxDims) {
    throw ShapeError(fmt::format("[unfold] windows of shape {} have {} axes, more than kMaxDims={}",
                                 x.shape().to_string(), x.rank() + 1, kMaxDims));
  }
  const Value dense = contiguous(x);
  const auto element = static_cast<std::int64_t>(size_of(x.dtype()));
  ExtentList extents(x.shape().extents());
  Window window;
  for (int i = 0; i < x.rank(); ++i) {
    window.strides[static_cast<std::size_t>(i)] = dense.shape().stride(i) / element;
  }
  extents.push_back(size);
  window.strides[static_cast<std::size_t>(x.rank())] =
      window.strides[static_cast<std::size_t>(along)];
  extents[along] = (x.shape()[along] - size) / step + 1;
  window.strides[static_cast<std::size_t>(along)] *= step;
  return view_window(dense, extents.span(), window);
}

Value movedim(const Value& x, Axes from, Axes to) {
  if (from.size() != to.size()) {
    throw ArgumentError(fmt::format("[movedim] {} axes move to {} places", from.size(), to.size()));
  }
  std::array<int, kMaxDims> source{-1, -1, -1, -1};
  unsigned moved = 0;
  for (std::size_t i = 0; i < from.size(); ++i) {
    const int axis = normalize_axis("movedim", from[i], x.rank());
    const int place = normalize_axis("movedim", to[i], x.rank());
    if (((moved >> axis) & 1u) != 0 || source[static_cast<std::size_t>(place)] >= 0) {
      throw ShapeError(
          fmt::format("[movedim] an axis is repeated in {} or {}", to_string(from), to_string(to)));
    }
    moved |= 1u << axis;
    source[static_cast<std::size_t>(place)] = axis;
  }
  ExtentList order;
  int next = 0;
  for (int place = 0; place < x.rank(); ++place) {
    if (source[static_cast<std::size_t>(place)] >= 0) {
      order.push_back(source[static_cast<std::size_t>(place)]);
      continue;
    }
    while (((moved >> next) & 1u) != 0) ++next;
    order.push_back(next++);
  }
  return permute(x, order.span());
}

}  // namespace vkml::graph
