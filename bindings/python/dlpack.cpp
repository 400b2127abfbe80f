// DLPack both ways: memory of the CPU shared with other libraries, without a copy where both sides
// can keep their promises. vkML takes values to be immutable, so that what it hands out is
// read-only (or a copy), and what it is handed is never written to.

#include "dlpack.h"

#include <array>
#include <memory>
#include <utility>

#include "common.h"
#include "python_reference.h"

namespace vkml::python {
namespace {

using dlpack::Managed;
using dlpack::ManagedVersioned;

constexpr const char* kName = "dltensor";
constexpr const char* kUsedName = "used_dltensor";
constexpr const char* kVersionedName = "dltensor_versioned";
constexpr const char* kUsedVersionedName = "used_dltensor_versioned";

// To others.

/// What an exported array keeps alive, with its own description.
template <typename Exported>
struct Export {
  Exported exported{};
  StoragePtr storage;
  std::array<std::int64_t, kMaxDims> extents{};
  std::array<std::int64_t, kMaxDims> strides{};
};

template <typename Exported>
Export<Exported>* export_memory(const Tensor& tensor) {
  const Tensor::Memory memory = tensor.memory(/*is_exported=*/true);
  memory.storage->wait();
  const Shape& shape = memory.shape;
  auto owned = std::make_unique<Export<Exported>>();
  owned->storage = memory.storage;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const auto i = static_cast<std::size_t>(axis);
    owned->extents[i] = shape[axis];
    owned->strides[i] = shape.stride(axis) / static_cast<std::int64_t>(size_of(memory.dtype));
  }
  dlpack::Array& array = owned->exported.array;
  array.data = static_cast<std::byte*>(memory.storage->host()) + memory.offset;
  array.device = {dlpack::kCpuDevice, 0};
  array.rank = shape.rank();
  array.type = dlpack::type_of(memory.dtype);
  array.extents = owned->extents.data();
  array.strides = owned->strides.data();
  owned->exported.context = owned.get();
  owned->exported.deleter = [](Exported* self) {
    delete static_cast<Export<Exported>*>(self->context);
  };
  return owned.release();
}

/// A capsule that nobody has taken the array from still owns it.
template <typename Exported>
nb::object capsule_of(Exported* exported, const char* name) {
  PyObject* capsule = PyCapsule_New(exported, name, [](PyObject* self) {
    constexpr bool kVersioned = std::is_same_v<Exported, ManagedVersioned>;
    const char* unused = kVersioned ? kVersionedName : kName;
    if (PyCapsule_IsValid(self, unused) == 0) return;
    auto* held = static_cast<Exported*>(PyCapsule_GetPointer(self, unused));
    held->deleter(held);
  });
  if (capsule == nullptr) {
    exported->deleter(exported);
    throw nb::python_error();
  }
  return nb::steal(capsule);
}

bool is_versioned(nb::handle max_version) {
  return !max_version.is_none() && nb::cast<int>(max_version[0]) >= 1;
}

nb::object to_dlpack(const Tensor& tensor, nb::handle max_version, nb::handle dl_device,
                     std::optional<bool> copy) {
  const bool to_cpu = !dl_device.is_none() && nb::cast<int>(dl_device[0]) == dlpack::kCpuDevice;
  if (tensor.requires_grad()) {
    throw AutogradError(
        "[__dlpack__] other libraries do not record on this tensor's graph. Use detach()");
  }
  if (tensor.device().kind != DeviceKind::kCpu && !to_cpu) {
    throw UnsupportedError("[__dlpack__] memory of " + to_string(tensor.device()) +
                           " has no address that others can use. Use x.cpu()");
  }
  if (!dl_device.is_none() && !to_cpu) {
    throw UnsupportedError("[__dlpack__] exports to the CPU alone, DLPack's device (1, 0)");
  }
  const bool versioned = is_versioned(max_version);
  const bool leaves_device = tensor.device().kind != DeviceKind::kCpu;
  // Before 1.0 nothing can say that the memory is read-only: the other side gets memory of its own.
  const bool copies = copy.value_or(!versioned) || leaves_device;
  if (copy && !*copy && (leaves_device || !versioned)) {
    PyErr_SetString(PyExc_BufferError,
                    "[__dlpack__] needs a copy here: the memory is another device's, or the other "
                    "side does not know read-only arrays (max_version before 1.0)");
    throw nb::python_error();
  }
  Managed* plain = nullptr;
  ManagedVersioned* with_version = nullptr;
  {
    const nb::gil_scoped_release release;
    Tensor source = to(tensor, kCpu);
    if (copies && !leaves_device) source = to_copy(source);
    if (versioned) {
      with_version = &export_memory<ManagedVersioned>(source)->exported;
      with_version->major = dlpack::kMajorVersion;
      with_version->flags = copies ? dlpack::kIsCopy : dlpack::kReadOnly;
    } else {
      plain = &export_memory<Managed>(source)->exported;
    }
  }
  return versioned ? capsule_of(with_version, kVersionedName) : capsule_of(plain, kName);
}

// From others.

/// Shares the array, whose owner is told when its last user here is gone. Owners take the
/// interpreter's lock for that, and the last user may be a thread that holds a device.
template <typename Exported>
Tensor share(Exported* exported) {
  const std::shared_ptr<Exported> owner(exported, [](Exported* held) {
    if (held->deleter == nullptr) return;
    const auto tell = [](void* p) {
      auto* const unused = static_cast<Exported*>(p);
      unused->deleter(unused);
    };
    drop_with_interpreter(tell, held);
  });
  const dlpack::Array& array = exported->array;
  if (array.device.type != dlpack::kCpuDevice) {
    throw DeviceError("[from_dlpack] the array is on DLPack's device " +
                      std::to_string(array.device.type) + ". Move it to the CPU first");
  }
  if (array.rank > kMaxDims) {
    throw ShapeError("rank " + std::to_string(array.rank) +
                     " exceeds kMaxDims=" + std::to_string(kMaxDims));
  }
  const DType dtype = dlpack::dtype_of("from_dlpack", array.type);
  const auto element = static_cast<std::int64_t>(size_of(dtype));
  const auto rank = static_cast<std::size_t>(array.rank);
  const std::span<const std::int64_t> extents(array.extents, rank);
  const Shape dense(extents, dtype);
  std::array<std::int64_t, kMaxDims> strides{};
  // The elements lie from `first` to `last`, in bytes from the array's own first one.
  std::int64_t first = 0;
  std::int64_t last = 0;
  for (std::size_t axis = 0; axis < rank; ++axis) {
    const std::int64_t own = dense.stride(static_cast<int>(axis));
    strides[axis] = array.strides == nullptr ? own : array.strides[axis] * element;
    const std::int64_t reach = strides[axis] * std::max<std::int64_t>(extents[axis] - 1, 0);
    (reach < 0 ? first : last) += reach;
  }
  const Shape shape(extents, std::span<const std::int64_t>(strides.data(), rank));
  auto* start = static_cast<std::byte*>(array.data) + array.byte_offset + first;
  const bool is_empty = dense.numel() == 0;
  if (!is_empty && reinterpret_cast<std::uintptr_t>(start) % size_of(dtype) != 0) {
    throw ArgumentError("[from_dlpack] the array is not aligned to its elements. Copy it first");
  }
  const auto bytes = is_empty ? 0 : static_cast<std::size_t>(last - first + element);
  auto storage = std::make_shared<Storage>(
      kCpu, bytes, start, reinterpret_cast<std::uintptr_t>(start), [owner](Storage&) {});
  storage->mark_exported();
  return Tensor::from_shared(std::move(storage), -first, shape, dtype);
}

nb::object capsule_from(nb::handle array) {
  if (PyCapsule_CheckExact(array.ptr())) return nb::borrow(array);
  if (!nb::hasattr(array, "__dlpack__") || !nb::hasattr(array, "__dlpack_device__")) {
    throw DTypeError("[from_dlpack] " + nb::cast<std::string>(nb::repr(array.type())) +
                     " has no __dlpack__ and __dlpack_device__");
  }
  const nb::object device = array.attr("__dlpack_device__")();
  if (nb::cast<int>(device[0]) != dlpack::kCpuDevice) {
    throw DeviceError("[from_dlpack] the array is on DLPack's device " +
                      nb::cast<std::string>(nb::str(device)) + ". Move it to the CPU first");
  }
  try {
    return array.attr("__dlpack__")(nb::arg("max_version") =
                                        nb::make_tuple(dlpack::kMajorVersion, 0));
  } catch (nb::python_error& error) {
    // A library from before DLPack 1.0 does not know the argument.
    if (!error.matches(PyExc_TypeError)) throw;
  }
  return array.attr("__dlpack__")();
}

Tensor from_dlpack(nb::handle array, nb::handle device, std::optional<bool> copy) {
  const Device where = device.is_none() ? kCpu : device_from(device);
  const nb::object capsule = capsule_from(array);
  Tensor shared;
  if (PyCapsule_IsValid(capsule.ptr(), kVersionedName) != 0) {
    auto* held =
        static_cast<ManagedVersioned*>(PyCapsule_GetPointer(capsule.ptr(), kVersionedName));
    if (held->major != dlpack::kMajorVersion) {
      throw UnsupportedError("[from_dlpack] the array speaks DLPack " +
                             std::to_string(held->major) + ", vkML DLPack 1");
    }
    PyCapsule_SetName(capsule.ptr(), kUsedVersionedName);
    shared = share(held);
  } else if (PyCapsule_IsValid(capsule.ptr(), kName) != 0) {
    auto* held = static_cast<Managed*>(PyCapsule_GetPointer(capsule.ptr(), kName));
    PyCapsule_SetName(capsule.ptr(), kUsedName);
    shared = share(held);
  } else {
    throw ArgumentError("[from_dlpack] the capsule is no DLPack array, or was consumed before");
  }
  if (copy && !*copy && where != kCpu)
    throw ArgumentError("[from_dlpack] an array on the CPU reaches " + to_string(where) +
                        " by a copy alone");
  const nb::gil_scoped_release release;
  if (where != kCpu) return to(shared, where);
  return copy.value_or(false) ? to_copy(shared).realize() : shared;
}

}  // namespace

