// What the runtime derives from a kernel of the plan: the bytes it can touch, how its buffers are
// reached, and roughly how long it takes.
#pragma once

#include <cstdint>
#include <map>

#include "device_profile.h"
#include "dispatch_list.h"
#include "vkml/core/device.h"
#include "vkml/dispatch/execution_graph.h"

namespace vkml::vulkan {

struct ByteHull {
  std::int64_t begin = 0;  // from the buffer's first byte; negative strides may reach before it
  std::int64_t end = 0;
};
using ByteHulls = std::map<int, ByteHull>;  // by buffer index

/// For each buffer of the kernel, the smallest byte range with all elements of its operands,
/// widened to whole 32-bit words.
ByteHulls byte_hulls(const dispatch::Kernel& kernel, const dispatch::ExecutionGraph& graph);

/// The device's traits, with buffers by address where a range is too large for a descriptor. Throws
/// UnsupportedError, naming the limit, where the device has no addresses.
DeviceTraits traits_for(const ByteHulls& hulls, const DeviceProfile& profile, vkml::Device name);

/// A cautious estimate, for deciding where a long plan is split.
double estimate_seconds(const dispatch::Kernel& kernel, const ByteHulls& hulls, bool is_software);

}  // namespace vkml::vulkan
