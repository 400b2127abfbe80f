#include "device_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <thread>

#include "environment.h"
#include "vk_struct.h"
#include "vkml/dispatch/backend.h"

namespace vkml::vulkan {

namespace {

constexpr std::uint32_t kNvidia = 0x10de;  // as PCI numbers vendors

/// What a device advertises: extensions, and those that its version made core.
class Offer {
 public:
  Offer(const InstanceFunctions& vk, VkPhysicalDevice device, std::uint32_t version)
      : version_(version) {
    std::uint32_t count = 0;
    vk.EnumerateDeviceExtensionProperties(device, nullptr, &count, nullptr);
    extensions_.resize(count);
    vk.EnumerateDeviceExtensionProperties(device, nullptr, &count, extensions_.data());
    extensions_.resize(count);
  }

  bool lists(const char* name) const {
    return std::any_of(extensions_.begin(), extensions_.end(), [&](const auto& extension) {
      return std::strcmp(extension.extensionName, name) == 0;
    });
  }

  /// Whether an extension's functionality is there; notes the extension if it must be enabled.
  bool has(const char* name, std::uint32_t core_since, std::vector<const char*>& enable) const {
    if (version_ >= core_since) return true;
    if (!lists(name)) return false;
    enable.push_back(name);
    return true;
  }

