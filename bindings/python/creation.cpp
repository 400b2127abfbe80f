// Making tensors.

#include <limits>

#include "common.h"

namespace vkml::python {
namespace {

Tensor with_flag(Tensor tensor, bool requires_grad) {
  if (requires_grad) tensor.requires_grad_();
  return tensor;
}

DType dtype_or(nb::handle dtype, DType fallback) {
  return dtype.is_none() ? fallback : dtype_from(dtype);
}

using Filled = Tensor (*)(const Extents&, DType, std::optional<Device>);

/// zeros(2, 3), zeros((2, 3)), with dtype, device and requires_grad by name.
void def_filled(nb::module_& m, const char* name, Filled make, const char* documentation) {
  m.def(
      name,
      [make](const nb::args& size, nb::handle dtype, nb::handle device, bool requires_grad) {
        return with_flag(
            make(extents_from(size), dtype_or(dtype, kDefaultFloat), device_from(device)),
            requires_grad);
      },
      nb::arg("size"), nb::kw_only(), nb::arg("dtype") = nb::none(), nb::arg("device") = nb::none(),
      nb::arg("requires_grad") = false, documentation);
}

void def_like(nb::module_& m, const char* name, Filled make, const char* documentation) {
  m.def(
      name,
      [make](const Tensor& x, nb::handle dtype, nb::handle device, bool requires_grad) {
        const Extents extents = x.extents();
        return with_flag(make(extents, dtype_or(dtype, x.dtype()),
                              device.is_none() ? x.device() : device_from(device)),
                         requires_grad);
      },
      nb::arg("input"), nb::kw_only(), nb::arg("dtype") = nb::none(),
      nb::arg("device") = nb::none(), nb::arg("requires_grad") = false, documentation);
}

DType number_dtype(nb::handle number) {
  if (PyBool_Check(number.ptr())) return DType::kBool;
  return PyFloat_Check(number.ptr()) ? kDefaultFloat : kDefaultInteger;
}

}  // namespace

void bind_creation(nb::module_& m) {
  m.def(
      "tensor",
      [](nb::handle data, nb::handle dtype, nb::handle device, bool requires_grad) {
        std::optional<DType> wanted;
        if (!dtype.is_none()) wanted = dtype_from(dtype);
        return with_flag(tensor_from(data, wanted, device_from(device)), requires_grad);
      },
      nb::arg("data"), nb::arg("dtype") = nb::none(), nb::arg("device") = nb::none(),
      nb::arg("requires_grad") = false,
      "A tensor from numbers, nested sequences, NumPy arrays, buffers or another tensor; copies.");
  def_filled(m, "zeros", &zeros, "Every element 0.");
  def_filled(m, "ones", &ones, "Every element 1.");
  def_filled(m, "empty", &zeros, "Every element 0: vkML has no uninitialised tensors.");
  def_filled(m, "rand", &rand, "Uniform in [0, 1).");
  def_filled(m, "randn", &randn, "Standard normal.");
  def_like(m, "zeros_like", &zeros, "Zeros in the shape of another tensor.");
  def_like(m, "ones_like", &ones, "Ones in the shape of another tensor.");
  def_like(m, "empty_like", &zeros, "Zeros in the shape of another tensor.");
  def_like(m, "rand_like", &rand, "Uniform numbers in the shape of another tensor.");
  def_like(m, "randn_like", &randn, "Normal numbers in the shape of another tensor.");
  m.def(
      "full",
      [](nb::handle size, nb::handle fill_value, nb::handle dtype, nb::handle device,
         bool requires_grad) {
        return with_flag(full(extents_from(size), nb::cast<double>(nb::float_(fill_value)),
                              dtype_or(dtype, number_dtype(fill_value)), device_from(device)),
                         requires_grad);
      },
      nb::arg("size"), nb::arg("fill_value"), nb::kw_only(), nb::arg("dtype") = nb::none(),
      nb::arg("device") = nb::none(), nb::arg("requires_grad") = false,
      "Every element the same number.");
  m.def(
      "full_like",
      [](const Tensor& x, double fill_value, nb::handle dtype, nb::handle device) {
        const Extents extents = x.extents();
        return full(extents, fill_value, dtype_or(dtype, x.dtype()),
                    device.is_none() ? x.device() : device_from(device));
      },
      nb::arg("input"), nb::arg("fill_value"), nb::kw_only(), nb::arg("dtype") = nb::none(),
      nb::arg("device") = nb::none(), "One number in the shape of another tensor.");
  m.def(
      "arange",
      [](nb::handle start, nb::handle end, nb::handle step, nb::handle dtype, nb::handle device) {
        const bool floats =
            PyFloat_Check(start.ptr()) || PyFloat_Check(end.ptr()) || PyFloat_Check(step.ptr());
        const DType type = dtype_or(dtype, floats ? kDefaultFloat : kDefaultInteger);
        const double first = end.is_none() ? 0 : nb::cast<double>(nb::float_(start));
        const double last = nb::cast<double>(nb::float_(end.is_none() ? start : end));
        return arange(first, last, nb::cast<double>(nb::float_(step)), type, device_from(device));
      },
      nb::arg("start"), nb::arg("end") = nb::none(), nb::arg("step") = 1, nb::kw_only(),
      nb::arg("dtype") = nb::none(), nb::arg("device") = nb::none(),
      "start, start + step, ... below end.");
  m.def(
      "randint",
      [](std::int64_t low, nb::handle high, nb::handle size, nb::handle dtype, nb::handle device) {
        const bool one_bound = nb::isinstance<nb::sequence>(high) && size.is_none();
        const Extents extents = extents_from(one_bound ? high : size);
        const std::int64_t until = one_bound ? low : nb::cast<std::int64_t>(high);
        return randint(one_bound ? 0 : low, until, extents, dtype_or(dtype, DType::kI64),
                       device_from(device));
      },
      nb::arg("low"), nb::arg("high"), nb::arg("size") = nb::none(), nb::kw_only(),
      nb::arg("dtype") = nb::none(), nb::arg("device") = nb::none(), "Integers in [low, high).");
}

}  // namespace vkml::python
