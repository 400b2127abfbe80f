// The tile machine's code: straight lists of steps, each one vector loop over a tile.
//
// A tile is a window of at most a few thousand elements of a kernel's iteration space, held
// row-major in registers that stay in the first-level cache. A step finds its operands through
// slots: a register, a constant, a value that is the same for all elements (one vector of copies),
// or the tensor's own memory when its elements already lie as the tile wants them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "vkml/core/shape.h"

namespace vkml::cpu {

/// Loops run over multiples of this many elements, so that no loop has a remainder: registers are
/// padded, and memory that is not a multiple goes through a register. Also the number of copies in
/// a slot that does not advance.
inline constexpr std::size_t kLaneMultiple = 16;

constexpr std::size_t round_up_to_lanes(std::size_t count) {
  return (count + kLaneMultiple - 1) / kLaneMultiple * kLaneMultiple;
}

/// Part of the iteration space, in the axes of a RegionPlan.
struct Window {
  std::array<std::int64_t, kMaxDims> start{};
  std::array<std::int64_t, kMaxDims> size{1, 1, 1, 1};
};

struct RegionProgram;
struct RunContext;
struct ReductionState;

/// What the steps of a tile run on.
struct Frame {
  std::byte** slots = nullptr;
  std::size_t count = 0;  // elements, rounded up to kLaneMultiple
  std::size_t exact = 0;  // elements that exist
  Window window;
  std::int64_t rows = 1;        // rows that the tile touches
  std::int64_t length = 0;      // elements of each row in the tile
  std::int64_t row_offset = 0;  // position of the tile's first element within its row
  std::int64_t ordinal = 0;     // of the tile, for reporting the first failure
  std::byte* memory = nullptr;  // the registers' memory
  const ReductionState* states = nullptr;
  const RegionProgram* program = nullptr;
  const RunContext* run = nullptr;
};

struct Step;
using Loop = void (*)(const Step& step, const Frame& frame);

struct Step {
  Loop loop = nullptr;
  std::uint16_t result = 0;
  std::array<std::uint16_t, 3> source{};
  /// All ones where the operand is a tile, zero where it is one vector for all elements.
  std::array<std::size_t, 3> mask{};
  std::int64_t immediate = 0;
};

template <typename T>
T* result_of(const Step& step, const Frame& frame) {
  return reinterpret_cast<T*>(frame.slots[step.result]);
}
template <typename T>
const T* source_of(const Step& step, const Frame& frame, std::size_t index) {
  return reinterpret_cast<const T*>(frame.slots[step.source[index]]);
}

}  // namespace vkml::cpu