 private:
  std::uint32_t version_;
  std::vector<VkExtensionProperties> extensions_;
};

constexpr std::uint32_t kNeverCore = ~0u;

template <typename Struct>
void link(void*& head, Struct& structure) {
  structure.pNext = head;
  head = &structure;
}

std::vector<VkQueueFamilyProperties> queue_families(const InstanceFunctions& vk,
                                                    VkPhysicalDevice device) {
  std::uint32_t count = 0;
  vk.GetPhysicalDeviceQueueFamilyProperties(device, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  vk.GetPhysicalDeviceQueueFamilyProperties(device, &count, families.data());
  families.resize(count);
  return families;
}

std::optional<std::uint32_t> find_compute_family(
    const std::vector<VkQueueFamilyProperties>& families) {
  std::optional<std::uint32_t> found;
  for (std::uint32_t i = 0; i < families.size(); ++i) {
    const VkQueueFlags flags = families[i].queueFlags;
    if (families[i].queueCount == 0 || (flags & VK_QUEUE_COMPUTE_BIT) == 0) continue;
    // A family without graphics has the cheaper barriers.
    if ((flags & VK_QUEUE_GRAPHICS_BIT) == 0) return i;
    if (!found) found = i;
  }
  return found;
}

/// Scalars, status word and scratch.
constexpr std::uint32_t kBuffersBesideOperands = 3;
/// More than the four that Vulkan promises, and fewer than devices have.
constexpr std::uint32_t kLeastStageBuffers = dispatch::kLeastOperands + kBuffersBesideOperands;

/// Vulkan 1.1's required limits and nothing optional but timeline semaphores.
void clamp_to_least(DeviceProfile& profile) {
  DeviceTraits& traits = profile.traits;
  traits = DeviceTraits{};
  traits.is_software = profile.is_software();
  traits.max_workgroup_invocations = 128;
  traits.max_shared_bytes = 16384;
  traits.max_push_bytes = 128;
  traits.max_groups = {65535, 65535, 65535};
  profile.has_addresses = false;
  profile.timestamp_bits = 0;
  DeviceLimits& limits = profile.limits;
  limits.max_storage_range = std::min<std::uint64_t>(limits.max_storage_range, 1u << 27);
  limits.max_allocation_bytes = std::min<std::uint64_t>(limits.max_allocation_bytes, 1u << 30);
  limits.storage_offset_alignment = 256;
  limits.max_push_descriptors = 0;
  limits.max_stage_buffers = kLeastStageBuffers;
}

bool offers(const FeatureChain& chain) {
  return chain.matrices.cooperativeMatrix && chain.memory_model.vulkanMemoryModel;
}

/// Whether subgroups multiply 16 x 16 matrices of such elements with sums in f32.
bool has_matrices(const std::vector<CooperativeMatrixProperties>& shapes, std::uint32_t element) {
  return std::any_of(shapes.begin(), shapes.end(), [&](const CooperativeMatrixProperties& shape) {
    return shape.MSize == 16 && shape.NSize == 16 && shape.KSize == 16 && shape.AType == element &&
           shape.BType == element && shape.CType == kComponentFloat32 &&
           shape.ResultType == kComponentFloat32 && shape.scope == kScopeSubgroup;
  });
}

void read_matrix_units(const InstanceFunctions& vk, const FeatureChain& chain,
                       DeviceProfile& profile) {
  const auto get = vk.GetPhysicalDeviceCooperativeMatrixPropertiesKHR;
  if (!offers(chain) || get == nullptr) return;
  std::uint32_t count = 0;
  get(profile.handle, &count, nullptr);
  std::vector<CooperativeMatrixProperties> shapes(count);
  if (get(profile.handle, &count, shapes.data()) != VK_SUCCESS) return;
  profile.traits.has_matrix_f16 =
      chain.small_types.shaderFloat16 && has_matrices(shapes, kComponentFloat16);
  profile.traits.has_matrix_bf16 = chain.bfloat16.shaderBFloat16Type &&
                                   chain.bfloat16.shaderBFloat16CooperativeMatrix &&
                                   has_matrices(shapes, kComponentBFloat16);
  profile.traits.has_matrix_conversions =
      chain.matrices2.cooperativeMatrixConversions && chain.matrices2.cooperativeMatrixReductions;
}

void list_features(DeviceProfile& profile) {
  const DeviceTraits& traits = profile.traits;
  const auto add = [&](bool present, std::string name) {
    if (present) profile.features.push_back(std::move(name));
  };
  add(true, fmt::format("vulkan {}.{}.{}", VK_API_VERSION_MAJOR(profile.api_version),
                        VK_API_VERSION_MINOR(profile.api_version),
                        VK_API_VERSION_PATCH(profile.api_version)));
  add(traits.use_addresses, "buffers by address");
  add(!traits.use_addresses, "buffers by descriptor");
  add(traits.has_float16, "shaderFloat16");
  add(traits.has_half_conversions, "exact f16 conversions");
  add(traits.has_float64, "shaderFloat64");
  add(traits.has_int8, "shaderInt8");
  add(traits.has_int16, "shaderInt16");
  add(traits.has_int64, "shaderInt64");
  add(traits.has_storage8, "storageBuffer8BitAccess");
  add(traits.has_storage16, "storageBuffer16BitAccess");
  add(traits.has_subgroup_arithmetic, fmt::format("subgroups of {}", traits.subgroup_size));
  add(profile.timestamp_bits > 0, "timestamps");
  add(traits.has_matrix_f16, "matrix units for f16");
  add(traits.has_matrix_bf16, "matrix units for bf16");
  add(traits.has_matrix_conversions, "conversions of matrices");
}

}  // namespace

void DeviceProfile::link_enabled_features(FeatureChain& chain) const {
  chain = FeatureChain{};
  void* head = nullptr;
  chain.core.features.shaderInt64 = traits.has_int64;
  chain.core.features.shaderFloat64 = traits.has_float64;
  chain.core.features.shaderInt16 = traits.has_int16;
  chain.timeline.timelineSemaphore = VK_TRUE;
  link(head, chain.timeline);
  if (traits.has_storage16) {
    chain.storage16.storageBuffer16BitAccess = VK_TRUE;
    link(head, chain.storage16);
  }
  if (traits.has_storage8) {
    chain.storage8.storageBuffer8BitAccess = VK_TRUE;
    link(head, chain.storage8);
  }
  if (traits.has_float16 || traits.has_int8) {
    chain.small_types.shaderFloat16 = traits.has_float16;
    chain.small_types.shaderInt8 = traits.has_int8;
    link(head, chain.small_types);
  }
  if (has_addresses) {
    chain.addresses.bufferDeviceAddress = VK_TRUE;
    link(head, chain.addresses);
  }
  if (traits.has_matrix_f16 || traits.has_matrix_bf16) {
    chain.memory_model.vulkanMemoryModel = VK_TRUE;
    link(head, chain.memory_model);
    chain.matrices.cooperativeMatrix = VK_TRUE;
    link(head, chain.matrices);
  }
  if (traits.has_matrix_bf16) {
    chain.bfloat16.shaderBFloat16Type = VK_TRUE;
    chain.bfloat16.shaderBFloat16CooperativeMatrix = VK_TRUE;
    link(head, chain.bfloat16);
  }
  if (traits.has_matrix_conversions) {
    chain.matrices2.cooperativeMatrixConversions = VK_TRUE;
    chain.matrices2.cooperativeMatrixReductions = VK_TRUE;
    link(head, chain.matrices2);
  }
  chain.core.pNext = head;
}

int DeviceProfile::max_operands() const {
  const std::uint32_t buffers = traits.use_addresses
                                    ? traits.max_push_bytes / 8
                                    : std::min(limits.max_stage_buffers, traits.max_push_bytes / 4);
  return static_cast<int>(buffers - kBuffersBesideOperands);
}

std::uint64_t DeviceProfile::device_memory_bytes() const {
  std::uint64_t bytes = 0;
  for (std::uint32_t i = 0; i < memory.memoryHeapCount; ++i) {
    if (memory.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) {
      bytes = std::max<std::uint64_t>(bytes, memory.memoryHeaps[i].size);
    }
  }
  return bytes;
}

bool read_profile(const InstanceFunctions& vk, VkPhysicalDevice handle,
                  std::uint32_t instance_version, DeviceProfile& profile, std::string& reason) {
  VkPhysicalDeviceProperties basic;
  vk.GetPhysicalDeviceProperties(handle, &basic);
  profile.handle = handle;
  profile.type = basic.deviceType;
  profile.name = basic.deviceName;
  profile.api_version = std::min(basic.apiVersion, instance_version);
  if (profile.api_version < VK_API_VERSION_1_1) {
    reason =
        fmt::format("{} offers Vulkan {}.{}; vkML needs 1.1", profile.name,
                    VK_API_VERSION_MAJOR(basic.apiVersion), VK_API_VERSION_MINOR(basic.apiVersion));
    return false;
  }
  const std::vector<VkQueueFamilyProperties> families = queue_families(vk, handle);
  const auto family = find_compute_family(families);
  if (!family) {
    reason = fmt::format("{} has no compute queue", profile.name);
    return false;
  }
  profile.queue_family = *family;
  profile.timestamp_bits = families[*family].timestampValidBits;
  profile.timestamp_period = static_cast<double>(basic.limits.timestampPeriod);

  const Offer offer(vk, handle, profile.api_version);
  auto& enable = profile.extensions;
  FeatureChain chain;
  void* head = nullptr;
  if (!offer.has(VK_KHR_TIMELINE_SEMAPHORE_EXTENSION_NAME, VK_API_VERSION_1_2, enable)) {
    reason = fmt::format("{} lacks timeline semaphores (VK_KHR_timeline_semaphore)", profile.name);
    return false;
  }
  const bool least = env_min_spec();
  link(head, chain.timeline);
  link(head, chain.storage16);
  if (!least) {
    if (offer.has(VK_KHR_8BIT_STORAGE_EXTENSION_NAME, VK_API_VERSION_1_2, enable)) {
      link(head, chain.storage8);
    }
    if (offer.has(VK_KHR_SHADER_FLOAT16_INT8_EXTENSION_NAME, VK_API_VERSION_1_2, enable)) {
      link(head, chain.small_types);
    }
    if (offer.has(VK_KHR_BUFFER_DEVICE_ADDRESS_EXTENSION_NAME, VK_API_VERSION_1_2, enable)) {
      link(head, chain.addresses);
    }
    if (offer.lists(kCooperativeMatrixExtension) &&
        offer.has(VK_KHR_VULKAN_MEMORY_MODEL_EXTENSION_NAME, VK_API_VERSION_1_2, enable)) {
      enable.push_back(kCooperativeMatrixExtension);
      link(head, chain.memory_model);
      link(head, chain.matrices);
      if (offer.has(kBFloat16Extension, kNeverCore, enable)) link(head, chain.bfloat16);
      if (offer.has(kCooperativeMatrix2Extension, kNeverCore, enable)) {
        link(head, chain.matrices2);
      }
    }
  }
  chain.core.pNext = head;
  vk.GetPhysicalDeviceFeatures2(handle, &chain.core);
  if (!chain.timeline.timelineSemaphore) {
    reason = fmt::format("{} lacks timeline semaphores (timelineSemaphore)", profile.name);
    return false;
  }

  auto properties =
      vk_struct<VkPhysicalDeviceProperties2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2);
  auto subgroup = vk_struct<VkPhysicalDeviceSubgroupProperties>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES);
  auto subgroup_sizes = vk_struct<VkPhysicalDeviceSubgroupSizeControlProperties>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES);
  auto float_controls = vk_struct<VkPhysicalDeviceFloatControlsProperties>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FLOAT_CONTROLS_PROPERTIES);
  auto maintenance3 = vk_struct<VkPhysicalDeviceMaintenance3Properties>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES);
  auto maintenance4 = vk_struct<VkPhysicalDeviceMaintenance4Properties>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_PROPERTIES);
  auto driver = vk_struct<VkPhysicalDeviceDriverProperties>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES);
  auto push = vk_struct<VkPhysicalDevicePushDescriptorPropertiesKHR>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PUSH_DESCRIPTOR_PROPERTIES_KHR);
  auto multiprocessors = vk_struct<VkPhysicalDeviceShaderSMBuiltinsPropertiesNV>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_SM_BUILTINS_PROPERTIES_NV);
  auto shader_core = vk_struct<VkPhysicalDeviceShaderCorePropertiesAMD>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_CORE_PROPERTIES_AMD);
  head = nullptr;
  link(head, subgroup);
  link(head, maintenance3);
  std::vector<const char*> unused;  // properties alone need no extension enabled
  if (offer.has(VK_KHR_MAINTENANCE_4_EXTENSION_NAME, VK_API_VERSION_1_3, unused)) {
    link(head, maintenance4);
  }
  if (!least &&
      offer.has(VK_KHR_SHADER_FLOAT_CONTROLS_EXTENSION_NAME, VK_API_VERSION_1_2, enable)) {
    link(head, float_controls);
  }
  if (offer.has(VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME, VK_API_VERSION_1_3, unused)) {
    link(head, subgroup_sizes);
  }
  if (offer.has(VK_KHR_DRIVER_PROPERTIES_EXTENSION_NAME, VK_API_VERSION_1_2, unused)) {
    link(head, driver);
  }
  if (!least && offer.has(VK_KHR_PUSH_DESCRIPTOR_EXTENSION_NAME, kNeverCore, enable)) {
    link(head, push);
  }
  if (offer.lists(VK_NV_SHADER_SM_BUILTINS_EXTENSION_NAME)) link(head, multiprocessors);
  if (offer.lists(VK_AMD_SHADER_CORE_PROPERTIES_EXTENSION_NAME)) link(head, shader_core);
  properties.pNext = head;
  vk.GetPhysicalDeviceProperties2(handle, &properties);
  vk.GetPhysicalDeviceMemoryProperties(handle, &profile.memory);

  profile.vendor_id = basic.vendorID;
  profile.device_id = basic.deviceID;
  profile.driver_version = basic.driverVersion;
  std::copy_n(basic.pipelineCacheUUID, VK_UUID_SIZE, profile.cache_uuid.begin());
  profile.driver = driver.driverName[0] != '\0'
                       ? fmt::format("{} {}", driver.driverName, driver.driverInfo)
                       : fmt::format("driver {:#x}", basic.driverVersion);

  const VkPhysicalDeviceLimits& limits = basic.limits;
  profile.limits.max_allocation_bytes = maintenance3.maxMemoryAllocationSize;
  profile.limits.max_buffer_bytes = maintenance4.maxBufferSize != 0
                                        ? maintenance4.maxBufferSize
                                        : maintenance3.maxMemoryAllocationSize;
  profile.limits.max_storage_range = limits.maxStorageBufferRange;
  profile.limits.storage_offset_alignment =
      std::max<std::uint64_t>(limits.minStorageBufferOffsetAlignment, 64);
  profile.limits.max_push_descriptors = push.maxPushDescriptors;
  profile.limits.max_stage_buffers =
      std::min(limits.maxPerStageDescriptorStorageBuffers, limits.maxDescriptorSetStorageBuffers);
  if (profile.limits.max_stage_buffers < kLeastStageBuffers) {
    reason = fmt::format("{} has {} storage buffers for a kernel; vkML needs {}", profile.name,
                         profile.limits.max_stage_buffers, kLeastStageBuffers);
    return false;
  }

  const VkPhysicalDeviceFeatures& features = chain.core.features;
  DeviceTraits& traits = profile.traits;
  traits.is_software = profile.is_software();
  traits.has_int64 = features.shaderInt64;
  traits.has_float64 = features.shaderFloat64;
  traits.has_int16 = features.shaderInt16;
  traits.has_float16 = chain.small_types.shaderFloat16;
  traits.has_int8 = chain.small_types.shaderInt8;
  traits.keeps_special_values = float_controls.shaderSignedZeroInfNanPreserveFloat32;
  // Known of NVIDIA's (PTX ISA, ex2.approx.f32) and measured by the tests of exp.
  traits.has_accurate_exp2 = !least && profile.vendor_id == kNvidia;
  constexpr auto kAll = VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_ALL;  // 16 bits alone may be set
  traits.has_half_conversions =
      traits.has_float16 && float_controls.denormBehaviorIndependence == kAll &&
      float_controls.roundingModeIndependence == kAll &&
      float_controls.shaderRoundingModeRTEFloat16 && float_controls.shaderDenormPreserveFloat16 &&
      float_controls.shaderSignedZeroInfNanPreserveFloat16;
  traits.has_storage8 = chain.storage8.storageBuffer8BitAccess;
  traits.has_storage16 = chain.storage16.storageBuffer16BitAccess;
  const bool in_compute = (subgroup.supportedStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0;
  const auto has_operation = [&](VkSubgroupFeatureFlagBits operation) {
    return in_compute && (subgroup.supportedOperations & operation) != 0;
  };
  traits.subgroup_size = std::max(subgroup.subgroupSize, 1u);
  traits.has_subgroup_arithmetic = has_operation(VK_SUBGROUP_FEATURE_ARITHMETIC_BIT);
  traits.has_subgroup_shuffle = has_operation(VK_SUBGROUP_FEATURE_SHUFFLE_BIT) &&
                                subgroup_sizes.minSubgroupSize == traits.subgroup_size &&
                                subgroup_sizes.maxSubgroupSize == traits.subgroup_size;
  traits.max_workgroup_invocations =
      std::min(limits.maxComputeWorkGroupInvocations, limits.maxComputeWorkGroupSize[0]);
  traits.max_shared_bytes = limits.maxComputeSharedMemorySize;
  traits.max_push_bytes = limits.maxPushConstantsSize;
  std::copy_n(limits.maxComputeWorkGroupCount, 3, traits.max_groups.begin());
  if (multiprocessors.shaderSMCount != 0) {
    traits.compute_units = multiprocessors.shaderSMCount;
  } else if (shader_core.shaderEngineCount != 0) {
    traits.compute_units = shader_core.shaderEngineCount * shader_core.shaderArraysPerEngineCount *
                           shader_core.computeUnitsPerShaderArray;
  } else if (profile.is_software()) {
    traits.compute_units = std::max(std::thread::hardware_concurrency(), 1u);
  }
  // The kernels deal tiles out to subgroups of this size.
  if (subgroup_sizes.minSubgroupSize == 32 && subgroup_sizes.maxSubgroupSize == 32) {
    read_matrix_units(vk, chain, profile);
  }
  profile.has_addresses = chain.addresses.bufferDeviceAddress && traits.has_int64;
  if (least) clamp_to_least(profile);

  const std::string buffers = env_buffers();
  const bool wanted = buffers.empty() ? !profile.is_software() : buffers == "addresses";
  traits.use_addresses = wanted && profile.has_addresses;
  list_features(profile);
  return true;
}

}  // namespace vkml::vulkan
