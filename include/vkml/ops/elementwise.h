// The elementwise operators, as values in the graph. elementwise.def.h is the only list of them;
// everything here follows from its rows.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "vkml/core/number.h"
#include "vkml/graph/value.h"
#include "vkml/ops/elementwise_row.h"
#include "vkml/ops/scalar_program.h"

namespace vkml::ops {

const ElementwiseRow& row_of(const graph::OpInfo& op);
/// The program of a row for operands of a dtype, recorded once.
const ScalarProgram& program_of(const graph::OpInfo& op, DType operands);

/// The dtype of an elementwise node's (value) operands.
DType operand_dtype(const graph::Node& node);

/// Records an elementwise node: promotes, casts, broadcasts. Throws ShapeError, DTypeError and
/// DeviceError naming the operator.
graph::Value apply_elementwise(Row row, std::span<const graph::Value> operands);
/// The same; takes the operands' nodes.
graph::Value apply_elementwise_taking(Row row, std::span<graph::Value> operands);

}  // namespace vkml::ops

namespace vkml::graph {

// One function for each row, found by gradient rules through their Value arguments.
#define VKML_ROW(arity, name, ...) Value name(VKML_PARAMETERS_##arity(Value));
#include "vkml/ops/elementwise.def.h"
// A number as the second operand.
#define VKML_ROW(arity, name, ...) VKML_WITH_NUMBER_##arity(name)
#define VKML_WITH_NUMBER_1(name)
#define VKML_WITH_NUMBER_2(name) Value name(const Value& a, double b);
#define VKML_WITH_NUMBER_3(name)
#define VKML_WITH_NUMBER_4(name)
#include "vkml/ops/elementwise.def.h"
#undef VKML_WITH_NUMBER_1
#undef VKML_WITH_NUMBER_2
#undef VKML_WITH_NUMBER_3
#undef VKML_WITH_NUMBER_4

/// A number that other operands' dtypes win over: a run-time input of the plan.
Value weak_scalar(double value, Device device);
Value weak_scalar(std::int64_t value, Device device);
Value weak_scalar(bool value, Device device);
/// A number of a given dtype. Throws ArgumentError for an integer that an integer dtype cannot
/// hold.
Value scalar(Number value, DType dtype, Device device);
/// The same number for another device.
Value scalar_on(const Value& number, Device device);

Value operator+(const Value& a, const Value& b);
Value operator-(const Value& a, const Value& b);
Value operator*(const Value& a, const Value& b);
Value operator/(const Value& a, const Value& b);
Value operator-(const Value& a);
Value operator+(const Value& a, double b);
Value operator-(const Value& a, double b);
Value operator*(const Value& a, double b);
/// Where divides_by_reciprocal(b), a product: of floats the same number for less.
Value operator/(const Value& a, double b);
/// Whether it is a power of two which, like its reciprocal, every float dtype holds.
bool divides_by_reciprocal(double number);
Value operator+(double a, const Value& b);
Value operator-(double a, const Value& b);
Value operator*(double a, const Value& b);
Value operator/(double a, const Value& b);
Value operator<(const Value& a, double b);
Value operator>(const Value& a, double b);
Value operator<=(const Value& a, double b);
Value operator>=(const Value& a, double b);

/// `value` where the condition holds, an exact 0 elsewhere: a gradient that is infinite or NaN on
/// the other branch does not leak through a product with 0.
Value where_else_zero(const Value& condition, const Value& value);
/// A gradient that is a product with g: an exact 0 where g is 0 and the product NaN, else `value`.
Value unless_zero(const Value& g, const Value& value);

}  // namespace vkml::graph
