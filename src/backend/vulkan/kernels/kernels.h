// The kernel families: each turns a kernel of the plan into dispatches.
#pragma once

#include <vector>

#include "kernels/shader.h"

namespace vkml::vulkan {

std::vector<Dispatch> generate_map(const Context& context);

}  // namespace vkml::vulkan
