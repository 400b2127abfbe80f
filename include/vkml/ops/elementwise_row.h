// What a row of the elementwise table says of its operator, without the graph that it is recorded
// in: the bindings name operators, operands and defaults from it.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <span>

#include "vkml/core/dtype.h"
#include "vkml/graph/op_info.h"

namespace vkml::ops {

struct ScalarProgram;

/// Which dtypes a row takes, and what it gives.
enum class DTypeRule : std::uint8_t {
  kSame,       // operands promoted; the result has their dtype
  kFloat,      // the same, integers and bools first become the default float
  kCompare,    // operands promoted; bool result
  kPredicate,  // one operand; bool result
  kLogical,    // operands become bool; bool result
  kBits,       // integers and bools
  kSelect,     // bool, then two promoted operands that give the result
  kRandom,     // i32 operands; f32 result
};

inline constexpr int kMaxOperands = 4;

/// Inputs on which the row's bound holds, for tests and documentation.
struct Domain {
  double low = -10, high = 10;
};

/// An operand as Python sees it.
struct Operand {
  static constexpr double kRequired = std::numeric_limits<double>::quiet_NaN();  // no default

  const char* name = nullptr;
  Domain domain;
  double default_value = kRequired;

  bool is_required() const { return default_value != default_value; }
};

struct ElementwiseRow {
  const char* name;
  const char* documentation;
  int arity;
  DTypeRule rule;
  /// The program for operands of a dtype: kArgument 0 .. arity - 1, one output.
  void (*record)(DType operands, ScalarProgram& program);
  graph::GradientRule gradient;  // null: not differentiable
  /// Independent reference formulas; the integer one is null where the row gives floats or bools.
  double (*oracle)(const double* operands);
  std::int64_t (*integer_oracle)(const std::int64_t* operands);
  /// The formula in a floating dtype, where the result depends on which numbers it has; null
  /// elsewhere.
  double (*dtype_oracle)(DType dtype, const double* operands);
  double max_ulp;                              // against the oracle in f32 and f64
  std::array<Operand, kMaxOperands> operands;  // the first `arity` of them
  std::array<const char*, 2> aliases;          // its other names in Python; null beyond the last
  bool is_in_float32;  // under autocast: half-precision operands are taken as float32
};

/// All rows; OpInfo::id of an elementwise operator is its index here.
std::span<const ElementwiseRow> elementwise_rows();

/// The rows, by name.
enum class Row : int {
#define VKML_ROW(arity, name, ...) name,
#include "vkml/ops/elementwise.def.h"
};

}  // namespace vkml::ops
