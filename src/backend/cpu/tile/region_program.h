// A compiled region: the plan of its tiles, the steps of each pass, and where slots live.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tile/plan.h"
#include "tile/program.h"
#include "tile/reduction.h"

namespace vkml::cpu {

/// Where a slot points. Offsets are in bytes.
struct Slot {
  enum class Home : std::uint8_t {
    kConstant,  // of the program's constants
    kUniform,   // of the run's uniform values
    kRegister,  // of the thread's registers
    kResident,  // of the thread's registers: a whole row block, the tile's part of it
    kAimed,     // the tensor's memory, or at the edge a register at this offset
  };
  Home home = Home::kRegister;
  std::uint8_t element_bytes = 4;
  std::size_t offset = 0;
};

struct Pass {
  std::vector<Step> row_steps;      // once for each block of rows, before its elements
  std::vector<Step> element_steps;  // for each tile
  std::vector<int> reductions;      // finished after the last tile
};

struct RegionProgram {
  RegionPlan plan;
  std::vector<Slot> slots;
  std::vector<std::uint64_t> constants;
  std::vector<Step> uniform_steps;
  std::vector<Pass> passes;
  std::vector<Reduction> reductions;
  std::vector<std::uint16_t> resident;  // slots to move with the tile
  std::size_t uniform_bytes = 0;
  std::size_t row_register_bytes = 0;  // the first of the registers: values of rows
  std::size_t register_bytes = 0;      // for each thread
  bool rows_are_splat = false;         // one row a tile: its values are one vector of copies
  double nanoseconds_per_element = 0;
};

}  // namespace vkml::cpu
