// The kernel families: each turns a kernel of the plan into dispatches.
#pragma once

#include <vector>

#include "kernels/shader.h"

namespace vkml::vulkan {

std::vector<Dispatch> generate_map(const Context& context);
std::vector<Dispatch> generate_rows(const Context& context);
std::vector<Dispatch> generate_matmul(const Context& context);
std::vector<Dispatch> generate_conv2d(const Context& context);
std::vector<Dispatch> generate_gather(const Context& context);
std::vector<Dispatch> generate_scatter(const Context& context);
std::vector<Dispatch> generate_scan(const Context& context);
std::vector<Dispatch> generate_argsort(const Context& context);
std::vector<Dispatch> generate_search_sorted(const Context& context);
std::vector<Dispatch> generate_pool2d(const Context& context);
std::vector<Dispatch> generate_attention(const Context& context);

/// Scratch that the families want.
std::int64_t row_scratch_bytes(const dispatch::Kernel& kernel, const DeviceTraits& traits);
std::int64_t matmul_scratch_bytes(const dispatch::Kernel& kernel, const DeviceTraits& traits);
std::int64_t conv2d_scratch_bytes(const dispatch::Kernel& kernel, const DeviceTraits& traits);
std::int64_t argsort_scratch_bytes(const dispatch::Kernel& kernel);
std::int64_t scatter_scratch_bytes(const dispatch::Kernel& kernel, const DeviceTraits& traits);

}  // namespace vkml::vulkan
