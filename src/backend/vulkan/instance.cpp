#include "instance.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "check.h"
#include "environment.h"
#include "process_state.h"
#include "vk_struct.h"

namespace vkml::vulkan {

namespace {

constexpr const char* kValidationLayer = "VK_LAYER_KHRONOS_validation";

constexpr const char* kRemedy =
    "Install one (Debian: mesa-vulkan-drivers), or use vkml.cpu; VK_LOADER_DEBUG=all shows what "
    "the "
    "loader tries";

/// The variables by which a user has chosen drivers, for messages: a wrong one hides them all.
std::string chosen_drivers() {
  std::string text;
  for (const char* name : {"VK_DRIVER_FILES", "VK_ICD_FILENAMES"}) {
    const char* value = std::getenv(name);
    if (value != nullptr) text += fmt::format("; {}={}", name, value);
  }
  return text;
}

bool has_layer(const GlobalFunctions& global, const char* name) {
  std::uint32_t count = 0;
  global.EnumerateInstanceLayerProperties(&count, nullptr);
  std::vector<VkLayerProperties> layers(count);
  global.EnumerateInstanceLayerProperties(&count, layers.data());
  return std::any_of(layers.begin(), layers.end(), [&](const VkLayerProperties& layer) {
    return std::strcmp(layer.layerName, name) == 0;
  });
}

bool has_extension(const GlobalFunctions& global, const char* name) {
  std::uint32_t count = 0;
  global.EnumerateInstanceExtensionProperties(nullptr, &count, nullptr);
  std::vector<VkExtensionProperties> extensions(count);
  global.EnumerateInstanceExtensionProperties(nullptr, &count, extensions.data());
  return std::any_of(extensions.begin(), extensions.end(), [&](const auto& extension) {
    return std::strcmp(extension.extensionName, name) == 0;
  });
}

int rank_of(VkPhysicalDeviceType type) {
  switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
      return 0;
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU:
      return 1;
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU:
      return 2;
    case VK_PHYSICAL_DEVICE_TYPE_CPU:
      return 4;
    default:
      return 3;
  }
}

}  // namespace

Instance& Instance::get() {
  static auto* instance = new Instance;
  return *instance;
}

Instance::Instance() {
  watch_forks();
  const GlobalFunctions* global = load_vulkan(reason_);
  if (global != nullptr && create(*global)) enumerate();
}

bool Instance::create(const GlobalFunctions& global) {
  global.EnumerateInstanceVersion(&version_);
  if (env_min_spec()) version_ = std::min<std::uint32_t>(version_, VK_API_VERSION_1_1);
  version_ = std::min<std::uint32_t>(version_, VK_API_VERSION_1_3);

  auto application = vk_struct<VkApplicationInfo>(VK_STRUCTURE_TYPE_APPLICATION_INFO);
  application.pApplicationName = "vkml";
  application.pEngineName = "vkml";
  application.apiVersion = version_;
  auto info = vk_struct<VkInstanceCreateInfo>(VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO);
  info.pApplicationInfo = &application;

  std::vector<const char*> extensions;
  std::vector<const char*> layers;
  auto messages = vk_struct<VkDebugUtilsMessengerCreateInfoEXT>(
      VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT);
  if (env_validation()) {
    if (has_layer(global, kValidationLayer)) {
      layers.push_back(kValidationLayer);
      extensions.push_back(VK_EXT_DEBUG_UTILS_EXTENSION_NAME);
      messages.messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT |
                                 VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
      messages.messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT;
      messages.pfnUserCallback = &Instance::on_message;
      messages.pUserData = this;
      info.pNext = &messages;
    } else {
      fmt::print(stderr, "vkml: VKML_VALIDATION is set, but {} is not installed\n",
                 kValidationLayer);
    }
  }
  if (has_extension(global, "VK_KHR_portability_enumeration")) {
    extensions.push_back("VK_KHR_portability_enumeration");
    info.flags |= VK_INSTANCE_CREATE_ENUMERATE_PORTABILITY_BIT_KHR;
  }
  info.enabledLayerCount = static_cast<std::uint32_t>(layers.size());
  info.ppEnabledLayerNames = layers.data();
  info.enabledExtensionCount = static_cast<std::uint32_t>(extensions.size());
  info.ppEnabledExtensionNames = extensions.data();

  const VkResult result = global.CreateInstance(&info, nullptr, &instance_);
  if (result != VK_SUCCESS) {
    reason_ = fmt::format("the Vulkan loader found no working driver ({}{}). {}", name_of(result),
                          chosen_drivers(), kRemedy);
    return false;
  }
  functions_ = load_instance_functions(global, instance_);
  if (!layers.empty() && functions_.CreateDebugUtilsMessengerEXT != nullptr) {
    functions_.CreateDebugUtilsMessengerEXT(instance_, &messages, nullptr, &messenger_);
  }
  return true;
}

void Instance::enumerate() {
  std::uint32_t count = 0;
  const VkResult result = functions_.EnumeratePhysicalDevices(instance_, &count, nullptr);
  std::vector<VkPhysicalDevice> handles(result == VK_SUCCESS ? count : 0);
  if (!handles.empty()) functions_.EnumeratePhysicalDevices(instance_, &count, handles.data());
  reason_ = fmt::format("no Vulkan driver reports a device ({}{}). {}", name_of(result),
                        chosen_drivers(), kRemedy);
  for (VkPhysicalDevice handle : handles) {
    DeviceProfile profile;
    if (read_profile(functions_, handle, version_, profile, reason_)) {
      devices_.push_back(std::move(profile));
    }
  }
  std::stable_sort(devices_.begin(), devices_.end(),
                   [](const auto& a, const auto& b) { return rank_of(a.type) < rank_of(b.type); });
}

VkBool32 Instance::on_message(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                              VkDebugUtilsMessageTypeFlagsEXT,
                              const VkDebugUtilsMessengerCallbackDataEXT* data, void* user) {
  const bool is_error = (severity & VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT) != 0;
  if (is_error) static_cast<Instance*>(user)->validation_errors_.fetch_add(1);
  fmt::print(stderr, "vkml: Vulkan validation {}: {}\n", is_error ? "error" : "warning",
             data->pMessage);
  return VK_FALSE;
}

}  // namespace vkml::vulkan
