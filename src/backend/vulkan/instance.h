// The one Vulkan instance of the process and the devices it offers, real ones first.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "device_profile.h"
#include "loader.h"

namespace vkml::vulkan {

class Instance {
 public:
  /// Made at first use and never destroyed: drivers and their exit handlers may outlive any order
  /// of destruction that could be arranged.
  static Instance& get();

  /// Empty when there is no usable device; then `reason()` says why.
  const std::vector<DeviceProfile>& devices() const { return devices_; }
  const std::string& reason() const { return reason_; }
  const InstanceFunctions& functions() const { return functions_; }

  /// Errors that the validation layer has reported (VKML_VALIDATION=1).
  std::uint64_t validation_errors() const { return validation_errors_.load(); }
  bool validates() const { return messenger_ != VK_NULL_HANDLE; }

 private:
  Instance();
  bool create(const GlobalFunctions& global);
  void enumerate();
  static VKAPI_ATTR VkBool32 VKAPI_CALL on_message(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                                                   VkDebugUtilsMessageTypeFlagsEXT types,
                                                   const VkDebugUtilsMessengerCallbackDataEXT* data,
                                                   void* user);

  VkInstance instance_ = VK_NULL_HANDLE;
  VkDebugUtilsMessengerEXT messenger_ = VK_NULL_HANDLE;
  std::uint32_t version_ = VK_API_VERSION_1_1;
  InstanceFunctions functions_;
  std::vector<DeviceProfile> devices_;
  std::string reason_;
  std::atomic<std::uint64_t> validation_errors_{0};
};

}  // namespace vkml::vulkan
