// Whether Vulkan may be called in this process: not in a fork of one that used it, whose driver
// threads and device files are the parent's, and not once the process is exiting.
#pragma once

#include <optional>
#include <string>

namespace vkml::vulkan {

/// Starts watching for fork. Called before the first instance is made; idempotent.
void watch_forks();

/// False in a forked child, and after exit handlers have run: then Vulkan objects are left alone.
bool vulkan_is_usable();

/// Why vulkan_is_usable() is false and what to do about it; none when it is true.
std::optional<std::string> why_unusable();

/// Throws DeviceError when vulkan_is_usable() is false.
void require_usable();

/// Lets `hook` run when the process exits, while Vulkan can still be called; afterwards
/// vulkan_is_usable() is false. Exit handlers run in reverse order and drivers register theirs as
/// they load their parts, so this is called again after a device, a pipeline or a submission was
/// first made: the hook runs once, at the earliest of its places.
void settle_at_exit(void (*hook)());

}  // namespace vkml::vulkan
