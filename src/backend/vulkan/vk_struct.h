// Vulkan's extensible structures, zeroed but for their type.
#pragma once

#include <vulkan/vulkan_core.h>

namespace vkml::vulkan {

template <typename Struct>
constexpr Struct vk_struct(VkStructureType type) {
  Struct made{};
  made.sType = type;
  return made;
}

}  // namespace vkml::vulkan
