// What the graph knows of an operator: a name, a family, and its gradient rule.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>

#include "vkml/core/error.h"

namespace vkml::graph {

class Node;
class Value;

enum class Family : std::uint8_t {
  kLeaf,         // storage that holds a value
  kScalar,       // a Python or C++ number: a run-time input, never part of a plan's key
  kElementwise,  // a row of ops/elementwise.def.h
  kIota,         // coordinates along an axis
  kView,         // same storage, other extents, strides, offset
  kCopy,         // the source, made contiguous
  kCast,         // another dtype
  kAssign,       // sources: old value, new value
  kViewUpdate,   // sources: base, value; the base with a window replaced
  kCheck,        // the source, with an error for elements outside a range
  kConcat,
  kReduce,
  kCore,    // a structural operator with a kernel kind of its own
  kCustom,  // an alias of its first source; gradients go to the others by a rule of its own
};

/// A node's structural parameters: part of the plan's key, never data.
class Attributes {
 public:
  static constexpr int kCapacity = 10;
  Attributes() = default;
  Attributes(std::initializer_list<std::int64_t> values) {
    for (const std::int64_t value : values) push_back(value);
  }
  void push_back(std::int64_t value) {
    if (size_ == kCapacity) throw InternalError("more than 10 attributes on a node");
    values_[static_cast<std::size_t>(size_++)] = value;
  }
  int size() const { return size_; }
  std::int64_t operator[](int index) const { return values_[static_cast<std::size_t>(index)]; }
  std::span<const std::int64_t> span() const {
    return {values_.data(), static_cast<std::size_t>(size_)};
  }
  friend bool operator==(const Attributes&, const Attributes&) = default;

 private:
  std::array<std::int64_t, kCapacity> values_{};
  int size_ = 0;
};

/// Gradients of an output's sources from the gradient of the output. Writes into `gradients`, which
/// has one undefined Value for each source; those left undefined get none.
using GradientRule = void (*)(const Value& output, const Value& gradient,
                              std::span<Value> gradients);

/// The values that a gradient rule reads beside the gradient: a backward pass after this one's run
/// would compute them again if they were not kept. Shapes and dtypes are not values.
struct GradientReads {
  std::uint32_t operands = 0;  // bit i: source i; the last bit: all from there on
  bool output = false;

  static constexpr GradientReads everything() { return {~std::uint32_t{0}, true}; }
  constexpr bool operand(std::size_t source) const {
    return ((operands >> std::min<std::size_t>(source, 31)) & 1u) != 0;
  }
};

struct OpInfo {
  const char* name = "";
  Family family = Family::kLeaf;
  int id = 0;                       // within the family: ops::Row, ops::CoreKind, ops::ReduceKind
  GradientRule gradient = nullptr;  // null: not differentiable
  GradientReads reads = {};  // of the rule; rows find theirs by probing (ops::gradient_reads)
};

}  // namespace vkml::graph
