// Copies of matrices for the matrix units, which read rows that start at 16-byte vectors and are
// whole vectors long.
#pragma once

#include "kernels/shader.h"

namespace vkml::vulkan {

/// Neighbours that one 16-byte vector of the narrowest type holds: rows are padded to a multiple.
inline constexpr std::int64_t kVectorElements = 8;

std::int64_t matrix_copy_bytes(const dispatch::Operand& operand);

/// The copy, `begin` bytes into a buffer. It keeps the order in memory of the last two axes, and
/// has one matrix where batch axes broadcast one.
dispatch::Operand matrix_copy_of(const dispatch::Operand& operand, int buffer, std::int64_t begin);

/// `operand` is an input of the kernel's core, `copy` made by matrix_copy_of in its scratch.
Dispatch generate_matrix_copy(const Context& context, const dispatch::Operand& operand,
                              const dispatch::Operand& copy);

}  // namespace vkml::vulkan
