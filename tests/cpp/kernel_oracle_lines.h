// The cores of the oracle that walk along a line: scatter, scans, sorting and searching. Included
// by kernel_oracle.h, which declares them.
#pragma once

#include "kernel_oracle.h"
#include "vkml/ops/core_kind.h"

namespace vkml::oracle {

/// The order of sorted values: NaN is above all.
inline bool is_below(const Operand& operand, Number a, Number b) {
  if (!is_floating(operand.dtype)) return a.i < b.i;
  return a.f < b.f || (std::isnan(b.f) && !std::isnan(a.f));
}

/// Whether `given` takes the place of `held` as the largest, or the smallest; a NaN does, and
/// stays.
inline bool is_extreme(bool is_float, bool is_largest, Number held, Number given) {
  if (!is_float) return is_largest ? given.i > held.i : given.i < held.i;
  if (std::isnan(held.f)) return false;
  return std::isnan(given.f) || (is_largest ? given.f > held.f : given.f < held.f);
}

inline Number Interpreter::scatter(const Extents& at) {
  using ops::ScatterKind;
  const auto axis = static_cast<std::size_t>(kernel_.attributes[0]);
  const auto kind = static_cast<ScatterKind>(kernel_.attributes[1]);
  const bool is_float = is_floating(kernel_.core_inputs[0].dtype);
  Number held = element(kernel_.core_inputs[0], at);
  const Operand& indices = kernel_.core_inputs[1];
  for (std::size_t other = 0; other < at.size(); ++other) {
    if (other != axis && at[other] >= indices.extents[other]) return held;
  }
  Extents from = at;
  for (from[axis] = 0; from[axis] < indices.extents[axis]; ++from[axis]) {
    const std::int64_t index =
        checked(kernel_.core_site, element(indices, from).i, kernel_.space[axis]);
    if (index != at[axis]) continue;
    const Number given = element(kernel_.core_inputs[2], from);
    switch (kind) {
      case ScatterKind::kAdd:
        held = {held.f + given.f, wrap_add(held.i, given.i)};
        break;
      case ScatterKind::kMultiply:
        held = {held.f * given.f, wrap_multiply(held.i, given.i)};
        break;
      case ScatterKind::kReplace:
        held = given;
        break;
      case ScatterKind::kMax:
      case ScatterKind::kMin:
        if (is_extreme(is_float, kind == ScatterKind::kMax, held, given)) held = given;
        break;
    }
  }
  return held;
}

inline Number Interpreter::scan(const Extents& at) {
  using ops::ScanKind;
  const auto axis = static_cast<std::size_t>(kernel_.attributes[0]);
  const auto kind = static_cast<ScanKind>(kernel_.attributes[1]);
  const Operand& x = kernel_.core_inputs[0];
  const bool is_float = is_floating(x.dtype);
  Extents from = at;
  Number carried;
  std::int64_t position = 0;
  for (std::int64_t i = 0; i <= at[axis]; ++i) {
    from[axis] = i;
    const Number value = element(x, from);
    switch (kind) {
      case ScanKind::kSum:
        carried = {carried.f + value.f, wrap_add(carried.i, value.i)};
        break;
      case ScanKind::kProduct:
        if (i == 0) carried = {1, 1};
        carried = {carried.f * value.f, wrap_multiply(carried.i, value.i)};
        break;
      case ScanKind::kLinear: {
        const Number added = element(kernel_.core_inputs[1], from);
        carried = {value.f * carried.f + added.f,
                   wrap_add(wrap_multiply(value.i, carried.i), added.i)};
        break;
      }
      case ScanKind::kArgMax:
      case ScanKind::kArgMin: {
        // The last of equals, and of NaN.
        const bool is_largest = kind == ScanKind::kArgMax;
        const bool is_equal =
            is_float ? value.f == carried.f || (std::isnan(value.f) && std::isnan(carried.f))
                     : value.i == carried.i;
        if (i == 0 || is_equal || is_extreme(is_float, is_largest, carried, value)) {
          carried = value;
          position = i;
        }
        break;
      }
    }
  }
  const bool gives_position = kind == ScanKind::kArgMax || kind == ScanKind::kArgMin;
  return gives_position ? Number{0, position} : carried;
}

/// The element whose rank in its line is the place: how many come before it.
inline Number Interpreter::sorted_position(const Extents& at) {
  const auto axis = static_cast<std::size_t>(kernel_.attributes[0]);
  const bool is_descending = kernel_.attributes[1] != 0;
  const Operand& x = kernel_.core_inputs[0];
  const auto value_at = [&](std::int64_t i) {
    Extents from = at;
    from[axis] = i;
    return element(x, from);
  };
  const auto comes_first = [&](Number a, Number b) {
    return is_descending ? is_below(x, b, a) : is_below(x, a, b);
  };
  for (std::int64_t i = 0; i < kernel_.space[axis]; ++i) {
    const Number mine = value_at(i);
    std::int64_t rank = 0;
    for (std::int64_t other = 0; other < kernel_.space[axis]; ++other) {
      const Number value = value_at(other);
      rank += other < i ? !comes_first(mine, value) : comes_first(value, mine);
    }
    if (rank == at[axis]) return {0, i};
  }
  throw std::logic_error("rank");
}

inline Number Interpreter::searched(const Extents& at) {
  const bool right = kernel_.attributes[0] != 0;
  const Operand& sorted = kernel_.core_inputs[0];
  const Number value = element(kernel_.core_inputs[1], at);
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < sorted.extents[3]; ++i) {
    const Number other = element(sorted, {at[0], at[1], at[2], i});
    count += right ? !is_below(sorted, value, other) : is_below(sorted, other, value);
  }
  return {0, count};
}

}  // namespace vkml::oracle
