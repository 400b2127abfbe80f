// The Vulkan loader, opened at first use, and tables of the functions that vkML calls.
//
// Nothing links to Vulkan: a machine without a loader or driver runs everything but Vulkan.
#pragma once

#include <vulkan/vulkan_core.h>

#include <string>

#include "vulkan_extensions.h"

namespace vkml::vulkan {

#define VKML_VULKAN_GLOBAL_FUNCTIONS(X)   \
  X(CreateInstance)                       \
  X(EnumerateInstanceExtensionProperties) \
  X(EnumerateInstanceLayerProperties)     \
  X(EnumerateInstanceVersion)

#define VKML_VULKAN_INSTANCE_FUNCTIONS(X) \
  X(CreateDevice)                         \
  X(DestroyInstance)                      \
  X(EnumerateDeviceExtensionProperties)   \
  X(EnumeratePhysicalDevices)             \
  X(GetDeviceProcAddr)                    \
  X(GetPhysicalDeviceFeatures2)           \
  X(GetPhysicalDeviceMemoryProperties)    \
  X(GetPhysicalDeviceProperties)          \
  X(GetPhysicalDeviceProperties2)         \
  X(GetPhysicalDeviceQueueFamilyProperties)

#define VKML_VULKAN_DEVICE_FUNCTIONS(X) \
  X(AllocateCommandBuffers)             \
  X(AllocateDescriptorSets)             \
  X(AllocateMemory)                     \
  X(BeginCommandBuffer)                 \
  X(BindBufferMemory)                   \
  X(CmdBindDescriptorSets)              \
  X(CmdBindPipeline)                    \
  X(CmdCopyBuffer)                      \
  X(CmdDispatch)                        \
  X(CmdPipelineBarrier)                 \
  X(CmdPushConstants)                   \
  X(CmdResetQueryPool)                  \
  X(CmdWriteTimestamp)                  \
  X(CreateBuffer)                       \
  X(CreateCommandPool)                  \
  X(CreateComputePipelines)             \
  X(CreateDescriptorPool)               \
  X(CreateDescriptorSetLayout)          \
  X(CreatePipelineCache)                \
  X(CreatePipelineLayout)               \
  X(CreateQueryPool)                    \
  X(CreateSemaphore)                    \
  X(CreateShaderModule)                 \
  X(DestroyBuffer)                      \
  X(DestroyCommandPool)                 \
  X(DestroyDescriptorPool)              \
  X(DestroyDescriptorSetLayout)         \
  X(DestroyDevice)                      \
  X(DestroyPipeline)                    \
  X(DestroyPipelineCache)               \
  X(DestroyPipelineLayout)              \
  X(DestroyQueryPool)                   \
  X(DestroySemaphore)                   \
  X(DestroyShaderModule)                \
  X(EndCommandBuffer)                   \
  X(FreeMemory)                         \
  X(GetBufferMemoryRequirements)        \
  X(GetDeviceQueue)                     \
  X(GetPipelineCacheData)               \
  X(GetQueryPoolResults)                \
  X(MapMemory)                          \
  X(MergePipelineCaches)                \
  X(QueueSubmit)                        \
  X(ResetCommandPool)                   \
  X(ResetDescriptorPool)                \
  X(UpdateDescriptorSets)

// Core in Vulkan 1.2, extensions before it: looked up by both names.
#define VKML_VULKAN_PROMOTED_DEVICE_FUNCTIONS(X) \
  X(GetBufferDeviceAddress)                      \
  X(GetSemaphoreCounterValue)                    \
  X(WaitSemaphores)

struct GlobalFunctions {
  PFN_vkGetInstanceProcAddr GetInstanceProcAddr = nullptr;
#define VKML_MEMBER(name) PFN_vk##name name = nullptr;
  VKML_VULKAN_GLOBAL_FUNCTIONS(VKML_MEMBER)
};

struct InstanceFunctions {
  VKML_VULKAN_INSTANCE_FUNCTIONS(VKML_MEMBER)
  // Present with VK_EXT_debug_utils alone.
  PFN_vkCreateDebugUtilsMessengerEXT CreateDebugUtilsMessengerEXT = nullptr;
  PFN_vkDestroyDebugUtilsMessengerEXT DestroyDebugUtilsMessengerEXT = nullptr;
  // Present with VK_KHR_cooperative_matrix alone.
  GetCooperativeMatrixProperties GetPhysicalDeviceCooperativeMatrixPropertiesKHR = nullptr;
};

struct DeviceFunctions {
  VKML_VULKAN_DEVICE_FUNCTIONS(VKML_MEMBER)
  VKML_VULKAN_PROMOTED_DEVICE_FUNCTIONS(VKML_MEMBER)
  // Present with VK_KHR_push_descriptor alone.
  PFN_vkCmdPushDescriptorSetKHR CmdPushDescriptorSetKHR = nullptr;
#undef VKML_MEMBER
};

/// The loader's entry points, or null where there is none; then `reason` says why.
const GlobalFunctions* load_vulkan(std::string& reason);

InstanceFunctions load_instance_functions(const GlobalFunctions& global, VkInstance instance);
DeviceFunctions load_device_functions(const InstanceFunctions& functions, VkDevice device);

}  // namespace vkml::vulkan
