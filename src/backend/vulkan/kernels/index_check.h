// Data-dependent indices of gather and scatter: clamped where they are used, reported to the status
// word, and checked by a dispatch of their own before storage that outlives the graph is written.
#pragma once

#include "kernels/per_element.h"

namespace vkml::vulkan {

/// The index as it is used, in 32 bits; reported when it lies outside [0, extent).
spirv::Value checked_position(Shader& shader, int site, spirv::Value index, spirv::Value extent);

/// Checks every element of `indices`.
Dispatch generate_index_check(const Context& context, const dispatch::Operand& indices,
                              std::int64_t axis_extent, int site);

}  // namespace vkml::vulkan
