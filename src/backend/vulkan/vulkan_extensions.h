// Extensions newer than the oldest Vulkan headers that vkML builds with, declared by hand, under
// names of their own: newer headers declare them too. Values and layouts are the registry's.
#pragma once

#include <vulkan/vulkan_core.h>

#include <cstdint>

namespace vkml::vulkan {

// VK_KHR_cooperative_matrix
inline constexpr const char* kCooperativeMatrixExtension = "VK_KHR_cooperative_matrix";
inline constexpr auto kCooperativeMatrixFeaturesType = static_cast<VkStructureType>(1000506000);
inline constexpr auto kCooperativeMatrixPropertiesType = static_cast<VkStructureType>(1000506001);

struct CooperativeMatrixFeatures {
  VkStructureType sType = kCooperativeMatrixFeaturesType;
  void* pNext = nullptr;
  VkBool32 cooperativeMatrix = VK_FALSE;
  VkBool32 cooperativeMatrixRobustBufferAccess = VK_FALSE;
};

inline constexpr std::uint32_t kComponentFloat16 = 0;
inline constexpr std::uint32_t kComponentFloat32 = 1;
inline constexpr std::uint32_t kComponentBFloat16 = 1000141000;
inline constexpr std::uint32_t kScopeSubgroup = 3;

struct CooperativeMatrixProperties {
  VkStructureType sType = kCooperativeMatrixPropertiesType;
  void* pNext = nullptr;
  std::uint32_t MSize = 0, NSize = 0, KSize = 0;
  std::uint32_t AType = 0, BType = 0, CType = 0, ResultType = 0;
  VkBool32 saturatingAccumulation = VK_FALSE;
  std::uint32_t scope = 0;
};

using GetCooperativeMatrixProperties = VkResult(VKAPI_PTR*)(
    VkPhysicalDevice device, std::uint32_t* count, CooperativeMatrixProperties* properties);

// VK_NV_cooperative_matrix2
inline constexpr const char* kCooperativeMatrix2Extension = "VK_NV_cooperative_matrix2";
inline constexpr auto kCooperativeMatrix2FeaturesType = static_cast<VkStructureType>(1000593000);

struct CooperativeMatrix2Features {
  VkStructureType sType = kCooperativeMatrix2FeaturesType;
  void* pNext = nullptr;
  VkBool32 cooperativeMatrixWorkgroupScope = VK_FALSE;
  VkBool32 cooperativeMatrixFlexibleDimensions = VK_FALSE;
  VkBool32 cooperativeMatrixReductions = VK_FALSE;
  VkBool32 cooperativeMatrixConversions = VK_FALSE;
  VkBool32 cooperativeMatrixPerElementOperations = VK_FALSE;
  VkBool32 cooperativeMatrixTensorAddressing = VK_FALSE;
  VkBool32 cooperativeMatrixBlockLoads = VK_FALSE;
};

// VK_KHR_shader_bfloat16
inline constexpr const char* kBFloat16Extension = "VK_KHR_shader_bfloat16";
inline constexpr auto kBFloat16FeaturesType = static_cast<VkStructureType>(1000141000);

struct BFloat16Features {
  VkStructureType sType = kBFloat16FeaturesType;
  void* pNext = nullptr;
  VkBool32 shaderBFloat16Type = VK_FALSE;
  VkBool32 shaderBFloat16DotProduct = VK_FALSE;
  VkBool32 shaderBFloat16CooperativeMatrix = VK_FALSE;
};

}  // namespace vkml::vulkan
