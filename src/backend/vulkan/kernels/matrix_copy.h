// Copies of matrices for the matrix units, which read rows that start at 16-byte vectors and are
// whole vectors long.
#pragma once

#include "kernels/shader.h"

namespace vkml::vulkan {

/// Neighbours that one 16-byte vector of the narrowest type holds: rows are padded to a multiple.
inline constexpr std::int64_t kVectorElements = 8;

/// The axis along which neighbours in memory lie, of the last two: rows of a copy that keeps their
/// order.
std::size_t nearest_axis(const dispatch::Operand& operand);

/// `row` is the axis, of the last two, along which the copy's rows lie.
std::int64_t matrix_copy_bytes(const dispatch::Operand& operand, std::size_t row);

/// The copy, `begin` bytes into a buffer. It has one matrix where batch axes broadcast one.
dispatch::Operand matrix_copy_of(const dispatch::Operand& operand, std::size_t row, int buffer,
                                 std::int64_t begin);

/// `operand` is an input of the kernel's core, `copy` made by matrix_copy_of in its scratch.
Dispatch generate_matrix_copy(const Context& context, const dispatch::Operand& operand,
                              std::size_t row, const dispatch::Operand& copy);

}  // namespace vkml::vulkan
