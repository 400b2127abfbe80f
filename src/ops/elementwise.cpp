// Turns the rows of elementwise.def.h into a table, and records elementwise nodes.

#include "vkml/ops/elementwise.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <tuple>
#include <utility>

#include "oracle.h"
#include "record.h"
#include "vkml/core/error.h"
#include "vkml/ops/autocast.h"
#include "vkml/ops/composites.h"
#include "vkml/ops/expr.h"
#include "vkml/ops/functions.h"
#include "vkml/ops/scalar_math.h"

namespace vkml::ops {
namespace {

using graph::Value;

struct NoGradient {};
constexpr Domain domain(double low, double high) { return {low, high}; }

template <int kArity, typename Function, typename... Bound>
auto call(const Function& function, const auto* operands, const Bound&... bound) {
  return [&]<std::size_t... kIndex>(std::index_sequence<kIndex...>) {
    return function(operands[kIndex]..., bound...);
  }
  (std::make_index_sequence<kArity>());
}

template <int kArity, typename Function>
void record_row(DType dtype, ScalarProgram& program) {
  ProgramBuilder builder(dtype);
  const ScalarType type = compute_type(dtype);
  std::vector<Expr> operands;
  for (int i = 0; i < kArity; ++i) {
    operands.emplace_back(&builder, builder.emit({Opcode::kArgument, type, 0, 0, 0, i}));
  }
  const Expr result = call<kArity>(Function{}, operands.data());
  program.code = std::move(builder.code());
  program.outputs = {result.reg()};
}

/// A choice has a condition and two values.
template <typename Function>
void record_select(DType dtype, ScalarProgram& program) {
  ProgramBuilder builder(dtype);
  const ScalarType type = compute_type(dtype);
  const Expr condition(&builder, builder.emit({Opcode::kArgument, ScalarType::kBool, 0, 0, 0, 0}));
  const Expr first(&builder, builder.emit({Opcode::kArgument, type, 0, 0, 0, 1}));
  const Expr second(&builder, builder.emit({Opcode::kArgument, type, 0, 0, 0, 2}));
  const Expr result = Function{}(condition, first, second);
  program.code = std::move(builder.code());
  program.outputs = {result.reg()};
}

void assign_gradients(const Value& value, std::span<Value> out) { out[0] = value; }
void assign_gradients(const std::pair<Value, Value>& values, std::span<Value> out) {
  out[0] = values.first;
  out[1] = values.second;
}
void assign_gradients(const std::tuple<Value, Value, Value>& values, std::span<Value> out) {
  std::tie(out[0], out[1], out[2]) = values;
}
void assign_gradients(const std::tuple<Value, Value, Value, Value>& values, std::span<Value> out) {
  std::tie(out[0], out[1], out[2], out[3]) = values;
}

template <int kArity, typename Function>
void row_gradient(const Value& output, const Value& gradient, std::span<Value> gradients) {
  std::array<Value, kArity> operands;
  for (int i = 0; i < kArity; ++i) operands[static_cast<std::size_t>(i)] = Value(output->source(i));
  assign_gradients(call<kArity>(Function{}, operands.data(), output, gradient), gradients);
  for (int i = 0; i < kArity; ++i) {
    Value& result = gradients[static_cast<std::size_t>(i)];
    if (result) result = graph::sum_to(result, output->source(i)->shape());
  }
}

template <int kArity, typename Function>
double call_oracle(const double* operands) {
  return static_cast<double>(call<kArity>(Function{}, operands));
}

template <int kArity, typename Function>
std::int64_t call_integer_oracle(const std::int64_t* operands) {
  return call<kArity>(Function{}, operands);
}

/// The names of operands where a row states none.
std::array<Operand, kMaxOperands> usual_operands(int arity, Domain domain) {
  std::array<Operand, kMaxOperands> operands{};
  operands[0] = {"input", domain};
  if (arity == 2) operands[1] = {"other", domain};
  return operands;
}

struct Operands {
  std::array<Operand, kMaxOperands> stated;
};
/// An operand by its name alone has the row's domain.
struct StatedOperand {
  StatedOperand(const char* name) : operand{name, {0, 0}} {}  // NOLINT(google-explicit-constructor)
  StatedOperand(const char* name, Domain domain, double default_value = Operand::kRequired)
      : operand{name, domain, default_value} {}
  Operand operand;
};
template <typename... Stated>
Operands operands(const Stated&... stated) {
  return {{StatedOperand(stated).operand...}};
}
StatedOperand operand(const char* name, Domain domain, double default_value = Operand::kRequired) {
  return {name, domain, default_value};
}

struct Alias {
  const char* name;
};
Alias alias(const char* name) { return {name}; }

struct InFloat32 {};
InFloat32 in_float32() { return {}; }

void apply_option(ElementwiseRow& row, const Operands& option) {
  const Domain usual = row.operands[0].domain;
  row.operands = option.stated;
  for (Operand& operand : row.operands) {
    if (operand.domain.low == operand.domain.high) operand.domain = usual;
  }
}
void apply_option(ElementwiseRow& row, const Alias& option) {
  row.aliases[row.aliases[0] == nullptr ? 0 : 1] = option.name;
}
void apply_option(ElementwiseRow& row, InFloat32) { row.is_in_float32 = true; }

/// A formula that is another one in each floating type.
template <typename Function>
struct InEachType : Function {};
template <typename Function>
InEachType<Function> in_each_type(Function function) {
  return {function};
}
template <typename Oracle>
constexpr bool kIsInEachType = false;
template <typename Function>
constexpr bool kIsInEachType<InEachType<Function>> = true;

template <int kArity, typename Function, typename T>
double call_oracle_in(const double* given) {
  T operands[kArity];
  for (int i = 0; i < kArity; ++i) operands[i] = static_cast<T>(given[i]);
  return static_cast<double>(call<kArity>(Function{}, operands));
}
template <int kArity, typename Function>
double call_dtype_oracle(DType dtype, const double* operands) {
  switch (dtype) {
    case DType::kF16:
      return call_oracle_in<kArity, Function, oracle::Half<DType::kF16>>(operands);
    case DType::kBF16:
      return call_oracle_in<kArity, Function, oracle::Half<DType::kBF16>>(operands);
    case DType::kF32:
      return call_oracle_in<kArity, Function, float>(operands);
    default:
      return call_oracle<kArity, Function>(operands);
  }
}

template <int kArity, typename Program, typename Gradient, typename Oracle, typename... Options>
ElementwiseRow make_row(const char* name, const char* documentation, DTypeRule rule, Program,
                        Gradient, Oracle, Domain domain, double max_ulp,
                        const Options&... options) {
  ElementwiseRow row{};
  row.name = name;
  row.documentation = documentation;
  row.arity = kArity;
  row.rule = rule;
  if constexpr (kArity == 3) {
    row.record = rule == DTypeRule::kSelect ? &record_select<Program> : &record_row<3, Program>;
  } else {
    row.record = &record_row<kArity, Program>;
  }
  if constexpr (!std::is_same_v<Gradient, NoGradient>) {
    row.gradient = &row_gradient<kArity, Gradient>;
  }
  row.oracle = &call_oracle<kArity, Oracle>;
  // A generic formula has a meaning of its own in integers; one in double alone has not.
  constexpr bool is_generic = !requires { &Oracle::operator(); };
  if constexpr (kIsInEachType<Oracle>) {
    row.dtype_oracle = &call_dtype_oracle<kArity, Oracle>;
  } else if constexpr (is_generic) {
    row.integer_oracle = &call_integer_oracle<kArity, Oracle>;
  }
  row.max_ulp = max_ulp;
  row.operands = usual_operands(kArity, domain);
  (apply_option(row, options), ...);
  return row;
}

#define NONE \
  NoGradient {}
#define VKML_ROW(arity, name, documentation, rule, ...) \
  make_row<arity>(#name, documentation, DTypeRule::rule, __VA_ARGS__),
const ElementwiseRow kRows[] = {
#include "vkml/ops/elementwise.def.h"
};
#undef NONE
constexpr std::size_t kRowCount = std::size(kRows);

const graph::OpInfo& info_of(Row row) {
  static const auto kInfos = [] {
    std::array<graph::OpInfo, kRowCount> infos{};
    for (std::size_t i = 0; i < kRowCount; ++i) {
      infos[i] = {kRows[i].name, graph::Family::kElementwise, static_cast<int>(i),
                  kRows[i].gradient};
    }
    return infos;
  }();
  return kInfos[static_cast<std::size_t>(row)];
}

DType taken_dtype(const ElementwiseRow& row, DType promoted) {
  switch (row.rule) {
    case DTypeRule::kFloat:
      return is_floating(promoted) ? promoted : kDefaultFloat;
    case DTypeRule::kLogical:
      return DType::kBool;
    case DTypeRule::kRandom:
      return DType::kI32;
    case DTypeRule::kBits:
      if (is_floating(promoted)) {
        throw DTypeError(
            fmt::format("[{}] takes integers and bools, not {}", row.name, name_of(promoted)));
      }
      return promoted;
    default:
      return promoted;
  }
}

DType result_dtype(const ElementwiseRow& row, DType operands) {
  switch (row.rule) {
    case DTypeRule::kCompare:
    case DTypeRule::kPredicate:
    case DTypeRule::kLogical:
      return DType::kBool;
    case DTypeRule::kRandom:
      return DType::kF32;
    default:
      return operands;
  }
}

}  // namespace

std::span<const ElementwiseRow> elementwise_rows() { return kRows; }
const ElementwiseRow& row_of(const graph::OpInfo& op) { return kRows[op.id]; }

DType operand_dtype(const graph::Node& node) {
  const bool has_condition = row_of(node.op()).rule == DTypeRule::kSelect;
  return node.source(has_condition ? 1 : 0)->dtype();
}

const ScalarProgram& program_of(const graph::OpInfo& op, DType operands) {
  struct Recorded {
    std::once_flag once;
    ScalarProgram program;
  };
  static std::array<std::array<Recorded, kDTypeCount>, kRowCount> table;
  Recorded& entry = table[static_cast<std::size_t>(op.id)][static_cast<std::size_t>(operands)];
  std::call_once(entry.once, [&] {
    try {
      kRows[op.id].record(operands, entry.program);
    } catch (const DTypeError& error) {
      throw DTypeError(fmt::format("[{}] {}", op.name, error.what()));
    }
  });
  return entry.program;
}

Value apply_elementwise(Row which, std::span<const Value> operands) {
  std::vector<Value> copies(operands.begin(), operands.end());
  return apply_elementwise_taking(which, copies);
}

Value apply_elementwise_taking(Row which, std::span<Value> operands) {
  const ElementwiseRow& row = kRows[static_cast<std::size_t>(which)];
  graph::check_same_device(row.name, operands);
  if (row.is_in_float32 && graph::is_autocast_enabled()) {
    for (Value& operand : operands) operand = graph::as_precise_operand(operand);
  }
  // A choice's condition takes no part in promotion.
  const std::size_t first = row.rule == DTypeRule::kSelect ? 1 : 0;
  Promotion promotion;
  for (const Value& operand : operands.subspan(first)) {
    promotion.add(operand.dtype(), operand->is_weak());
  }
  DType promoted = promotion.dtype();
  const bool weak = promotion.is_weak();
  // A comparison has an answer for every number, as in NumPy; elsewhere one past the dtype is an
  // error.
  if (row.rule == DTypeRule::kCompare) {
    for (const Value& operand : operands) {
      if (!graph::number_fits(operand, promoted)) promoted = DType::kI64;
    }
  }
  const DType dtype = taken_dtype(row, promoted);
  const DType result = result_dtype(row, dtype);
  Shape shape = operands[0].shape();
  bool same = shape.is_contiguous(size_of(result));
  for (const Value& operand : operands.subspan(1)) same = same && operand.shape() == shape;
  if (!same || size_of(operands[0].dtype()) != size_of(result)) {
    shape = Shape(operands[0].shape().extents(), result);
    for (const Value& operand : operands.subspan(1)) {
      shape = broadcast_extents(row.name, shape, operand.shape(), result);
    }
  }
  // Reports an operator that the dtype does not have now, not when the value is observed.
  program_of(info_of(which), dtype);
  const Device device = operands[0].device();
  graph::SourceList sources;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const DType wanted = i < first ? DType::kBool : dtype;
    Value& operand = operands[i];
    if (operand.dtype() != wanted) operand = graph::cast_operand(row.name, operand, wanted);
    sources.push_back(std::move(operand).take());
  }

