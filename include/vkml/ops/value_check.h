// What operators ask of the values that they are given, beside indices: the one list. A check of
// values is a node of the family kCheck whose id is one of these; a value that fails it raises
// ArgumentError when a result is observed, and nothing has been written.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "vkml/graph/op_info.h"

namespace vkml::ops {

enum class ValueCheck : std::uint8_t {
  kNone,  // the check is one of indices
  kProbability,
  kWeight,
  kSumOfWeights,
  kConcentration,
};

struct ValueInterval {
  const char* noun;  // of the value, for messages
  bool is_open;      // whether 0 itself is outside
  bool is_unit;      // up to 1; else all finite numbers
};

inline constexpr std::array<ValueInterval, 5> kValueIntervals{{
    {"", false, false},
    {"the probability", false, true},
    {"the weight", false, false},
    {"the sum of the weights", true, false},
    {"the concentration", true, false},
}};
static_assert(kValueIntervals.size() == static_cast<std::size_t>(ValueCheck::kConcentration) + 1);

constexpr const ValueInterval& interval_of(ValueCheck check) {
  return kValueIntervals[static_cast<std::size_t>(check)];
}

constexpr graph::OpInfo value_check(const char* op, ValueCheck check) {
  return {op, graph::Family::kCheck, static_cast<int>(check), nullptr};
}

/// What a node of the family kCheck checks.
constexpr ValueCheck value_check_of(const graph::OpInfo& op) {
  return op.family == graph::Family::kCheck ? static_cast<ValueCheck>(op.id) : ValueCheck::kNone;
}

}  // namespace vkml::ops
