// Reductions across rows: running values that tiles add to, and a fixed order of combination.
//
// Running values are double or 64-bit integers, so that the error of a sum does not grow with the
// length of the row, nor depend on how the row is cut into tiles.
#pragma once

#include <cstdint>

#include "tile/program.h"
#include "vkml/ops/scalar_program.h"

namespace vkml::cpu {

union ReductionValue {
  double real;
  std::int64_t integer;
};

/// The running values of a block of rows.
struct ReductionState {
  ReductionValue* value = nullptr;
  std::int64_t* index = nullptr;  // of the extreme, in argument reductions; -1 before any element
};

struct Reduction {
  ops::ReduceKind kind = ops::ReduceKind::kSum;
  ops::ScalarType type = ops::ScalarType::kF32;    // of the elements
  ops::ScalarType result = ops::ScalarType::kF32;  // of the rows' values
  std::uint16_t slot = 0;                          // of the rows' values
};

/// Sets the states to the identity.
void start(const Reduction& reduction, const ReductionState& state, std::int64_t rows);

/// A step that adds a tile (source 0) to frame.states[step.immediate].
Loop reduce_loop(const Reduction& reduction, bool vertical);

/// Combines the states of a later part of the rows into those of an earlier one.
void combine(const Reduction& reduction, const ReductionState& state, const ReductionState& later,
             std::int64_t rows);

/// Writes the rows' values to a register; `copies` of each (where not 1, rows is 1).
void finish(const Reduction& reduction, const ReductionState& state, std::int64_t rows,
            std::size_t copies, void* target);

}  // namespace vkml::cpu
