// Between tensors and what Python holds numbers in: sequences, NumPy arrays, buffers.

#include <nanobind/ndarray.h>

#include <algorithm>
#include <cstring>

#include "common.h"
#include "dlpack.h"
#include "vkml/core/half.h"

namespace vkml::python {
namespace {

DType dtype_of(nb::dlpack::dtype type) {
  return dlpack::dtype_of("tensor", {type.code, type.bits, type.lanes});
}

nb::dlpack::dtype dlpack_of(DType dtype) {
  const dlpack::ElementType type = dlpack::type_of(dtype);
  return {type.code, type.bits, type.lanes};
}

using Array = nb::ndarray<nb::ro>;

/// The elements of a strided array, densely.
std::vector<std::byte> dense_bytes(const Array& array, std::size_t element) {
  std::vector<std::byte> bytes(array.size() * element);
  if (bytes.empty()) return bytes;
  const int rank = static_cast<int>(array.ndim());
  std::array<std::int64_t, kMaxDims> extents{1, 1, 1, 1};
  std::array<std::int64_t, kMaxDims> strides{};
  for (int axis = 0; axis < rank; ++axis) {
    const auto to = static_cast<std::size_t>(axis + kMaxDims - rank);
    extents[to] = static_cast<std::int64_t>(array.shape(static_cast<std::size_t>(axis)));
    strides[to] = array.stride(static_cast<std::size_t>(axis)) * static_cast<std::int64_t>(element);
  }
  const auto* base = static_cast<const std::byte*>(array.data());
  std::byte* out = bytes.data();
  const bool dense_row = strides[3] == static_cast<std::int64_t>(element);
  for (std::int64_t i = 0; i < extents[0]; ++i) {
    for (std::int64_t j = 0; j < extents[1]; ++j) {
      for (std::int64_t k = 0; k < extents[2]; ++k) {
        const std::byte* row = base + i * strides[0] + j * strides[1] + k * strides[2];
        if (dense_row) {
          const std::size_t length = static_cast<std::size_t>(extents[3]) * element;
          std::memcpy(out, row, length);
          out += length;
          continue;
        }
        for (std::int64_t l = 0; l < extents[3]; ++l, out += element) {
          std::memcpy(out, row + l * strides[3], element);
        }
      }
    }
  }
  return bytes;
}

Tensor from_array(const Array& array, std::optional<DType> dtype, Device device) {
  if (array.ndim() > kMaxDims) {
    throw ShapeError("rank " + std::to_string(array.ndim()) +
                     " exceeds kMaxDims=" + std::to_string(kMaxDims));
  }
  const DType own = dtype_of(array.dtype());
  Extents extents;
  for (std::size_t axis = 0; axis < array.ndim(); ++axis) {
    extents.push_back(static_cast<std::int64_t>(array.shape(axis)));
  }
  const std::size_t element = size_of(own);
  Tensor result;
  bool dense = true;
  std::int64_t expected = 1;
  for (std::size_t axis = array.ndim(); axis-- > 0;) {
    dense = dense && (array.shape(axis) == 1 || array.stride(axis) == expected);
    expected *= static_cast<std::int64_t>(array.shape(axis));
  }
  const nb::gil_scoped_release release;
  if (dense) {
    const auto* data = static_cast<const std::byte*>(array.data());
    result = Tensor::from_host({data, array.size() * element}, extents, own, device);
  } else {
    result = Tensor::from_host(dense_bytes(array, element), extents, own, device);
  }
  return dtype ? to(result, *dtype) : result;
}

// --- to lists

nb::object element_object(const std::byte* at, DType dtype) {
  const auto load = [&](auto value) {
    std::memcpy(&value, at, sizeof(value));
    return value;
  };
  switch (dtype) {
    case DType::kBool:
      return nb::bool_(load(std::uint8_t{}) != 0);
    case DType::kU8:
      return nb::int_(load(std::uint8_t{}));
    case DType::kI32:
      return nb::int_(load(std::int32_t{}));
    case DType::kI64:
      return nb::int_(load(std::int64_t{}));
    case DType::kF16:
      return nb::float_(f16_to_f32(load(std::uint16_t{})));
    case DType::kBF16:
      return nb::float_(bf16_to_f32(load(std::uint16_t{})));
    case DType::kF32:
      return nb::float_(load(float{}));
    case DType::kF64:
      return nb::float_(load(double{}));
  }
  throw InternalError("unknown dtype");
}

nb::object nested_list(const std::byte*& at, std::span<const std::int64_t> extents, DType dtype) {
  if (extents.empty()) {
    nb::object number = element_object(at, dtype);
    at += size_of(dtype);
    return number;
  }
  nb::list items;
  for (std::int64_t i = 0; i < extents[0]; ++i)
    items.append(nested_list(at, extents.subspan(1), dtype));
  return items;
}

nb::object to_list(const Tensor& t) {
  // Another thread may give the tensor a value of another dtype meanwhile.
  const Tensor now = t.pinned();
  std::vector<std::byte> bytes;
  {
    const nb::gil_scoped_release release;
    bytes = now.to_host();
  }
  const std::byte* at = bytes.data();
  return nested_list(at, now.extents(), now.dtype());
}

// --- nested sequences

struct Nested {
  Extents extents;
  std::vector<double> numbers;
  std::vector<std::int64_t> integers;
  DType kind = DType::kBool;

