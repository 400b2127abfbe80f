// The seam between who needs memory and who owns it: allocate, identify, report a device.
#pragma once

#include <cstddef>
#include <string_view>

#include "vkml/core/storage.h"

namespace vkml {

class Allocator {
 public:
  virtual ~Allocator() = default;
  /// A block of at least `bytes` bytes (0 is allowed), aligned to 64 bytes, contents undefined.
  /// Throws OutOfMemoryError.
  virtual StoragePtr allocate(std::size_t bytes) = 0;
  /// "cpu", "vulkan device", "vulkan staging".
  virtual std::string_view name() const = 0;
  virtual Device device() const = 0;
};

}  // namespace vkml
