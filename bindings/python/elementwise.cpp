// The elementwise table in Python: a function and a method for every row under each of its names,
// and a method that changes the tensor where the result can keep its dtype (`relu_`). Keywords that
// choose among rows (rounding_mode, approximate, ...) are overloads in keywords.cpp.

#include <array>
#include <string>
#include <utility>

#include "define.h"
#include "vkml/ops/elementwise_row.h"

namespace vkml::python {
namespace {

nb::object not_implemented() { return nb::borrow(Py_NotImplemented); }

using BinaryFunction = Tensor (*)(const Tensor&, const Tensor&);

/// x op other; the other way round Python uses the opposite.
void def_comparison(nb::class_<Tensor>& tensor, const char* name, BinaryFunction function) {
  tensor.def(
      name,
      [function, name](const Tensor& self, nb::handle other) -> nb::object {
        if (!is_operand(other)) return not_implemented();
        return nb::cast(function(self, operand_from(other, name)));
      },
      nb::is_operator());
}

using ops::ElementwiseRow;

template <std::size_t>
using Handle = nb::handle;

/// An argument with the operand's name and default; nanobind takes a null default for none.
nb::arg_v argument(const ElementwiseRow& row, std::size_t index) {
  const ops::Operand& operand = row.operands[index];
  const nb::arg name(operand.name);
  if (operand.is_required()) return {name, nb::object()};
  const auto whole = static_cast<std::int64_t>(operand.default_value);
  // A whole default leaves integer tensors what they are.
  if (row.rule == ops::DTypeRule::kSame && static_cast<double>(whole) == operand.default_value) {
    return {name, nb::int_(whole)};
  }
  return {name, nb::float_(operand.default_value)};
}

bool keeps_dtype(const ElementwiseRow& row) {
  switch (row.rule) {
    case ops::DTypeRule::kSame:
    case ops::DTypeRule::kFloat:
    case ops::DTypeRule::kBits:
      return true;
    default:
      return false;
  }
}

template <typename Signature, std::size_t... kIndex, std::size_t... kRest>
void def_row(nb::module_& m, nb::class_<Tensor>& tensor, const ElementwiseRow& row,
             Signature* function, std::index_sequence<kIndex...>, std::index_sequence<kRest...>) {
  const char* const op = row.name;
  const auto call = [function, op](Handle<kIndex>... given) {
    return function(operand_from(given, op)...);
  };
  const auto method = [function, op](const Tensor& self, Handle<kRest>... given) {
    static_cast<void>(op);  // of a row of one operand
    return function(self, operand_from(given, op)...);
  };
  const auto change = [method](nb::object self, Handle<kRest>... given) {
    Tensor& t = nb::cast<Tensor&>(self);
    t.update_(method(t, given...));
    return self;
  };
  const bool has_method =
      row.rule != ops::DTypeRule::kSelect && row.rule != ops::DTypeRule::kRandom;
  const auto def = [&](const char* name) {
    m.def(name, call, argument(row, kIndex)..., row.documentation);
    if (!has_method) return;
    tensor.def(name, method, argument(row, kRest + 1)..., row.documentation);
    if (keeps_dtype(row)) {
      tensor.def(in_place(name), change, argument(row, kRest + 1)..., row.documentation);
    }
  };
  def(row.name);
  for (const char* name : row.aliases) {
    if (name != nullptr) def(name);
  }
}

/// One value for each place of equally many operands.
template <typename Number>
std::vector<Number> apply_formula(Number (*formula)(const Number*),
                                  const std::vector<std::vector<Number>>& operands) {
  std::vector<Number> results(operands.front().size());
  std::array<Number, ops::kMaxOperands> at{};
  for (std::size_t i = 0; i < results.size(); ++i) {
    for (std::size_t k = 0; k < operands.size(); ++k) at[k] = operands[k].at(i);
    results[i] = formula(at.data());
  }
  return results;
}

const ElementwiseRow& row_named(const std::string& name) {
  for (const ElementwiseRow& row : ops::elementwise_rows()) {
    if (row.name == name) return row;
  }
  throw ArgumentError("[formula] no elementwise operator is called '" + name + "'");
}

/// The rows' reference formulas, which tests compare operators with, and NumPy's with them.
void bind_formulas(nb::module_& m) {
  m.def(
      "_formula",
      [](const std::string& name, const std::vector<std::vector<double>>& operands) {
        return apply_formula<double>(row_named(name).oracle, operands);
      },
      nb::arg("name"), nb::arg("operands"), "An operator's reference formula on floats.");
  m.def(
      "_integer_formula",
      [](const std::string& name, const std::vector<std::vector<std::int64_t>>& operands) {
        return apply_formula<std::int64_t>(row_named(name).integer_oracle, operands);
      },
      nb::arg("name"), nb::arg("operands"), "An operator's reference formula on integers.");
}

}  // namespace

void bind_elementwise(nb::module_& m, nb::class_<Tensor>& tensor) {
  const auto rows = ops::elementwise_rows();
#define VKML_ROW(arity, name, ...)                                            \
  def_row<Tensor(VKML_PARAMETERS_##arity(Tensor))>(                           \
      m, tensor, rows[static_cast<std::size_t>(ops::Row::name)], &vkml::name, \
      std::make_index_sequence<arity>(), std::make_index_sequence<arity - 1>());
#include "vkml/ops/elementwise.def.h"

  def_comparison(tensor, "__eq__", &eq);
  def_comparison(tensor, "__ne__", &ne);
  def_comparison(tensor, "__lt__", &lt);
  def_comparison(tensor, "__le__", &le);
  def_comparison(tensor, "__gt__", &gt);
  def_comparison(tensor, "__ge__", &ge);
  tensor.def("__neg__", [](const Tensor& x) { return neg(x); });
  tensor.def("__pos__", [](const Tensor& x) { return x; });
  tensor.def("__abs__", [](const Tensor& x) { return abs(x); });
  tensor.def("__invert__", [](const Tensor& x) { return bitwise_not(x); });
  m.def(
      "where",
      [](const Tensor& condition) {
        nb::list columns;
        for (const Tensor& column : unbind(nonzero(condition), 1)) columns.append(column);
        return nb::tuple(columns);
      },
      nb::arg("condition"),
      "Where a condition holds: a vector of positions for each axis. Waits for the values.");
  tensor.def(
      "where",
      [](const Tensor& self, nb::handle condition, nb::handle other) {
        return where(operand_from(condition, "where"), self, operand_from(other, "where"));
      },
      nb::arg("condition"), nb::arg("other"),
      "This tensor where the condition holds, other elsewhere.");
  bind_formulas(m);
  bind_keywords(m, tensor);
}

}  // namespace vkml::python
