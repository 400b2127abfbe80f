// The vector loops of the tile machine, chosen once for the processor that runs.
//
// Representation in registers: f32, f64, i32, i64 as they are; booleans as 32-bit masks, 0 or -1.
#pragma once

#include <cstddef>

#include "tile/program.h"
#include "vkml/core/dtype.h"
#include "vkml/ops/far_functions.h"
#include "vkml/ops/scalar_program.h"

namespace vkml::cpu {

/// Bytes of one element in a register.
constexpr std::size_t register_bytes(ops::ScalarType type) {
  return type == ops::ScalarType::kI64 || type == ops::ScalarType::kF64 ? 8 : 4;
}

/// Which operands of a step are tiles: bit k for source k. The others are one vector of copies.
using Pattern = unsigned;

/// The loop of an arithmetic instruction. `source` is the type of its first operand (of the
/// compared values, of what is converted); `immediate` is the instruction's. The condition of
/// kSelect must be a tile where another operand is. Null: no such instruction.
Loop arithmetic_loop(ops::Opcode op, ops::ScalarType type, ops::ScalarType source,
                     std::int64_t immediate, Pattern tiles);

/// result = (((s1 * x + c0) * x + c1) ...): source 0 is x, source 1 the start, source 2 points to
/// step.immediate coefficients. Each step rounds once, as a chain of kFma does. x must be a tile
/// where the start is.
Loop polynomial_loop(ops::ScalarType type, Pattern tiles);

/// A copy of a register.
Loop copy_loop(ops::ScalarType type);
/// A register of copies of one vector.
Loop fill_loop(ops::ScalarType type);

/// Converts n contiguous elements between memory of `dtype` and a register of its compute type.
using ConvertRow = void (*)(void* target, const void* source, std::size_t n);
ConvertRow load_row(DType dtype);
ConvertRow store_row(DType dtype);

// One table for each instruction type, from loops_<type>.cpp.
Loop f32_loop(ops::Opcode op, Pattern tiles);
Loop f64_loop(ops::Opcode op, Pattern tiles);
Loop i32_loop(ops::Opcode op, Pattern tiles);
Loop i64_loop(ops::Opcode op, Pattern tiles);
Loop f32_polynomial_loop(Pattern tiles);
Loop f64_polynomial_loop(Pattern tiles);
Loop f32_beyond_loop(ops::FarFunction function);
Loop f64_beyond_loop(ops::FarFunction function);
Loop convert_loop(ops::ScalarType to, ops::ScalarType from);
Loop narrow_loop(DType dtype);

}  // namespace vkml::cpu
