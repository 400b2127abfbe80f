// The most that vkML gets out of a device, measured once in a process when somebody asks: the
// bandwidth of a long copy, the rate of a large matrix product.
#pragma once

#include <optional>

#include "vkml/core/device.h"
#include "vkml/core/dtype.h"

namespace vkml {

/// Bytes per second, read and written, of an operation that moves more than caches hold. None where
/// it cannot be measured now: too little memory, or somebody watches or records what this thread
/// does.
std::optional<double> copy_roof(Device device);

/// Operations per second of a product of large square matrices of `dtype`. None as above, and where
/// the device has no products of it.
std::optional<double> product_roof(Device device, DType dtype);

}  // namespace vkml
