// Operands brought into a form that a library takes: dense, and of another type.
#pragma once

#include <vector>

#include "tile/region.h"
#include "vkml/dispatch/execution_graph.h"

namespace vkml::cpu {

dispatch::Extents dense_strides(const dispatch::Extents& extents);

/// `operand` as a dense array of `dtype` that starts `offset` bytes into buffer `scratch`.
dispatch::Operand dense_copy_of(const dispatch::Operand& operand, DType dtype, int scratch,
                                std::int64_t offset);

/// The region that makes it, element by element.
Region copy_region(const dispatch::Operand& from, const dispatch::Operand& to,
                   const std::vector<dispatch::Buffer>& buffers);

/// Address of an operand's first element.
std::byte* address_of(const dispatch::Operand& operand, const RunContext& run);

}  // namespace vkml::cpu
