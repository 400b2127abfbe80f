#include "runtime.h"

#include <mutex>

#include "vkml/backend/cpu/register.h"
#include "vkml/backend/reference/register.h"
#include "vkml/backend/vulkan/register.h"
#include "vkml/core/environment.h"

namespace vkml {

void register_backends() {
  static std::once_flag once;
  std::call_once(once, [] {
    if (environment_switch("VKML_REFERENCE")) {
      reference::register_reference_backend();
    } else {
      cpu::register_cpu_backend();
    }
    register_vulkan_backend();
  });
}

}  // namespace vkml