  graph::NodeSpec spec;
  spec.op = &info_of(which);
  spec.dtype = result;
  spec.device = device;
  spec.shape = shape;
  if (weak) spec.flags |= graph::kFlagWeak;
  if (row.gradient != nullptr && is_floating(result) && graph::any_requires_grad(sources)) {
    spec.flags |= graph::kFlagRequiresGrad;
  }
  return Value(graph::make_node(std::move(spec), std::move(sources)));
}

}  // namespace vkml::ops

namespace vkml::graph {

#define VKML_ROW(arity, name, ...)                                  \
  Value name(VKML_PARAMETERS_##arity(Value)) {                      \
    std::array<Value, arity> operands{VKML_ARGUMENTS_##arity};      \
    return ops::apply_elementwise_taking(ops::Row::name, operands); \
  }
#include "vkml/ops/elementwise.def.h"
#define VKML_ROW(arity, name, ...) VKML_WITH_NUMBER_##arity(name)
#define VKML_WITH_NUMBER_1(name)
#define VKML_WITH_NUMBER_2(name) \
  Value name(const Value& a, double b) { return name(a, weak_scalar(b, a.device())); }
#define VKML_WITH_NUMBER_3(name)
#define VKML_WITH_NUMBER_4(name)
#include "vkml/ops/elementwise.def.h"

Value operator+(const Value& a, const Value& b) { return add(a, b); }
Value operator-(const Value& a, const Value& b) { return sub(a, b); }
Value operator*(const Value& a, const Value& b) { return mul(a, b); }
Value operator/(const Value& a, const Value& b) { return div(a, b); }
Value operator-(const Value& a) { return neg(a); }
Value operator+(const Value& a, double b) { return add(a, b); }
Value operator-(const Value& a, double b) { return sub(a, b); }
Value operator*(const Value& a, double b) { return mul(a, b); }
Value operator/(const Value& a, double b) {
  return divides_by_reciprocal(b) && is_floating(a.dtype()) ? mul(a, 1.0 / b) : div(a, b);
}

bool divides_by_reciprocal(double number) {
  constexpr int kLargestExponent = 14;  // within the normal numbers of every float dtype
  int exponent = 0;
  return std::fabs(std::frexp(number, &exponent)) == 0.5 && std::abs(exponent) <= kLargestExponent;
}
Value operator+(double a, const Value& b) { return add(weak_scalar(a, b.device()), b); }
Value operator-(double a, const Value& b) { return sub(weak_scalar(a, b.device()), b); }
Value operator*(double a, const Value& b) { return mul(weak_scalar(a, b.device()), b); }
Value operator/(double a, const Value& b) { return div(weak_scalar(a, b.device()), b); }
Value operator<(const Value& a, double b) { return lt(a, b); }
Value operator>(const Value& a, double b) { return gt(a, b); }
Value operator<=(const Value& a, double b) { return le(a, b); }
Value operator>=(const Value& a, double b) { return ge(a, b); }

Value where_else_zero(const Value& condition, const Value& value) {
  return where(condition, value, weak_scalar(0.0, value.device()));
}

Value unless_zero(const Value& g, const Value& value) {
  // Only a NaN is left out: a number still depends on g, as the second derivative at a minimum
  // asks.
  return where_else_zero(logical_or(ne(g, 0.0), eq(value, value)), value);
}

}  // namespace vkml::graph
