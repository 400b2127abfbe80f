#include "environment.h"

#include "vkml/core/environment.h"
#include "vkml/core/error.h"

namespace vkml::vulkan {

bool env_min_spec() { return environment_switch("VKML_MIN_SPEC"); }
bool env_validation() { return environment_switch("VKML_VALIDATION"); }
bool env_debug() { return debug_level() > 0; }

std::string env_buffers() {
  const std::string value = environment_text("VKML_VULKAN_BUFFERS");
  if (!value.empty() && value != "addresses" && value != "descriptors") {
    throw ArgumentError("[vulkan] VKML_VULKAN_BUFFERS=" + value +
                        " is not known. Use addresses or descriptors");
  }
  return value;
}

std::string env_cache_directory() {
  if (const std::string path = environment_text("VKML_CACHE_DIR"); !path.empty()) return path;
#ifdef _WIN32
  if (const std::string path = environment_text("LOCALAPPDATA"); !path.empty())
    return path + "/vkml";
#else
  if (const std::string path = environment_text("XDG_CACHE_HOME"); !path.empty())
    return path + "/vkml";
  if (const std::string path = environment_text("HOME"); !path.empty())
    return path + "/.cache/vkml";
#endif
  return {};
}

}  // namespace vkml::vulkan
