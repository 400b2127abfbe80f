// Making tensors.

#include <limits>

#include "draws.h"

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
      [make, name](const nb::args& size, nb::handle dtype, nb::handle device, bool requires_grad) {
        return with_flag(
            make(extents_from(name, size), dtype_or(dtype, kDefaultFloat), device_from(device)),
            requires_grad);
      },
      nb::arg("size"), nb::kw_only(), nb::arg("dtype") = nb::none(), nb::arg("device") = nb::none(),
      nb::arg("requires_grad") = false, documentation);
}

/// The same, of random numbers.
void def_drawn(nb::module_& m, const char* name, Filled draw, const char* documentation) {
  m.def(
      name,
      [draw, name](const nb::args& size, const Generator& generator, nb::handle dtype,
                   nb::handle device, bool requires_grad) {
        const DrawsOf scope(generator);
        return with_flag(
            draw(extents_from(name, size), dtype_or(dtype, kDefaultFloat), device_from(device)),
            requires_grad);
      },
      nb::arg("size"), nb::kw_only(), generator_argument(), nb::arg("dtype") = nb::none(),
      nb::arg("device") = nb::none(), nb::arg("requires_grad") = false, documentation);
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

/// The dtype of a tensor made of numbers alone: integers are int64 where int32 cannot hold them.
DType dtype_of_numbers(std::initializer_list<Number> numbers) {
  DType dtype = kDefaultInteger;
  for (const Number number : numbers) {
    if (!number.is_integer()) return kDefaultFloat;
    if (number.integer() != static_cast<std::int32_t>(number.integer())) dtype = DType::kI64;
  }
  return dtype;
}

DType number_dtype(nb::handle object, Number number) {
  return PyBool_Check(object.ptr()) ? DType::kBool : dtype_of_numbers({number});
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
      nb::arg("data").none(), nb::arg("dtype") = nb::none(), nb::arg("device") = nb::none(),
      nb::arg("requires_grad") = false,
      "A tensor from numbers, nested sequences, NumPy arrays, buffers or another tensor; copies.");
  def_filled(m, "zeros", &zeros, "Every element 0.");
  def_filled(m, "ones", &ones, "Every element 1.");
  def_filled(m, "empty", &empty, "Every element 0: vkML has no uninitialised tensors.");
  def_drawn(m, "rand", &rand, "Uniform in [0, 1).");
  def_drawn(m, "randn", &randn, "Standard normal.");
  def_like(m, "zeros_like", &zeros, "Zeros in the shape of another tensor.");
  def_like(m, "ones_like", &ones, "Ones in the shape of another tensor.");
  def_like(m, "empty_like", &zeros, "Zeros in the shape of another tensor.");
  def_like(m, "rand_like", &rand, "Uniform numbers in the shape of another tensor.");
  def_like(m, "randn_like", &randn, "Normal numbers in the shape of another tensor.");
  m.def(
      "full",
      [](nb::handle size, nb::handle fill_value, nb::handle dtype, nb::handle device,
         bool requires_grad) {
        const Number number = number_from("full", fill_value);
        return with_flag(
            full(extents_from("full", size), number,
                 dtype_or(dtype, number_dtype(fill_value, number)), device_from(device)),
            requires_grad);
      },
      nb::arg("size"), nb::arg("fill_value"), nb::kw_only(), nb::arg("dtype") = nb::none(),
      nb::arg("device") = nb::none(), nb::arg("requires_grad") = false,
      "Every element the same number.");
  m.def(
      "full_like",
      [](const Tensor& x, nb::handle fill_value, nb::handle dtype, nb::handle device,
         bool requires_grad) {
        Tensor filled =
            full(x.extents(), number_from("full_like", fill_value), dtype_or(dtype, x.dtype()),
                 device.is_none() ? x.device() : device_from(device));
        if (requires_grad) filled.requires_grad_();
        return filled;
      },
      nb::arg("input"), nb::arg("fill_value"), nb::kw_only(), nb::arg("dtype") = nb::none(),
      nb::arg("device") = nb::none(), nb::arg("requires_grad") = false,
      "One number in the shape of another tensor.");
  m.def(
      "arange",
      [](nb::handle start, nb::handle end, nb::handle step, nb::handle dtype, nb::handle device) {
        const Number first = end.is_none() ? Number(0) : number_from("arange", start);
        const Number last = number_from("arange", end.is_none() ? start : end);
        const Number stride = number_from("arange", step);
        const DType type = dtype_or(dtype, dtype_of_numbers({first, last, stride}));
        return arange(first, last, stride, type, device_from(device));
      },
      nb::arg("start"), nb::arg("end") = nb::none(), nb::arg("step") = 1, nb::kw_only(),
      nb::arg("dtype") = nb::none(), nb::arg("device") = nb::none(),
      "start, start + step, ... below end; integers are exact, int64 where int32 cannot hold "
      "them.");
  m.def(
      "randint",
      [](std::int64_t low, nb::handle high, nb::handle size, const Generator& generator,
         nb::handle dtype, nb::handle device) {
        const DrawsOf scope(generator);
        const bool one_bound = nb::isinstance<nb::sequence>(high) && size.is_none();
        const Extents extents = extents_from("randint", one_bound ? high : size);
        const std::int64_t until = one_bound ? low : nb::cast<std::int64_t>(high);
        return randint(one_bound ? 0 : low, until, extents, dtype_or(dtype, DType::kI64),
                       device_from(device));
      },
      nb::arg("low"), nb::arg("high"), nb::arg("size") = nb::none(), nb::kw_only(),
      generator_argument(), nb::arg("dtype") = nb::none(), nb::arg("device") = nb::none(),
      "Integers in [low, high).");
}

}  // namespace vkml::python
