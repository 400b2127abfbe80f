#include "device_context.h"

#include <fmt/format.h>

#include <initializer_list>

#include "check.h"
#include "process_state.h"
#include "vk_struct.h"
#include "vkml/core/error.h"

namespace vkml::vulkan {

namespace {

constexpr VkMemoryPropertyFlags kLocal = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
constexpr VkMemoryPropertyFlags kVisible =
    VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
constexpr VkMemoryPropertyFlags kCached = VK_MEMORY_PROPERTY_HOST_CACHED_BIT;

/// The first memory type with all of the first wish that can be fulfilled. `min_heap` passes over
/// small heaps, such as the 256 MiB window that some systems have on a card's memory.
MemoryType choose(const VkPhysicalDeviceMemoryProperties& memory, std::uint32_t allowed,
                  std::initializer_list<VkMemoryPropertyFlags> wishes, std::uint64_t min_heap = 0) {
  for (const VkMemoryPropertyFlags wish : wishes) {
    for (std::uint32_t i = 0; i < memory.memoryTypeCount; ++i) {
      const VkMemoryType& type = memory.memoryTypes[i];
      if ((allowed & (1u << i)) == 0 || (type.propertyFlags & wish) != wish) continue;
      constexpr VkMemoryPropertyFlags kSpecial =
          VK_MEMORY_PROPERTY_PROTECTED_BIT | VK_MEMORY_PROPERTY_LAZILY_ALLOCATED_BIT |
          VK_MEMORY_PROPERTY_DEVICE_COHERENT_BIT_AMD | VK_MEMORY_PROPERTY_DEVICE_UNCACHED_BIT_AMD;
      if ((type.propertyFlags & kSpecial) != 0) continue;
      if (memory.memoryHeaps[type.heapIndex].size < min_heap) continue;
      return {i, type.propertyFlags};
    }
  }
  throw DeviceError("[vulkan] the driver offers no memory type for storage buffers");
}

}  // namespace

DeviceContext::DeviceContext(const InstanceFunctions& instance, const DeviceProfile& profile,
                             vkml::Device name)
    : profile_(profile), name_(name) {
  FeatureChain features;
  profile_.link_enabled_features(features);
  const float priority = 1.0F;
  auto queue = vk_struct<VkDeviceQueueCreateInfo>(VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO);
  queue.queueFamilyIndex = profile_.queue_family;
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  auto info = vk_struct<VkDeviceCreateInfo>(VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO);
  info.pNext = &features.core;
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue;
  info.enabledExtensionCount = static_cast<std::uint32_t>(profile_.extensions.size());
  info.ppEnabledExtensionNames = profile_.extensions.data();
  const VkResult result = instance.CreateDevice(profile_.handle, &info, nullptr, &device_);
  if (result != VK_SUCCESS) {
    throw DeviceError(fmt::format("[vulkan] {} ({}) could not be opened: {}. Use vkml.cpu",
                                  to_string(name_), profile_.name, name_of(result)));
  }
  vk_ = load_device_functions(instance, device_);
  queue_ = std::make_unique<Queue>(vk_, device_, profile_.queue_family, profile_.is_software());
  choose_memory_types();
}

DeviceContext::~DeviceContext() {
  if (!vulkan_is_usable()) {
    // A forked child must not touch the parent's objects, and at exit drivers clean up themselves.
    static_cast<void>(queue_.release());
    return;
  }
  queue_->drain(10);
  queue_.reset();
  vk_.DestroyDevice(device_, nullptr);
}

MemoryType DeviceContext::memory_type(MemoryKind kind) const {
  return memory_types_[static_cast<int>(kind)];
}

VkBufferUsageFlags DeviceContext::buffer_usage() const {
  VkBufferUsageFlags usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                             VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  if (profile_.has_addresses) usage |= VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT;
  return usage;
}

void DeviceContext::choose_memory_types() {
  // Which types a buffer may live in depends on its usage alone, so one probe serves for all.
  auto info = vk_struct<VkBufferCreateInfo>(VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO);
  info.size = 65536;
  info.usage = buffer_usage();
  VkBuffer probe = VK_NULL_HANDLE;
  check(vk_.CreateBuffer(device_, &info, nullptr, &probe), "vkCreateBuffer");
  VkMemoryRequirements requirements;
  vk_.GetBufferMemoryRequirements(device_, probe, &requirements);
  vk_.DestroyBuffer(device_, probe, nullptr);

  const auto& memory = profile_.memory;
  const std::uint32_t allowed = requirements.memoryTypeBits;
  const std::uint64_t largest = profile_.device_memory_bytes();
  memory_types_[static_cast<int>(MemoryKind::kDevice)] =
      choose(memory, allowed, {kLocal | kVisible | kCached, kLocal | kVisible, kLocal, 0}, largest);
  memory_types_[static_cast<int>(MemoryKind::kStaging)] =
      choose(memory, allowed, {kVisible | kCached, kVisible});
  memory_types_[static_cast<int>(MemoryKind::kControl)] =
      choose(memory, allowed, {kLocal | kVisible, kVisible});
}

}  // namespace vkml::vulkan
