#include "vkml/backend/vulkan/register.h"

#include "backend.h"
#include "instance.h"
#include "process_state.h"
#include "vkml/dispatch/backend.h"
#include "vkml/dispatch/missing_device.h"

namespace vkml {

void register_vulkan_backend() {
  dispatch::register_backend(
      DeviceKind::kVulkan,
      [](int index) -> std::unique_ptr<dispatch::Backend> {
        return std::make_unique<vulkan::VulkanBackend>(index);
      },
      [] {
        if (!vulkan::vulkan_is_usable()) return 0;
        return static_cast<int>(vulkan::Instance::get().devices().size());
      });
  dispatch::explain_missing(DeviceKind::kVulkan, [] {
    return vulkan::why_unusable().value_or(vulkan::Instance::get().reason());
  });
}

}  // namespace vkml
