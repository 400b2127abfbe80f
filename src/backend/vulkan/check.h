// Vulkan result codes as vkML's exceptions.
#pragma once

#include <vulkan/vulkan_core.h>

namespace vkml::vulkan {

/// "VK_ERROR_DEVICE_LOST".
const char* name_of(VkResult result);

/// Throws OutOfMemoryError for exhausted memory, DeviceError for every other error.
void check(VkResult result, const char* call);

}  // namespace vkml::vulkan
