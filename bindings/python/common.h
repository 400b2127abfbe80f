// What the files of the native module share: conversions between Python objects and vkML's values.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>

#include "vkml/api/vkml.h"

namespace nb = nanobind;

namespace vkml::python {

/// For functions that may plan, run or wait: other Python threads go on meanwhile.
using Release = nb::call_guard<nb::gil_scoped_release>;

void watch_forks();
void bind_errors(nb::module_& m);
/// In a handler: raises the exception in Python, as nanobind does of functions that it binds.
void raise_current_exception();
/// Makes what bound functions reject raise vkML's exceptions. Called when all are bound.
void bind_argument_errors(nb::module_& m);
void bind_types(nb::module_& m);
void bind_context(nb::module_& m);
void bind_tensor(nb::module_& m);
/// Slots of the type Tensor: its binary operators.
PyType_Slot* operator_slots();
void bind_operators(nb::class_<Tensor>& tensor);
void bind_elementwise(nb::module_& m, nb::class_<Tensor>& tensor);
void bind_keywords(nb::module_& m, nb::class_<Tensor>& tensor);
void bind_structure(nb::module_& m, nb::class_<Tensor>& tensor);
void bind_products(nb::module_& m, nb::class_<Tensor>& tensor);
void bind_arrangement(nb::module_& m, nb::class_<Tensor>& tensor);
void bind_ordering(nb::module_& m, nb::class_<Tensor>& tensor);
void bind_selection(nb::module_& m, nb::class_<Tensor>& tensor);
void bind_random_stream(nb::module_& m);
void bind_random(nb::module_& m, nb::class_<Tensor>& tensor);
void bind_jit(nb::module_& m);
void bind_linalg(nb::module_& m);
void bind_transforms(nb::module_& m);
void bind_plan(nb::module_& m);
void bind_profile(nb::module_& m);
void bind_networks(nb::module_& m);
void bind_creation(nb::module_& m);
void bind_interop(nb::module_& m, nb::class_<Tensor>& tensor);
void bind_dlpack(nb::module_& m, nb::class_<Tensor>& tensor);
void bind_autograd(nb::module_& m, nb::class_<Tensor>& tensor);

/// The Python object of a dtype: one object each, so that `x.dtype is vkml.float32`.
nb::object dtype_object(DType dtype);
DType dtype_from(nb::handle object);

/// A device from a device object, a name, or None (the default device).
Device device_from(nb::handle object);

/// A tensor from a tensor or a Python number; the number yields to other operands' dtypes.
Tensor operand_from(nb::handle object, const char* op);
/// Whether operand_from takes the object, for operators that must return NotImplemented otherwise.
bool is_operand(nb::handle object);

/// Axes from None, an int or a sequence of ints; `dim` and `axis` name the same thing.
Extents axes_from(const char* op, nb::handle dim, nb::handle axis);
/// Extents from one sequence or from several ints.
Extents extents_from(const char* op, const nb::args& args);
Extents extents_from(const char* op, nb::handle object);
/// (a, b) from an int or a pair.
Pair pair_from(const char* op, const char* name, nb::handle object);

/// Throws ArgumentError naming the operator for what is no integer of 64 bits.
std::int64_t integer_from(const char* op, nb::handle object);
/// A Python or NumPy number; integers stay exact.
Number number_from(const char* op, nb::handle object);

/// The parts of an index without tensors.
Index index_from(const char* op, nb::handle object);
/// Whether an index holds tensors, arrays or lists, which select by data.
bool is_advanced_index(nb::handle object);
/// Such an index; what is no tensor becomes one on `device`.
std::vector<AdvancedPart> advanced_index_from(const char* op, nb::handle object, Device device);

/// A tensor of indices from a tensor, or from integers in lists or arrays, which go to `device`.
Tensor indices_from(nb::handle object, const char* op, Device device);

/// Python's own numbers as a tensor's elements: nested lists, tuples, numbers, arrays, buffers.
Tensor tensor_from(nb::handle data, std::optional<DType> dtype, Device device);

}  // namespace vkml::python
