// The environment variables that the Vulkan backend reads.
#pragma once

#include <string>

namespace vkml::vulkan {

/// VKML_MIN_SPEC=1: behave as the least device that vkML supports (tests).
bool env_min_spec();
/// VKML_VALIDATION=1: turn on the Khronos validation layer and print what it says.
bool env_validation();
/// VKML_DEBUG: say what is ignored silently otherwise.
bool env_debug();
/// VKML_VULKAN_BUFFERS=addresses|descriptors: how kernels reach buffers; empty: the default.
std::string env_buffers();
/// Where compiled pipelines are kept: VKML_CACHE_DIR, else the user's cache folder; empty: nowhere.
std::string env_cache_directory();

}  // namespace vkml::vulkan
