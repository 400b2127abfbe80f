// Python's binary operators, as slots of the type in C: a + b finds its function without looking a
// method up by name or parsing arguments, which costs more than recording the sum.

#include <array>

#include "common.h"

namespace vkml::python {
namespace {

Tensor divide(const Tensor& a, const Tensor& b) { return a / b; }

// slot, slot of the operator in place, operator's name, function
#define VKML_BINARY_OPERATORS(X)                                                  \
  X(Py_nb_add, Py_nb_inplace_add, "add", add)                                     \
  X(Py_nb_subtract, Py_nb_inplace_subtract, "sub", sub)                           \
  X(Py_nb_multiply, Py_nb_inplace_multiply, "mul", mul)                           \
  X(Py_nb_true_divide, Py_nb_inplace_true_divide, "div", divide)                  \
  X(Py_nb_floor_divide, Py_nb_inplace_floor_divide, "floor_divide", floor_divide) \
  X(Py_nb_remainder, Py_nb_inplace_remainder, "remainder", remainder)             \
  X(Py_nb_matrix_multiply, Py_nb_inplace_matrix_multiply, "matmul", matmul)       \
  X(Py_nb_and, Py_nb_inplace_and, "bitwise_and", bitwise_and)                     \
  X(Py_nb_or, Py_nb_inplace_or, "bitwise_or", bitwise_or)                         \
  X(Py_nb_xor, Py_nb_inplace_xor, "bitwise_xor", bitwise_xor)                     \
  X(Py_nb_lshift, Py_nb_inplace_lshift, "bitwise_left_shift", bitwise_left_shift) \
  X(Py_nb_rshift, Py_nb_inplace_rshift, "bitwise_right_shift", bitwise_right_shift)

using BinaryFunction = Tensor (*)(const Tensor&, const Tensor&);

PyTypeObject* g_tensor_type = nullptr;

const Tensor* tensor_of(PyObject* object) {
  PyTypeObject* const type = Py_TYPE(object);
  if (type != g_tensor_type && PyType_IsSubtype(type, g_tensor_type) == 0) return nullptr;
  return nb::inst_ready(object) ? nb::inst_ptr<Tensor>(object) : nullptr;
}

/// One of a and b is a tensor.
PyObject* apply(BinaryFunction function, const char* name, PyObject* a, PyObject* b) {
  try {
    const Tensor* const x = tensor_of(a);
    const Tensor* const y = tensor_of(b);
    if (x != nullptr && y != nullptr) return nb::cast(function(*x, *y)).release().ptr();
    if (!is_operand(a) || !is_operand(b)) Py_RETURN_NOTIMPLEMENTED;
    return nb::cast(function(operand_from(a, name), operand_from(b, name))).release().ptr();
  } catch (...) {
    raise_current_exception();
    return nullptr;
  }
}

/// a op= b, which every name of the tensor a sees.
PyObject* apply_in_place(BinaryFunction function, const char* name, PyObject* a, PyObject* b) {
  try {
    Tensor& x = nb::cast<Tensor&>(nb::handle(a));
    if (!is_operand(b)) Py_RETURN_NOTIMPLEMENTED;
    x.update_(function(x, operand_from(b, name)));
    return nb::borrow(a).release().ptr();
  } catch (...) {
    raise_current_exception();
    return nullptr;
  }
}

#define VKML_DEFINE_SLOTS(slot, in_place, name, function)                                       \
  PyObject* slot##_of_tensor(PyObject* a, PyObject* b) { return apply(&function, name, a, b); } \
  PyObject* in_place##_of_tensor(PyObject* a, PyObject* b) {                                    \
    return apply_in_place(&function, name, a, b);                                               \
  }
VKML_BINARY_OPERATORS(VKML_DEFINE_SLOTS)
#undef VKML_DEFINE_SLOTS

// Powers may have a modulus, which tensors do not take.
PyObject* power_of_tensor(PyObject* a, PyObject* b, PyObject* modulus) {
  if (modulus != Py_None) Py_RETURN_NOTIMPLEMENTED;
  return apply(&power, "pow", a, b);
}
PyObject* power_in_place(PyObject* a, PyObject* b, PyObject* modulus) {
  if (modulus != Py_None) Py_RETURN_NOTIMPLEMENTED;
  return apply_in_place(&power, "pow", a, b);
}

}  // namespace

PyType_Slot* operator_slots() {
#define VKML_SLOTS(slot, in_place, name, function)    \
  {slot, reinterpret_cast<void*>(&slot##_of_tensor)}, \
      {in_place, reinterpret_cast<void*>(&in_place##_of_tensor)},
  static PyType_Slot slots[] = {
      VKML_BINARY_OPERATORS(VKML_SLOTS){Py_nb_power, reinterpret_cast<void*>(&power_of_tensor)},
      {Py_nb_inplace_power, reinterpret_cast<void*>(&power_in_place)},
      {0, nullptr}};
#undef VKML_SLOTS
  return slots;
}

void bind_operators(nb::class_<Tensor>& tensor) {
  g_tensor_type = reinterpret_cast<PyTypeObject*>(tensor.ptr());
}

}  // namespace vkml::python
