// Cuts kernels that are too large for 32-bit indices into parts that are not.
#pragma once

#include <vector>

#include "vkml/dispatch/execution_graph.h"

namespace vkml::vulkan {

/// The same region as one or more kernels, each within the range of 32-bit indices as far as
/// cutting its outer axes achieves that.
std::vector<dispatch::Kernel> within_index_range(const dispatch::Kernel& kernel);

}  // namespace vkml::vulkan
