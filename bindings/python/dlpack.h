// The structures of DLPack 1.0 (https://dmlc.github.io/dlpack/latest/c_api.html), whose layout is
// their contract.
#pragma once

#include <cstdint>

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
