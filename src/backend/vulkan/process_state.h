// Whether Vulkan may be called in this process: not in a fork of one that used it, whose driver
// threads and device files are the parent's, and not once the process is exiting.
#pragma once

namespace vkml::vulkan {

/// Starts watching for fork and exit. Called before the first instance is made; idempotent.
void watch_process();

/// False in a forked child, and after exit handlers have run: then Vulkan objects are left alone.
bool vulkan_is_usable();

/// Throws DeviceError when vulkan_is_usable() is false.
void require_usable();

/// Runs at exit, before static objects die, most recent first.
using ExitHook = void (*)();
void run_at_exit(ExitHook hook);

}  // namespace vkml::vulkan