void bind_dlpack(nb::module_& m, nb::class_<Tensor>& tensor) {
  tensor.def(
      "__dlpack__",
      [](const Tensor& t, nb::handle, nb::handle max_version, nb::handle dl_device,
         std::optional<bool> copy) { return to_dlpack(t, max_version, dl_device, copy); },
      nb::kw_only(), nb::arg("stream") = nb::none(), nb::arg("max_version") = nb::none(),
      nb::arg("dl_device") = nb::none(), nb::arg("copy") = nb::none(),
      "A DLPack capsule of the value: read-only and shared where the consumer knows DLPack 1.0 and "
      "the value is on the CPU, else a copy.");
  tensor.def(
      "__dlpack_device__",
      [](const Tensor& t) {
        const bool is_cpu = t.device().kind == DeviceKind::kCpu;
        return nb::make_tuple(static_cast<int>(is_cpu ? dlpack::kCpuDevice : dlpack::kVulkanDevice),
                              static_cast<int>(t.device().index));
      },
      "DLPack's (type, index) of this tensor's device.");
  m.def(
      "from_dlpack", &from_dlpack, nb::arg("array"), nb::kw_only(), nb::arg("device") = nb::none(),
      nb::arg("copy") = nb::none(),
      "A tensor that shares the memory of another library's array on the CPU; a copy with "
      "copy=True, and on other devices. vkML never writes to shared memory; what its owner writes "
      "there while the tensor lives may or may not be seen.");
}

}  // namespace vkml::python
