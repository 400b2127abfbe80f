// The second half of compiling a region: values get slots, and registers are shared by liveness.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "tile/region_program.h"

namespace vkml::cpu {

/// A value of the draft: the result of one step, or memory.
struct Value {
  Slot::Home home = Slot::Home::kRegister;
  std::uint8_t element_bytes = 4;
  bool advances = true;         // false: one vector of copies
  bool is_row = false;          // one value for each row of the tile
  bool is_step_result = false;  // made by an arithmetic loop, which could write elsewhere instead
  bool is_resident = false;     // kept for the whole row block
  int load = -1;                // of values that come straight from one
  std::size_t pass = 0;
  std::size_t offset = 0;  // of constants
};

struct DraftStep {
  Loop loop = nullptr;
  int result = -1;
  std::array<int, 3> sources{-1, -1, -1};
  std::int64_t immediate = 0;
};

struct DraftPass {
  std::vector<DraftStep> row_steps;
  std::vector<DraftStep> element_steps;
};

struct DraftStore {
  int store = 0;
  int value = 0;
  std::size_t pass = 0;
  bool is_direct = false;              // memory is as a register is
  std::vector<int> overwritten_loads;  // loads whose memory this store may overwrite
};

struct Draft {
  std::unique_ptr<RegionProgram> program;
  std::vector<Value> values;
  std::vector<DraftStep> uniform_steps;
  std::vector<DraftPass> passes;
  std::vector<DraftStore> stores;
  std::vector<int> reduction_values;  // parallel to program->reductions
};

std::unique_ptr<RegionProgram> allocate_slots(Draft draft);

}  // namespace vkml::cpu
