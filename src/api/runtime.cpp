#include "runtime.h"

#include <cstdlib>
#include <mutex>
#include <string_view>

#include "vkml/backend/cpu/register.h"
#include "vkml/backend/reference/register.h"
#include "vkml/backend/vulkan/register.h"

namespace vkml {

void register_backends() {
  static std::once_flag once;
  std::call_once(once, [] {
    const char* reference = std::getenv("VKML_REFERENCE");
    if (reference != nullptr && std::string_view(reference) == "1") {
      reference::register_reference_backend();
    } else {
      cpu::register_cpu_backend();
    }
    register_vulkan_backend();
  });
}

}  // namespace vkml