  DType dtype() const { return numbers.empty() ? kDefaultFloat : kind; }
};

[[noreturn]] void throw_ragged(std::size_t depth) {
  throw ShapeError("[tensor] nested sequences differ in length at depth " + std::to_string(depth));
}

void collect(nb::handle given, std::size_t depth, Nested& nested) {
  // A tensor among numbers counts as its values.
  nb::object data = nb::borrow(given);
  if (nb::isinstance<Tensor>(given)) data = to_list(nb::cast<const Tensor&>(given));
  if (nb::isinstance<nb::sequence>(data) && !nb::isinstance<nb::str>(data)) {
    // Before going deeper: a list may contain itself.
    if (depth == kMaxDims) {
      throw ShapeError("rank " + std::to_string(depth + 1) +
                       " exceeds kMaxDims=" + std::to_string(kMaxDims));
    }
    const auto length = static_cast<std::int64_t>(nb::len(data));
    if (depth == nested.extents.size()) {
      if (!nested.numbers.empty()) throw_ragged(depth);
      nested.extents.push_back(length);
    } else if (nested.extents[depth] != length) {
      throw_ragged(depth);
    }
    for (const nb::handle item : data) collect(item, depth + 1, nested);
    return;
  }
  if (depth != nested.extents.size()) throw_ragged(depth);
  if (PyBool_Check(data.ptr())) {
    nested.integers.push_back(data.ptr() == Py_True ? 1 : 0);
  } else if (PyIndex_Check(data.ptr()) != 0) {
    nested.kind = std::max(nested.kind, kDefaultInteger);
    nested.integers.push_back(integer_from("tensor", data));
    const bool fits = nested.integers.back() == static_cast<std::int32_t>(nested.integers.back());
    if (!fits) nested.kind = std::max(nested.kind, DType::kI64);
  } else if (PyFloat_Check(data.ptr()) || nb::hasattr(data, "__float__")) {
    nested.kind = kDefaultFloat;
    nested.integers.push_back(0);
    nested.numbers.push_back(nb::cast<double>(nb::float_(data)));
    return;
  } else {
    throw DTypeError("[tensor] takes numbers, not " + nb::cast<std::string>(nb::repr(data)));
  }
  nested.numbers.push_back(static_cast<double>(nested.integers.back()));
}

Tensor from_nested(nb::handle data, std::optional<DType> dtype, Device device) {
  Nested nested;
  collect(data, 0, nested);
  const DType kind = dtype.value_or(nested.dtype());
  // Integers travel as i64 and floats as f64, so that nothing is lost before the conversion.
  if (!is_floating(nested.kind)) {
    for (const std::int64_t integer : nested.integers) check_fits("tensor", integer, kind);
    const nb::gil_scoped_release release;
    const Tensor wide = Tensor::from_host(std::as_bytes(std::span(nested.integers)), nested.extents,
                                          DType::kI64, kCpu);
    return to(to(wide, kind).realize(), device);
  }
  const nb::gil_scoped_release release;
  const Tensor wide = Tensor::from_host(std::as_bytes(std::span(nested.numbers)), nested.extents,
                                        DType::kF64, kCpu);
  return to(to(wide, kind).realize(), device);
}

// --- to Python, by memory

/// Shares the tensor's memory where the host can see it; a copy elsewhere. Read-only: the graph
/// takes values to be immutable.
nb::object to_numpy(const Tensor& t) {
  Tensor::Memory memory;
  {
    const nb::gil_scoped_release release;
    const Tensor here = t.device().kind == DeviceKind::kCpu ? t : to(t.detach(), kCpu);
    memory = here.memory(/*is_exported=*/true);
    memory.storage->wait();
  }
  if (memory.dtype == DType::kBF16) {
    throw DTypeError("[numpy] NumPy has no bfloat16. Use t.to(vkml.float32).numpy()");
  }
  const Shape& shape = memory.shape;
  std::array<std::size_t, kMaxDims> extents{};
  std::array<std::int64_t, kMaxDims> strides{};
  for (int axis = 0; axis < shape.rank(); ++axis) {
    extents[static_cast<std::size_t>(axis)] = static_cast<std::size_t>(shape[axis]);
    strides[static_cast<std::size_t>(axis)] =
        shape.stride(axis) / static_cast<std::int64_t>(size_of(memory.dtype));
  }
  auto* owner = new StoragePtr(memory.storage);
  const nb::capsule capsule(owner, [](void* p) noexcept { delete static_cast<StoragePtr*>(p); });
  const auto* data = static_cast<const std::byte*>(memory.storage->host()) + memory.offset;
  return nb::cast(
      nb::ndarray<nb::numpy, nb::ro>(data, static_cast<std::size_t>(shape.rank()), extents.data(),
                                     capsule, strides.data(), dlpack_of(memory.dtype)),
      nb::rv_policy::reference);
}

/// NumPy's protocol: NumPy 2 takes what copy=True returns for memory of its own.
nb::object to_array(const Tensor& t, nb::handle dtype, std::optional<bool> copy) {
  const nb::object array = to_numpy(t.detach());
  const bool converts = !dtype.is_none() && !array.attr("dtype").equal(
                                                nb::module_::import_("numpy").attr("dtype")(dtype));
  const bool is_copy = converts || t.device().kind != DeviceKind::kCpu;
  if (copy && !*copy && is_copy) {
    throw ArgumentError("[__array__] copy=False, but an array of another dtype, or of a value on " +
                        to_string(t.device()) + ", is a copy. Pass copy=None");
  }
  if (converts) return array.attr("astype")(dtype);
  return copy.value_or(false) ? array.attr("copy")() : array;
}

}  // namespace

Tensor tensor_from(nb::handle data, std::optional<DType> dtype, Device device) {
  if (nb::isinstance<Tensor>(data)) {
    const Tensor source = nb::cast<Tensor>(data).detach();
    const Tensor typed = dtype ? to(source, *dtype) : source;
    return to_copy(to(typed, device));
  }
  const bool plain = PyFloat_Check(data.ptr()) || PyLong_Check(data.ptr()) ||
                     PyList_Check(data.ptr()) || PyTuple_Check(data.ptr());
  if (!plain) {
    Array array;
    if (nb::try_cast(data, array)) return from_array(array, dtype, device);
    if (nb::hasattr(data, "__array__")) {
      // NumPy scalars and other array-likes: NumPy is imported only by somebody who has them.
      const nb::object converted = nb::module_::import_("numpy").attr("asarray")(data);
      if (nb::try_cast(converted, array)) return from_array(array, dtype, device);
    }
  }
  return from_nested(data, dtype, device);
}

void bind_interop(nb::module_& m, nb::class_<Tensor>& tensor) {
  tensor.def(
      "numpy", &to_numpy,
      "A NumPy array of the value: a read-only view of the memory on the CPU, a copy elsewhere.");
  tensor.def(
      "__array__", &to_array, nb::arg("dtype") = nb::none(), nb::arg("copy") = nb::none(),
      "NumPy's conversion: a read-only view of the memory on the CPU, a copy elsewhere, for "
      "another dtype, and with copy=True. Raises ArgumentError, a ValueError, where copy=False "
      "cannot be kept.");
  tensor.def("tolist", &to_list, "The value as nested lists, or a number.");
  tensor.def(
      "to_host",
      [](const Tensor& t) {
        std::vector<std::byte> bytes;
        {
          const nb::gil_scoped_release release;
          bytes = t.to_host();
        }
        return nb::bytes(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      },
      "The elements in row-major order, as bytes.");
  tensor.def(
      "cpu", [](const Tensor& t) { return to(t, kCpu); }, Release(), "This tensor on the CPU.");
  tensor.def(
      "to",
      [](const Tensor& t, nb::handle first, nb::handle second, nb::handle dtype, nb::handle device,
         bool, bool copies) {
        Tensor result = t;
        for (const nb::handle target : {first, second, dtype, device}) {
          // A flag in this place is PyTorch's non_blocking.
          if (target.is_none() || PyBool_Check(target.ptr())) continue;
          const bool is_device = nb::isinstance<Device>(target) || nb::isinstance<nb::str>(target);
          if (is_device) {
            const Device where = device_from(target);
            const nb::gil_scoped_release release;
            result = to(result, where);
          } else if (nb::isinstance<Tensor>(target)) {
            const Tensor& like = nb::cast<const Tensor&>(target);
            const nb::gil_scoped_release release;
            result = to(to(result, like.dtype()), like.device());
          } else {
            result = to(result, dtype_from(target));
          }
        }
        return copies && result.slot() == t.slot() ? to_copy(result) : result;
      },
      nb::arg("first") = nb::none(), nb::arg("second") = nb::none(), nb::arg("dtype") = nb::none(),
      nb::arg("device") = nb::none(), nb::arg("non_blocking") = false, nb::arg("copy") = false,
      "Another dtype, another device, or both; with copy a tensor of its own in any case. Copies "
      "wait for nobody, whatever non_blocking says.");
  tensor.def(
      "to_device",
      [](const Tensor& t, nb::handle device, nb::handle stream) {
        if (!stream.is_none()) {
          throw ArgumentError(
              "[to_device] a device of vkML has one queue, and no stream. Pass None");
        }
        const Device where = device_from(device);
        const nb::gil_scoped_release release;
        return to(t, where);
      },
      nb::arg("device"), nb::kw_only(), nb::arg("stream") = nb::none(),
      "This tensor on another device, under the Array API's name.");
  tensor.def(
      "__array_namespace__",
      [](const Tensor&, nb::handle api_version) {
        const nb::module_ space = nb::module_::import_("vkml.array_api");
        return space.attr("check_version")(api_version);
      },
      nb::kw_only(), nb::arg("api_version") = nb::none(),
      "The module vkml.array_api, whose functions are the Array API's to the letter. Raises "
      "ArgumentError for a version that it does not have.");
  const auto def_cast = [&](const char* name, DType dtype) {
    tensor.def(
        name, [dtype](const Tensor& t) { return to(t, dtype); }, "A cast by name.");
  };
  def_cast("float", DType::kF32);
  def_cast("double", DType::kF64);
  def_cast("half", DType::kF16);
  def_cast("bfloat16", DType::kBF16);
  def_cast("int", DType::kI32);
  def_cast("long", DType::kI64);
  def_cast("bool", DType::kBool);
  m.def(
      "from_numpy", [](nb::handle array) { return tensor_from(array, std::nullopt, kCpu); },
      nb::arg("array"), "A tensor from a NumPy array; copies.");
}

}  // namespace vkml::python
