// The elementwise table in Python: a function and a method for every row, and the operators.

#include "vkml/ops/elementwise.h"
#include "common.h"

namespace vkml::python {
namespace {

nb::object not_implemented() { return nb::borrow(Py_NotImplemented); }

using BinaryFunction = Tensor (*)(const Tensor&, const Tensor&);

/// x op other and other op x.
void def_operator(nb::class_<Tensor>& tensor, const char* name, const char* reflected,
                  BinaryFunction function) {
  tensor.def(
      name,
      [function, name](const Tensor& self, nb::handle other) -> nb::object {
        if (!is_operand(other)) return not_implemented();
        return nb::cast(function(self, operand_from(other, name)));
      },
      nb::is_operator());
  if (reflected == nullptr) return;
  tensor.def(
      reflected,
      [function, name](const Tensor& self, nb::handle other) -> nb::object {
        if (!is_operand(other)) return not_implemented();
        return nb::cast(function(operand_from(other, name), self));
      },
      nb::is_operator());
}

/// x op= other, which every name of x sees.
void def_inplace(nb::class_<Tensor>& tensor, const char* name, BinaryFunction function) {
  tensor.def(
      name,
      [function, name](nb::object self, nb::handle other) -> nb::object {
        if (!is_operand(other)) return not_implemented();
        Tensor& t = nb::cast<Tensor&>(self);
        t.update_(function(t, operand_from(other, name)));
        return self;
      },
      nb::is_operator());
}

/// Python numbers have shortcuts: squares and roots are one instruction.
Tensor power(const Tensor& base, const Tensor& exponent) { return pow(base, exponent); }

nb::object power_operator(const Tensor& self, nb::handle exponent) {
  if (PyFloat_Check(exponent.ptr()) || PyLong_Check(exponent.ptr())) {
    const double number = nb::cast<double>(exponent);
    if (number == 2) return nb::cast(square(self));
    if (number == 0.5) return nb::cast(sqrt(self));
    if (number == 1 && PyLong_Check(exponent.ptr())) return nb::cast(self);
  }
  if (!is_operand(exponent)) return not_implemented();
  return nb::cast(power(self, operand_from(exponent, "pow")));
}

}  // namespace

void bind_elementwise(nb::module_& m, nb::class_<Tensor>& tensor) {
  std::size_t row = 0;
  const auto rows = ops::elementwise_rows();
  // nanobind keeps the pointer of a docstring; the table's are static.
#define VKML_UNARY(name, ...)                                                             \
  m.def(                                                                                  \
      #name, [](nb::handle x) { return name(operand_from(x, #name)); }, nb::arg("input"), \
      rows[row].documentation);                                                           \
  tensor.def(                                                                             \
      #name, [](const Tensor& x) { return name(x); }, rows[row++].documentation);
#define VKML_BINARY(name, ...)                                                              \
  m.def(                                                                                    \
      #name,                                                                                \
      [](nb::handle a, nb::handle b) {                                                      \
        return name(operand_from(a, #name), operand_from(b, #name));                        \
      },                                                                                    \
      nb::arg("input"), nb::arg("other"), rows[row].documentation);                         \
  tensor.def(                                                                               \
      #name, [](const Tensor& a, nb::handle b) { return name(a, operand_from(b, #name)); }, \
      nb::arg("other"), rows[row++].documentation);
#define VKML_TERNARY(name, ...)                                                              \
  m.def(                                                                                     \
      #name,                                                                                 \
      [](nb::handle a, nb::handle b, nb::handle c) {                                         \
        return name(operand_from(a, #name), operand_from(b, #name), operand_from(c, #name)); \
      },                                                                                     \
      nb::arg("a"), nb::arg("b"), nb::arg("c"), rows[row++].documentation);
#include "vkml/ops/elementwise.def.h"
#undef VKML_UNARY
#undef VKML_BINARY
#undef VKML_TERNARY

  def_operator(tensor, "__add__", "__radd__", &add);
  def_operator(tensor, "__sub__", "__rsub__", &sub);
  def_operator(tensor, "__mul__", "__rmul__", &mul);
  def_operator(tensor, "__truediv__", "__rtruediv__",
               [](const Tensor& a, const Tensor& b) { return a / b; });
  def_operator(tensor, "__floordiv__", "__rfloordiv__", &floor_divide);
  def_operator(tensor, "__mod__", "__rmod__", &remainder);
  def_operator(tensor, "__and__", "__rand__", &bitwise_and);
  def_operator(tensor, "__or__", "__ror__", &bitwise_or);
  def_operator(tensor, "__xor__", "__rxor__", &bitwise_xor);
  def_operator(tensor, "__eq__", nullptr, &eq);
  def_operator(tensor, "__ne__", nullptr, &ne);
  def_operator(tensor, "__lt__", nullptr, &lt);
  def_operator(tensor, "__le__", nullptr, &le);
  def_operator(tensor, "__gt__", nullptr, &gt);
  def_operator(tensor, "__ge__", nullptr, &ge);
  def_operator(tensor, "__matmul__", "__rmatmul__", &matmul);
  def_inplace(tensor, "__iadd__", &add);
  def_inplace(tensor, "__isub__", &sub);
  def_inplace(tensor, "__imul__", &mul);
  def_inplace(tensor, "__itruediv__", &div);
  def_inplace(tensor, "__iand__", &bitwise_and);
  def_inplace(tensor, "__ior__", &bitwise_or);
  def_inplace(tensor, "__ixor__", &bitwise_xor);
  tensor.def("__pow__", &power_operator, nb::is_operator());
  tensor.def(
      "__rpow__",
      [](const Tensor& self, nb::handle base) -> nb::object {
        if (!is_operand(base)) return not_implemented();
        return nb::cast(power(operand_from(base, "pow"), self));
      },
      nb::is_operator());
  tensor.def("__neg__", [](const Tensor& x) { return neg(x); });
  tensor.def("__pos__", [](const Tensor& x) { return x; });
  tensor.def("__abs__", [](const Tensor& x) { return abs(x); });
  tensor.def("__invert__", [](const Tensor& x) { return bitwise_not(x); });
  tensor.def(
      "clamp",
      [](const Tensor& x, nb::handle low, nb::handle high) {
        Tensor result = x;
        if (!low.is_none()) result = maximum(result, operand_from(low, "clamp"));
        if (!high.is_none()) result = minimum(result, operand_from(high, "clamp"));
        return result;
      },
      nb::arg("min") = nb::none(), nb::arg("max") = nb::none(), "Limits to [min, max]; NaN stays.");
}

}  // namespace vkml::python
