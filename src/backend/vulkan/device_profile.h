// What a physical device is and can do, read once: limits, features, memory types, and from them
// the traits that code generation works with.
#pragma once

#include <vulkan/vulkan_core.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "dispatch_list.h"
#include "loader.h"
#include "vk_struct.h"
#include "vulkan_extensions.h"

namespace vkml::vulkan {

/// Feature structures, chained. The same chain asks a device what it offers and, cut down to what
/// is wanted, tells device creation what to enable.
struct FeatureChain {
  VkPhysicalDeviceFeatures2 core =
      vk_struct<VkPhysicalDeviceFeatures2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2);
  VkPhysicalDeviceTimelineSemaphoreFeatures timeline =
      vk_struct<VkPhysicalDeviceTimelineSemaphoreFeatures>(
          VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES);
  VkPhysicalDevice16BitStorageFeatures storage16 = vk_struct<VkPhysicalDevice16BitStorageFeatures>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES);
  VkPhysicalDevice8BitStorageFeatures storage8 = vk_struct<VkPhysicalDevice8BitStorageFeatures>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_8BIT_STORAGE_FEATURES);
  VkPhysicalDeviceShaderFloat16Int8Features small_types =
      vk_struct<VkPhysicalDeviceShaderFloat16Int8Features>(
          VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES);
  VkPhysicalDeviceBufferDeviceAddressFeatures addresses =
      vk_struct<VkPhysicalDeviceBufferDeviceAddressFeatures>(
          VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_BUFFER_DEVICE_ADDRESS_FEATURES);
  VkPhysicalDeviceVulkanMemoryModelFeatures memory_model =
      vk_struct<VkPhysicalDeviceVulkanMemoryModelFeatures>(
          VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_MEMORY_MODEL_FEATURES);
  CooperativeMatrixFeatures matrices;
  CooperativeMatrix2Features matrices2;
  BFloat16Features bfloat16;
};

struct DeviceLimits {
  std::uint64_t max_allocation_bytes = 0;        // maxMemoryAllocationSize
  std::uint64_t max_buffer_bytes = 0;            // maxBufferSize
  std::uint64_t max_storage_range = 0;           // maxStorageBufferRange, for descriptors
  std::uint64_t storage_offset_alignment = 256;  // minStorageBufferOffsetAlignment
  std::uint32_t max_push_descriptors = 0;        // 0: the extension is missing
  std::uint32_t max_stage_buffers = 0;           // maxPerStageDescriptorStorageBuffers
};

struct DeviceProfile {
  VkPhysicalDevice handle = VK_NULL_HANDLE;
  VkPhysicalDeviceType type = VK_PHYSICAL_DEVICE_TYPE_OTHER;
  std::uint32_t api_version = 0;  // what both sides speak
  std::string name;
  std::string driver;
  std::uint32_t vendor_id = 0, device_id = 0, driver_version = 0;
  std::array<std::uint8_t, VK_UUID_SIZE> cache_uuid{};
  VkPhysicalDeviceMemoryProperties memory{};
  std::uint32_t queue_family = 0;
  std::uint32_t timestamp_bits = 0;  // that count in the queue's timestamps; 0: it writes none
  double timestamp_period = 1;       // nanoseconds between two
  DeviceTraits traits;
  DeviceLimits limits;
  bool has_addresses = false;
  std::vector<const char*> extensions;  // to enable; string literals
  std::vector<std::string> features;    // for people

  bool is_software() const { return type == VK_PHYSICAL_DEVICE_TYPE_CPU; }
  /// Operands that a kernel has room for beside its scalars, status word and scratch.
  int max_operands() const;
  /// The features to enable, chained for VkDeviceCreateInfo::pNext. Fills `chain` and links it.
  void link_enabled_features(FeatureChain& chain) const;
  /// Bytes of the largest heap on the device.
  std::uint64_t device_memory_bytes() const;
};

/// Reads a device. Returns false with a reason when vkML cannot use it: it needs Vulkan 1.1, a
/// compute queue, timeline semaphores and eight storage buffers for a kernel.
bool read_profile(const InstanceFunctions& vk, VkPhysicalDevice handle,
                  std::uint32_t instance_version, DeviceProfile& profile, std::string& reason);

}  // namespace vkml::vulkan
