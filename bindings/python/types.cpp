// dtype and device objects.

#include <array>

#include "common.h"

namespace vkml::python {
namespace {

/// A dtype as Python sees it.
struct PythonDType {
  DType dtype;
};

std::array<PyObject*, kDTypeCount>& dtype_objects() {
  static std::array<PyObject*, kDTypeCount> objects{};
  return objects;
}

/// A tensor or dtype is strong, a Python number weak.
void add_to(Promotion& promotion, nb::handle given) {
  if (nb::isinstance<PythonDType>(given)) {
    promotion.add(nb::cast<PythonDType>(given).dtype, false);
    return;
  }
  const Tensor operand = operand_from(given, "result_type");
  const bool is_number = !nb::isinstance<Tensor>(given) && operand.rank() == 0;
  promotion.add(operand.dtype(), is_number);
}

std::string device_repr(Device device) { return "device('" + to_string(device) + "')"; }

}  // namespace

nb::object dtype_object(DType dtype) {
  return nb::borrow(dtype_objects()[static_cast<std::size_t>(dtype)]);
}

DType dtype_from(nb::handle object) {
  if (nb::isinstance<PythonDType>(object)) return nb::cast<PythonDType>(object).dtype;
  if (object.ptr() == reinterpret_cast<PyObject*>(&PyFloat_Type)) return kDefaultFloat;
  if (object.ptr() == reinterpret_cast<PyObject*>(&PyBool_Type)) return DType::kBool;
  if (object.ptr() == reinterpret_cast<PyObject*>(&PyLong_Type)) return kDefaultInteger;
  const std::string text = nb::cast<std::string>(nb::repr(object));
  throw DTypeError(text + " is not a vkml.dtype. Use vkml.float32 and so on");
}

Device device_from(nb::handle object) {
  if (object.is_none()) return default_device();
  if (nb::isinstance<Device>(object)) return nb::cast<Device>(object);
  if (nb::isinstance<nb::str>(object)) return parse_device(nb::cast<std::string>(object));
  const std::string text = nb::cast<std::string>(nb::repr(object));
  throw DeviceError(text + " is not a device. Use \"cpu\", \"vulkan\" or vkml.device(...)");
}

void bind_types(nb::module_& m) {
  nb::class_<PythonDType>(m, "dtype", "The type of a tensor's elements.")
      .def("__repr__",
           [](const PythonDType& d) {
             return "vkml." +
                    (d.dtype == DType::kBool ? std::string("bool") : std::string(name_of(d.dtype)));
           })
      .def("__hash__", [](const PythonDType& d) { return static_cast<std::int64_t>(d.dtype); })
      .def("__eq__",
           [](const PythonDType& a, nb::handle b) {
             return nb::isinstance<PythonDType>(b) && nb::cast<PythonDType>(b).dtype == a.dtype;
           })
      .def("__reduce__",
           [](const PythonDType& d) {
             const nb::object module = nb::module_::import_("vkml");
             const char* name = d.dtype == DType::kBool ? "bool" : name_of(d.dtype).data();
             return nb::make_tuple(nb::module_::import_("builtins").attr("getattr"),
                                   nb::make_tuple(module, name));
           })
      .def_prop_ro(
          "itemsize", [](const PythonDType& d) { return size_of(d.dtype); },
          "Bytes of one element.")
      .def_prop_ro(
          "is_floating_point", [](const PythonDType& d) { return is_floating(d.dtype); },
          "Whether it has fractions.");
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    const nb::object object = nb::cast(PythonDType{dtype});
    dtype_objects()[static_cast<std::size_t>(i)] = nb::object(object).release().ptr();
    m.attr(dtype == DType::kBool ? "bool" : name_of(dtype).data()) = object;
  }
  m.def(
      "result_type",
      [](const nb::args& arrays_and_dtypes) {
        // NOLINTNEXTLINE(readability-container-size-empty): nanobind 2.0 has no empty().
        if (arrays_and_dtypes.size() == 0) throw ArgumentError("[result_type] needs an operand");
        Promotion promotion;
        for (const nb::handle given : arrays_and_dtypes) add_to(promotion, given);
        return dtype_object(promotion.dtype());
      },
      nb::arg("arrays_and_dtypes"),
      "The dtype in which tensors, dtypes and Python numbers meet; numbers yield.");
  m.def(
      "promote_types",
      [](nb::handle a, nb::handle b) {
        return dtype_object(promote(dtype_from(a), dtype_from(b)));
      },
      nb::arg("type1"), nb::arg("type2"), "The dtype in which two dtypes meet.");
  m.attr("MAX_DIMS") = kMaxDims;
  m.attr("half") = dtype_object(DType::kF16);
  m.attr("float") = dtype_object(DType::kF32);
  m.attr("double") = dtype_object(DType::kF64);
  m.attr("int") = dtype_object(DType::kI32);
  m.attr("long") = dtype_object(DType::kI64);

  nb::class_<Device>(m, "device", "A device: vkml.device(\"cpu\"), vkml.device(\"vulkan:0\").")
      .def(
          "__init__", [](Device* self, nb::handle name) { new (self) Device(device_from(name)); },
          nb::arg("name"))
      .def("__repr__", &device_repr)
      .def("__str__", [](Device d) { return to_string(d); })
      .def("__hash__", [](Device d) { return key_of(d); })
      .def("__eq__",
           [](Device a, nb::handle b) {
             return nb::isinstance<Device>(b) && nb::cast<Device>(b) == a;
           })
      .def(
          "__reduce__",
          [](Device d) { return nb::make_tuple(nb::type<Device>(), nb::make_tuple(to_string(d))); })
      .def_prop_ro("type", [](Device d) { return std::string(row_of(d.kind).name); })
      .def_prop_ro("index", [](Device d) { return static_cast<int>(d.index); });
  m.attr("Device") = m.attr("device");
  m.attr("cpu") = nb::cast(kCpu);
  m.attr("vulkan") = nb::cast(vulkan_device(0));
}

}  // namespace vkml::python
