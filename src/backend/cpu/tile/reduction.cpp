#include "tile/reduction.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace vkml::cpu {
namespace {

using ops::ReduceKind;
using ops::ScalarType;

bool is_argument(ReduceKind kind) {
  return kind == ReduceKind::kArgMax || kind == ReduceKind::kArgMin;
}

// Orders extremes: whether `candidate` replaces `best`. NaN replaces every number.
template <typename T>
bool replaces(ReduceKind kind, T candidate, T best) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(best)) return false;
    if (std::isnan(candidate)) return true;
  }
  const bool greatest = kind == ReduceKind::kMax || kind == ReduceKind::kArgMax;
  return greatest ? candidate > best : candidate < best;
}

ReductionValue identity(const Reduction& reduction) {
  const bool real = ops::is_floating(reduction.type);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  // The extremes of i32 rows with no element are those of i32.
  const bool wide = reduction.type == ScalarType::kI64;
  const std::int64_t lowest =
      wide ? std::numeric_limits<std::int64_t>::min() : std::numeric_limits<std::int32_t>::min();
  const std::int64_t highest =
      wide ? std::numeric_limits<std::int64_t>::max() : std::numeric_limits<std::int32_t>::max();
  ReductionValue value{};
  const auto set = [&](double as_real, std::int64_t as_integer) {
    if (real) {
      value.real = as_real;
    } else {
      value.integer = as_integer;
    }
  };
  switch (reduction.kind) {
    case ReduceKind::kSum:
      set(0, 0);
      break;
    case ReduceKind::kProd:
      set(1, 1);
      break;
    case ReduceKind::kMax:
    case ReduceKind::kArgMax:
      set(-kInfinity, lowest);
      break;
    case ReduceKind::kMin:
    case ReduceKind::kArgMin:
      set(kInfinity, highest);
      break;
    case ReduceKind::kAny:
      value.integer = 0;
      break;
    case ReduceKind::kAll:
      value.integer = -1;
      break;
  }
  return value;
}

template <typename T>
void combine_values(ReduceKind kind, T& value, std::int64_t* index, T later,
                    std::int64_t later_index) {
  switch (kind) {
    case ReduceKind::kSum:
    case ReduceKind::kProd:
      if constexpr (std::is_floating_point_v<T>) {
        value = kind == ReduceKind::kSum ? value + later : value * later;
      } else {
        const auto a = static_cast<std::uint64_t>(value);
        const auto b = static_cast<std::uint64_t>(later);
        value = static_cast<std::int64_t>(kind == ReduceKind::kSum ? a + b : a * b);
      }
      return;
    case ReduceKind::kMax:
    case ReduceKind::kMin:
      if (replaces(kind, later, value)) value = later;
      return;
    case ReduceKind::kArgMax:
    case ReduceKind::kArgMin:
      if (later_index >= 0 && (*index < 0 || replaces(kind, later, value))) {
        value = later;
        *index = later_index;
      }
      return;
    case ReduceKind::kAny:
    case ReduceKind::kAll:
      if constexpr (std::is_integral_v<T>) {
        value = kind == ReduceKind::kAny ? value | later : value & later;
      }
      return;
  }
}

template <typename T>
void write(T value, std::int64_t rows_index, std::size_t copies, void* target) {
  auto* out = static_cast<T*>(target);
  if (copies == 1) {
    out[rows_index] = value;
  } else {
    std::fill_n(out, copies, value);
  }
}

}  // namespace

void start(const Reduction& reduction, const ReductionState& state, std::int64_t rows) {
  std::fill_n(state.value, rows, identity(reduction));
  if (is_argument(reduction.kind)) std::fill_n(state.index, rows, std::int64_t{-1});
}

void combine(const Reduction& reduction, const ReductionState& state, const ReductionState& later,
             std::int64_t rows) {
  for (std::int64_t i = 0; i < rows; ++i) {
    const bool argument = is_argument(reduction.kind);
    std::int64_t* index = argument ? state.index + i : nullptr;
    const std::int64_t later_index = argument ? later.index[i] : 0;
    if (ops::is_floating(reduction.type)) {
      combine_values(reduction.kind, state.value[i].real, index, later.value[i].real, later_index);
    } else {
      combine_values(reduction.kind, state.value[i].integer, index, later.value[i].integer,
                     later_index);
    }
  }
}

void finish(const Reduction& reduction, const ReductionState& state, std::int64_t rows,
            std::size_t copies, void* target) {
  for (std::int64_t i = 0; i < rows; ++i) {
    const ReductionValue value = state.value[i];
    if (is_argument(reduction.kind)) {
      const std::int64_t index = std::max<std::int64_t>(state.index[i], 0);
      if (reduction.result == ScalarType::kI64) {
        write(index, i, copies, target);
      } else {
        write(static_cast<std::int32_t>(index), i, copies, target);
      }
      continue;
    }
    switch (reduction.type) {
      case ScalarType::kF32:
        write(static_cast<float>(value.real), i, copies, target);
        break;
      case ScalarType::kF64:
        write(value.real, i, copies, target);
        break;
      case ScalarType::kI64:
        write(value.integer, i, copies, target);
        break;
      case ScalarType::kBool:
      case ScalarType::kI32:
        write(static_cast<std::int32_t>(value.integer), i, copies, target);
        break;
    }
  }
}

}  // namespace vkml::cpu
