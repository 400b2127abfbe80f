// Makes Vulkan devices known to the dispatch layer.
#pragma once

namespace vkml {

/// Opens nothing: the Vulkan loader is looked for when the devices are counted or first used.
void register_vulkan_backend();

}  // namespace vkml
