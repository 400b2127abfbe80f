#include "loader.h"

#ifdef _WIN32
#include <windows.h>
#else
#include <dlfcn.h>
#endif

#include "vkml/core/error.h"

namespace vkml::vulkan {

namespace {

// The library stays open for the life of the process: drivers leave threads and exit handlers.
// `failure` says why there is none, as the system says it.
PFN_vkGetInstanceProcAddr open_loader(std::string& failure) {
#ifdef _WIN32
  HMODULE library = LoadLibraryA("vulkan-1.dll");
  if (library == nullptr) {
    failure = "vulkan-1.dll: error " + std::to_string(GetLastError());
    return nullptr;
  }
  return reinterpret_cast<PFN_vkGetInstanceProcAddr>(
      reinterpret_cast<void*>(GetProcAddress(library, "vkGetInstanceProcAddr")));
#else
#ifdef __APPLE__
  constexpr const char* kNames[] = {"libvulkan.1.dylib", "libvulkan.dylib", "libMoltenVK.dylib"};
#else
  constexpr const char* kNames[] = {"libvulkan.so.1", "libvulkan.so"};
#endif
  for (const char* name : kNames) {
    if (void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL)) {
      return reinterpret_cast<PFN_vkGetInstanceProcAddr>(dlsym(library, "vkGetInstanceProcAddr"));
    }
    // The first name is the one to install.
    if (failure.empty()) failure = dlerror();
  }
  return nullptr;
#endif
}

struct Loader {
  GlobalFunctions functions;
  std::string reason;

  Loader() {
    std::string failure;
    functions.GetInstanceProcAddr = open_loader(failure);
    if (functions.GetInstanceProcAddr == nullptr) {
      reason =
          "there is no Vulkan loader (" + failure +
          "). Install it (Debian: libvulkan1 and a driver such as mesa-vulkan-drivers), or use "
          "vkml.cpu";
      return;
    }
#define VKML_LOAD(name) \
  functions.name =      \
      reinterpret_cast<PFN_vk##name>(functions.GetInstanceProcAddr(VK_NULL_HANDLE, "vk" #name));
    VKML_VULKAN_GLOBAL_FUNCTIONS(VKML_LOAD)
#undef VKML_LOAD
    if (functions.EnumerateInstanceVersion == nullptr) {
      reason = "the Vulkan loader is older than Vulkan 1.1. Update it, or use vkml.cpu";
    }
  }
};

}  // namespace

const GlobalFunctions* load_vulkan(std::string& reason) {
  static const Loader loader;
  reason = loader.reason;
  return reason.empty() ? &loader.functions : nullptr;
}

InstanceFunctions load_instance_functions(const GlobalFunctions& global, VkInstance instance) {
  InstanceFunctions functions;
#define VKML_LOAD(name)                                                                \
  functions.name = reinterpret_cast<PFN_vk##name>(global.GetInstanceProcAddr(instance, \
                                                                             "v"       \
                                                                             "k" #name));
  VKML_VULKAN_INSTANCE_FUNCTIONS(VKML_LOAD)
  VKML_LOAD(CreateDebugUtilsMessengerEXT)
  VKML_LOAD(DestroyDebugUtilsMessengerEXT)
#undef VKML_LOAD
  functions.GetPhysicalDeviceCooperativeMatrixPropertiesKHR =
      reinterpret_cast<GetCooperativeMatrixProperties>(global.GetInstanceProcAddr(
          instance, "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR"));
  return functions;
}

DeviceFunctions load_device_functions(const InstanceFunctions& instance, VkDevice device) {
  DeviceFunctions functions;
#define VKML_LOAD(name)                                                                            \
  functions.name = reinterpret_cast<PFN_vk##name>(instance.GetDeviceProcAddr(device, "vk" #name)); \
  if (functions.name == nullptr) {                                                                 \
    throw DeviceError("[vulkan] the driver lacks vk" #name ". Update it, or use vkml.cpu");        \
  }
  VKML_VULKAN_DEVICE_FUNCTIONS(VKML_LOAD)
#undef VKML_LOAD
#define VKML_LOAD(name)                                                                            \
  functions.name = reinterpret_cast<PFN_vk##name>(instance.GetDeviceProcAddr(device, "vk" #name)); \
  if (functions.name == nullptr) {                                                                 \
    functions.name =                                                                               \
        reinterpret_cast<PFN_vk##name>(instance.GetDeviceProcAddr(device, "vk" #name "KHR"));      \
  }
  VKML_VULKAN_PROMOTED_DEVICE_FUNCTIONS(VKML_LOAD)
#undef VKML_LOAD
  functions.CmdPushDescriptorSetKHR = reinterpret_cast<PFN_vkCmdPushDescriptorSetKHR>(
      instance.GetDeviceProcAddr(device, "vkCmdPushDescriptorSetKHR"));
  return functions;
}

}  // namespace vkml::vulkan
