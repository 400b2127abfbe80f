// Python objects as operands, axes, extents and indices.

#include "common.h"

namespace vkml::python {
namespace {

bool is_number(nb::handle object) {
  return PyFloat_Check(object.ptr()) || PyLong_Check(object.ptr());
}

/// For messages. A tensor's own text would compute it.
std::string described(nb::handle object) {
  if (nb::isinstance<Tensor>(object)) {
    const Tensor& tensor = nb::cast<const Tensor&>(object);
    return "a tensor of shape " + tensor.shape().to_string() + " and dtype " +
           std::string(name_of(tensor.dtype()));
  }
  return nb::cast<std::string>(nb::repr(object));
}

}  // namespace

std::int64_t integer_from(const char* op, nb::handle object) {
  const bool is_tensor = nb::isinstance<Tensor>(object);
  const bool is_one = !is_tensor || nb::cast<const Tensor&>(object).numel() == 1;
  const nb::object index = nb::steal(is_one ? PyNumber_Index(object.ptr()) : nullptr);
  if (!index.is_valid()) {
    PyErr_Clear();
    throw ArgumentError(std::string("[") + op + "] " + described(object) + " is not an integer");
  }
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(index.ptr(), &overflow);
  if (overflow != 0) {
    throw ArgumentError(std::string("[") + op + "] " + nb::cast<std::string>(nb::repr(object)) +
                        " does not fit 64 bits");
  }
  return value;
}

Number number_from(const char* op, nb::handle object) {
  const bool is_integer = PyIndex_Check(object.ptr()) != 0 && !nb::isinstance<Tensor>(object);
  if (is_integer) return integer_from(op, object);
  if (PyFloat_Check(object.ptr()) || nb::hasattr(object, "__float__"))
    return nb::cast<double>(nb::float_(object));
  throw DTypeError(std::string("[") + op + "] takes a number, not " +
                   nb::cast<std::string>(nb::repr(object.type())));
}

namespace {

Extents integers_from(const char* op, nb::handle object) {
  if (!nb::isinstance<nb::sequence>(object)) return {integer_from(op, object)};
  Extents values;
  for (const nb::handle item : object) values.push_back(integer_from(op, item));
  return values;
}

/// What vkml.recording's numbers are known by: the index of their expression.
constexpr const char* kExpressionIndex = "__vkml_expression__";

}  // namespace

bool is_operand(nb::handle object) {
  if (nb::isinstance<Tensor>(object)) return nb::inst_ready(object);
  return is_number(object) || PyIndex_Check(object.ptr()) || nb::hasattr(object, "__array__") ||
         nb::hasattr(object, kExpressionIndex);
}

Tensor indices_from(nb::handle object, const char* op, Device device) {
  if (nb::isinstance<Tensor>(object)) return nb::cast<Tensor>(object);
  if (nb::hasattr(object, "__array__") || PyList_Check(object.ptr()) || PyTuple_Check(object.ptr()))
    return tensor_from(object, std::nullopt, device);
  throw DTypeError(std::string("[") + op + "] takes integer tensors and lists of integers, not " +
                   described(object));
}

Tensor operand_from(nb::handle object, const char* op) {
  const Tensor* tensor = nullptr;
  if (nb::try_cast(object, tensor) && tensor != nullptr) return *tensor;
  if (PyBool_Check(object.ptr())) return Tensor(object.ptr() == Py_True);
  if (PyFloat_Check(object.ptr())) return Tensor(PyFloat_AsDouble(object.ptr()));
  if (PyLong_Check(object.ptr())) return Tensor(integer_from(op, object));
  if (nb::hasattr(object, kExpressionIndex)) {
    const nb::object value = object.attr("value");
    const auto index = nb::cast<std::int64_t>(object.attr(kExpressionIndex));
    return PyLong_Check(value.ptr()) ? number(integer_from(op, value), index)
                                     : number(PyFloat_AsDouble(value.ptr()), index);
  }
  if (nb::hasattr(object, "__array__") || nb::isinstance<nb::sequence>(object)) {
    return tensor_from(object, std::nullopt, default_device());
  }
  throw DTypeError(std::string("[") + op + "] takes tensors and numbers, not " +
                   nb::cast<std::string>(nb::repr(object.type())));
}

Extents axes_from(const char* op, nb::handle dim, nb::handle axis) {
  if (!dim.is_none() && !axis.is_none()) {
    throw ArgumentError(std::string("[") + op + "] dim and axis name the same thing; give one");
  }
  const nb::handle given = dim.is_none() ? axis : dim;
  return given.is_none() ? Extents() : integers_from(op, given);
}

Extents extents_from(const char* op, nb::handle object) { return integers_from(op, object); }

Extents extents_from(const char* op, const nb::args& args) {
  if (args.size() == 1 && nb::isinstance<nb::sequence>(args[0])) return integers_from(op, args[0]);
  Extents extents;
  for (const nb::handle item : args) extents.push_back(integer_from(op, item));
  return extents;
}

Pair pair_from(const char* op, const char* name, nb::handle object) {
  const Extents values = integers_from(op, object);
  if (values.size() == 1) return {values[0], values[0]};
  if (values.size() == 2) return {values[0], values[1]};
  throw ArgumentError(std::string("[") + op + "] " + name + " takes one integer or two, not " +
                      std::to_string(values.size()));
}

namespace {

std::optional<std::int64_t> bound_from(nb::handle object) {
  if (object.is_none()) return std::nullopt;
  // As Python does for its own sequences, bounds past 64 bits are clipped.
  const Py_ssize_t value = PyNumber_AsSsize_t(object.ptr(), nullptr);
  if (value == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();
  return value;
}

IndexPart index_part(const char* op, nb::handle object) {
  if (object.is_none()) return IndexNewAxis{};
  if (object.ptr() == Py_Ellipsis) return IndexEllipsis{};
  if (PySlice_Check(object.ptr())) {
    const std::optional<std::int64_t> step = bound_from(object.attr("step"));
    return IndexSlice{bound_from(object.attr("start")), bound_from(object.attr("stop")),
                      step.value_or(1)};
  }
  if (PyBool_Check(object.ptr()) || !PyIndex_Check(object.ptr())) {
    throw IndexError(std::string("[") + op +
                     "] takes integers, slices, None, ... and integer tensors, not " +
                     described(object));
  }
  return bound_from(object).value();
}

}  // namespace

Index index_from(const char* op, nb::handle object) {
  if (!PyTuple_Check(object.ptr())) return {index_part(op, object)};
  Index index;
  for (const nb::handle part : object) index.push_back(index_part(op, part));
  return index;
}

namespace {

bool selects_by_data(nb::handle part) {
  // True is a mask without axes: it adds an axis of extent 1, False one of extent 0.
  if (nb::isinstance<Tensor>(part) || PyBool_Check(part.ptr())) return true;
  const bool is_number = PyLong_Check(part.ptr()) || PyFloat_Check(part.ptr());
  // NumPy's integers have a rank too, of 0.
  const bool is_array =
      !is_number && nb::hasattr(part, "__array__") && nb::cast<int>(part.attr("ndim")) > 0;
  return is_array || PyList_Check(part.ptr()) || PyRange_Check(part.ptr());
}

}  // namespace

bool is_advanced_index(nb::handle object) {
  if (!PyTuple_Check(object.ptr())) return selects_by_data(object);
  for (const nb::handle part : object) {
    if (selects_by_data(part)) return true;
  }
  return false;
}

std::vector<AdvancedPart> advanced_index_from(const char* op, nb::handle object, Device device) {
  std::vector<AdvancedPart> parts;
  const auto add = [&](nb::handle part) {
    if (nb::isinstance<Tensor>(part)) {
      parts.emplace_back(nb::cast<Tensor>(part));
    } else if (PyRange_Check(part.ptr())) {
      parts.emplace_back(tensor_from(nb::list(part), DType::kI64, device));
    } else if (selects_by_data(part)) {
      const bool is_empty = PyList_Check(part.ptr()) && PyList_Size(part.ptr()) == 0;
      parts.emplace_back(
          tensor_from(part, is_empty ? std::optional<DType>(DType::kI64) : std::nullopt, device));
    } else {
      parts.emplace_back(index_part(op, part));
    }
  };
  if (PyTuple_Check(object.ptr())) {
    for (const nb::handle part : object) add(part);
  } else {
    add(object);
  }
  return parts;
}

}  // namespace vkml::python
