// A value on another device.
#pragma once

#include <cstddef>
#include <vector>

#include "vkml/graph/value.h"

namespace vkml {

/// Computes x, waits, and copies it through host memory. Gradients go back the same way. Throws
/// what the computation of x threw, DeviceError and OutOfMemoryError.
graph::Value transfer(const graph::Value& x, Device device);

/// The elements of x in row-major order. Computes x and waits.
std::vector<std::byte> download(const graph::Value& x);

}  // namespace vkml
