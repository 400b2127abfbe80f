// One logical device: its functions, queue and memory types. Everything else of a device holds a
// shared pointer to it, so that it dies after the last storage.
#pragma once

#include <vulkan/vulkan_core.h>

#include <cstdint>
#include <memory>

#include "device_profile.h"
#include "loader.h"
#include "queue.h"
#include "vkml/core/device.h"

namespace vkml::vulkan {

/// What memory is for; each kind is one memory type of the device.
enum class MemoryKind : std::uint8_t {
  kDevice,   // tensors and the arena
  kStaging,  // host memory for transfers; cached, since the host reads it
  kControl,  // status words and scalars: written by the host, read by kernels
};

struct MemoryType {
  std::uint32_t index = 0;
  VkMemoryPropertyFlags flags = 0;
  bool is_mappable() const {
    constexpr VkMemoryPropertyFlags kNeeded =
        VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    return (flags & kNeeded) == kNeeded;
  }
  /// Whether the host reads it at the speed of ordinary memory.
  bool is_cached() const { return (flags & VK_MEMORY_PROPERTY_HOST_CACHED_BIT) != 0; }
};

class DeviceContext {
 public:
  DeviceContext(const InstanceFunctions& instance, const DeviceProfile& profile, vkml::Device name);
  ~DeviceContext();
  DeviceContext(const DeviceContext&) = delete;
  DeviceContext& operator=(const DeviceContext&) = delete;

  const DeviceProfile& profile() const { return profile_; }
  const DeviceFunctions& vk() const { return vk_; }
  VkDevice device() const { return device_; }
  Queue& queue() { return *queue_; }
  vkml::Device name() const { return name_; }

  MemoryType memory_type(MemoryKind kind) const;
  VkBufferUsageFlags buffer_usage() const;

 private:
  void choose_memory_types();

  DeviceProfile profile_;
  vkml::Device name_;
  VkDevice device_ = VK_NULL_HANDLE;
  DeviceFunctions vk_;
  std::unique_ptr<Queue> queue_;
  MemoryType memory_types_[3];
};

}  // namespace vkml::vulkan
