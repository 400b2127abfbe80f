// The fast CPU backend's only public name.
#pragma once

namespace vkml::cpu {

/// Makes `vkml::kCpu` mean the vectorised backend. Call once, before first use of the device.
void register_cpu_backend();

}  // namespace vkml::cpu
