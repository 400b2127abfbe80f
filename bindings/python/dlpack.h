// The structures of DLPack 1.0 (https://dmlc.github.io/dlpack/latest/c_api.html), whose layout is
// their contract.
#pragma once

#include <fmt/format.h>

#include <cstdint>

#include "vkml/core/dtype.h"
#include "vkml/core/error.h"

namespace vkml::python::dlpack {

enum DeviceType : std::int32_t { kCpuDevice = 1, kVulkanDevice = 7 };

struct DeviceId {
  std::int32_t type;
  std::int32_t index;
};

struct ElementType {
  std::uint8_t code;
  std::uint8_t bits;
  std::uint16_t lanes;
};

/// vkML's dtypes as DLPack (and nanobind's arrays) describe elements.
struct TypeRow {
  DType dtype;
  std::uint8_t code, bits;
};
inline constexpr TypeRow kTypes[] = {
    {DType::kBool, 6, 8}, {DType::kU8, 1, 8},    {DType::kI32, 0, 32}, {DType::kI64, 0, 64},
    {DType::kF16, 2, 16}, {DType::kBF16, 4, 16}, {DType::kF32, 2, 32}, {DType::kF64, 2, 64}};

inline ElementType type_of(DType dtype) {
  for (const TypeRow& row : kTypes) {
    if (row.dtype == dtype) return {row.code, row.bits, 1};
  }
  throw InternalError("unknown dtype");
}

/// Throws DTypeError naming the operator.
inline DType dtype_of(const char* op, const ElementType& type) {
  for (const TypeRow& row : kTypes) {
    if (row.code == type.code && row.bits == type.bits && type.lanes == 1) return row.dtype;
  }
  throw DTypeError(
      fmt::format("[{}] elements of type code {} with {} bits and {} lanes have no vkML "
                  "dtype. Convert the array first: a.astype(\"float32\")",
                  op, type.code, type.bits, type.lanes));
}

struct Array {
  void* data;
  DeviceId device;
  std::int32_t rank;
  ElementType type;
  std::int64_t* extents;
  std::int64_t* strides;  // in elements; null: dense, row-major
  std::uint64_t byte_offset;
};

/// The protocol before 1.0: nothing says that the array is read-only.
struct Managed {
  Array array;
  void* context;
  void (*deleter)(Managed*);
};

inline constexpr std::uint32_t kMajorVersion = 1;
inline constexpr std::uint64_t kReadOnly = 1;
inline constexpr std::uint64_t kIsCopy = 2;

struct ManagedVersioned {
  std::uint32_t major, minor;
  void* context;
  void (*deleter)(ManagedVersioned*);
  std::uint64_t flags;
  Array array;
};

}  // namespace vkml::python::dlpack
