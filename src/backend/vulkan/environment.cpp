#include "environment.h"

#include <cstdlib>
#include <string_view>

#include "vkml/core/error.h"

namespace vkml::vulkan {

namespace {

std::string_view read(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

bool is_set(const char* name) {
  const std::string_view value = read(name);
  return !value.empty() && value != "0";
}

}  // namespace

bool env_min_spec() { return is_set("VKML_MIN_SPEC"); }
bool env_validation() { return is_set("VKML_VALIDATION"); }
bool env_debug() { return is_set("VKML_DEBUG"); }

std::string env_buffers() {
  const std::string value(read("VKML_VULKAN_BUFFERS"));
  if (!value.empty() && value != "addresses" && value != "descriptors") {
    throw ArgumentError("VKML_VULKAN_BUFFERS=" + value +
                        " is not known. Use addresses or descriptors");
  }
  return value;
}

std::string env_cache_directory() {
  if (const auto path = read("VKML_CACHE_DIR"); !path.empty()) return std::string(path);
#ifdef _WIN32
  if (const auto path = read("LOCALAPPDATA"); !path.empty()) return std::string(path) + "/vkml";
#else
  if (const auto path = read("XDG_CACHE_HOME"); !path.empty()) return std::string(path) + "/vkml";
  if (const auto path = read("HOME"); !path.empty()) return std::string(path) + "/.cache/vkml";
#endif
  return {};
}

}  // namespace vkml::vulkan
