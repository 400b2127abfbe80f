// What the C++ benchmarks share. Each registers itself once for every device.
#pragma once

#include <benchmark/benchmark.h>

#include <string>

#include "vkml/api/vkml.h"

namespace vkml::bench {

/// "chain/1048576/cpu"
inline std::string name_on(const std::string& name, Device device) {
  return name + "/" + to_string(device);
}

/// Standard normal values on a device, computed.
inline Tensor normal(const Extents& extents, Device device) {
  return randn(extents, DType::kF32, device).realize();
}

/// Recording, planning and running, apart from what kernels do.
void register_overhead(Device device);
/// The kernels themselves, at sizes that suit the device.
void register_kernels(Device device, bool is_software);

}  // namespace vkml::bench
