#include "tile/region.h"

#include <algorithm>
#include <cstring>

#include "scratch.h"
#include "threads.h"
#include "tile/compiler.h"

namespace vkml::cpu {
namespace {

// Parts into which long rows are divided at most: a fixed tree, whatever the number of threads.
constexpr std::int64_t kMostParts = 64;

constexpr std::size_t align(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

// Running values of all reductions for one block of rows.
class States {
 public:
  static std::size_t bytes(const RegionProgram& program) {
    const auto rows = static_cast<std::size_t>(program.plan.tile_rows());
    return program.reductions.size() *
           (sizeof(ReductionState) + rows * (sizeof(ReductionValue) + sizeof(std::int64_t)) + 64);
  }
  States(const RegionProgram& program, std::byte* memory)
      : program_(program), states_(reinterpret_cast<ReductionState*>(memory)) {
    const auto rows = static_cast<std::size_t>(program.plan.tile_rows());
    const std::size_t count = program.reductions.size();
    auto* next = memory + align(count * sizeof(ReductionState));
    for (std::size_t i = 0; i < count; ++i) {
      states_[i].value = reinterpret_cast<ReductionValue*>(next);
      next += rows * sizeof(ReductionValue);
      states_[i].index = reinterpret_cast<std::int64_t*>(next);
      next += rows * sizeof(std::int64_t);
    }
  }
  const ReductionState* data() const { return states_; }
  void start_pass(const Pass& pass, std::int64_t rows) const {
    for (const int i : pass.reductions) start(reduction(i), state(i), rows);
  }
  void combine_pass(const Pass& pass, const States& later, std::int64_t rows) const {
    for (const int i : pass.reductions) combine(reduction(i), state(i), later.state(i), rows);
  }
  const ReductionState& state(int i) const { return states_[i]; }
  const Reduction& reduction(int i) const {
    return program_.reductions[static_cast<std::size_t>(i)];
  }

 private:
  const RegionProgram& program_;
  ReductionState* states_;
};

void run_steps(const std::vector<Step>& steps, const Frame& frame) {
  for (const Step& step : steps) step.loop(step, frame);
}

// One thread's registers, and the window it works on.
class Worker {
 public:
  Worker(const RegionProgram& program, const RunContext& run, std::byte* uniforms,
         ScratchPurpose purpose)
      : program_(program),
        plan_(program.plan),
        memory_(thread_scratch(purpose,
                               slots_offset(program) + program.slots.size() * sizeof(std::byte*))),
        states_(program, memory_ + align(program.register_bytes)) {
    frame_.memory = memory_;
    frame_.slots = reinterpret_cast<std::byte**>(memory_ + slots_offset(program));
    frame_.states = states_.data();
    frame_.program = &program;
    frame_.run = &run;
    place_slots(uniforms);
  }

  void run_uniform_steps() {
    frame_.count = kLaneMultiple;
    frame_.exact = 1;
    frame_.window = Window{};
    run_steps(program_.uniform_steps, frame_);
  }

  void set_block(std::int64_t block) {
    set_window(block, false);
    block_ = block;
    frame_.rows = 1;
    for (std::size_t i = 0; i < plan_.tile.size(); ++i) {
      if (!plan_.is_row[i]) frame_.rows *= frame_.window.size[i];
    }
  }

  void run_block(std::int64_t block) {
    set_block(block);
    for (const Pass& pass : program_.passes) {
      run_row_steps(pass);
      states_.start_pass(pass, frame_.rows);
      if (!pass.element_steps.empty()) run_tiles(pass, 0, plan_.tile_count(true));
      finish_pass(pass);
    }
  }

  void run_row_steps(const Pass& pass) {
    if (pass.row_steps.empty()) return;
    for (std::size_t i = 0; i < plan_.tile.size(); ++i) {
      if (!plan_.is_row[i]) continue;
      frame_.window.start[i] = 0;
      frame_.window.size[i] = 1;
    }
    frame_.exact = static_cast<std::size_t>(frame_.rows);
    frame_.count = round_up_to_lanes(frame_.exact);
    frame_.ordinal = block_;
    run_steps(pass.row_steps, frame_);
  }

  void run_tiles(const Pass& pass, std::int64_t begin, std::int64_t end) {
    const std::int64_t tiles = plan_.tile_count(true);
    for (std::int64_t tile = begin; tile < end; ++tile) {
      set_window(tile, true);
      frame_.exact = 1;
      for (const std::int64_t size : frame_.window.size) {
        frame_.exact *= static_cast<std::size_t>(size);
      }
      frame_.count = round_up_to_lanes(frame_.exact);
      frame_.length = static_cast<std::int64_t>(frame_.exact) / frame_.rows;
      frame_.row_offset = row_offset();
      frame_.ordinal = block_ * tiles + tile;
      for (const std::uint16_t slot : program_.resident) {
        frame_.slots[slot] = memory_ + program_.slots[slot].offset +
                             static_cast<std::size_t>(frame_.row_offset * frame_.rows) *
                                 program_.slots[slot].element_bytes;
      }
      run_steps(pass.element_steps, frame_);
    }
  }

  void finish_pass(const Pass& pass) {
    for (const int i : pass.reductions) {
      const Reduction& reduction = states_.reduction(i);
      finish(reduction, states_.state(i), frame_.rows, program_.rows_are_splat ? kLaneMultiple : 1,
             frame_.slots[reduction.slot]);
    }
  }

  /// Takes over the row values of another worker at the same block.
  void copy_rows(const Worker& other) {
    std::memcpy(memory_, other.memory_, program_.row_register_bytes);
  }
  void use_states(const States& states) { frame_.states = states.data(); }
  const States& states() const { return states_; }
  std::int64_t rows() const { return frame_.rows; }

 private:
  // Registers, then running values, then slots.
  static std::size_t slots_offset(const RegionProgram& program) {
    return align(program.register_bytes) + align(States::bytes(program));
  }

  void place_slots(std::byte* uniforms) {
    // Constants are only read; slots of one type hold both.
    auto* constants =
        const_cast<std::byte*>(reinterpret_cast<const std::byte*>(program_.constants.data()));
    for (std::size_t i = 0; i < program_.slots.size(); ++i) {
      const Slot& slot = program_.slots[i];
      std::byte* base = memory_;
      if (slot.home == Slot::Home::kConstant) base = constants;
      if (slot.home == Slot::Home::kUniform) base = uniforms;
      frame_.slots[i] = base + slot.offset;
    }
  }

  // The position of a tile along the row axes, or along the others.
  void set_window(std::int64_t index, bool of_rows) {
    for (std::size_t i = plan_.tile.size(); i-- > 0;) {
      if (plan_.is_row[i] != of_rows) continue;
      const std::int64_t tile = plan_.tile[i];
      std::int64_t at = index;
      if (tile < plan_.extent[i]) {
        const std::int64_t tiles = (plan_.extent[i] + tile - 1) / tile;
        at = index % tiles;
        index /= tiles;
      } else {
        at = 0;
      }
      frame_.window.start[i] = at * tile;
      frame_.window.size[i] = std::min(tile, plan_.extent[i] - at * tile);
    }
  }

  std::int64_t row_offset() const {
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < plan_.tile.size(); ++i) {
      if (plan_.is_row[i]) offset = offset * plan_.extent[i] + frame_.window.start[i];
    }
    return offset;
  }

  const RegionProgram& program_;
  const RegionPlan& plan_;
  std::byte* memory_;
  States states_;
  Frame frame_;
  std::int64_t block_ = 0;
};

// Few long rows: threads share the tiles of each, part by part.
void run_in_parts(const RegionProgram& program, const RunContext& run, std::byte* uniforms,
                  Worker& caller) {
  const std::int64_t tiles = program.plan.tile_count(true);
  const std::int64_t parts = std::min(kMostParts, tiles);
  const std::size_t state_bytes = align(States::bytes(program));
  std::vector<std::byte> memory(static_cast<std::size_t>(parts) * state_bytes + 64);
  auto* aligned =
      reinterpret_cast<std::byte*>(align(reinterpret_cast<std::uintptr_t>(memory.data())));
  const auto states_of = [&](std::int64_t part) {
    return States(program, aligned + static_cast<std::size_t>(part) * state_bytes);
  };
  const std::int64_t blocks = program.plan.tile_count(false);
  for (std::int64_t block = 0; block < blocks; ++block) {
    caller.set_block(block);
    for (const Pass& pass : program.passes) {
      caller.run_row_steps(pass);
      if (pass.element_steps.empty()) continue;
      parallel_shares(parts, true, [&](std::int64_t begin, std::int64_t end) {
        Worker worker(program, run, uniforms, ScratchPurpose::kWorker);
        worker.set_block(block);
        worker.copy_rows(caller);
        for (std::int64_t part = begin; part < end; ++part) {
          const States states = states_of(part);
          states.start_pass(pass, worker.rows());
          worker.use_states(states);
          worker.run_tiles(pass, tiles * part / parts, tiles * (part + 1) / parts);
        }
      });
      caller.states().start_pass(pass, caller.rows());
      for (std::int64_t part = 0; part < parts; ++part) {
        caller.states().combine_pass(pass, states_of(part), caller.rows());
      }
      caller.finish_pass(pass);
    }
  }
}

}  // namespace

Region::Region(const dispatch::Kernel& kernel, const std::vector<dispatch::Buffer>& buffers)
    : program_(compile_region(kernel, buffers)) {}

void Region::run(const RunContext& run) const {
  const RegionProgram& program = *program_;
  if (program.plan.rows == 0) return;
  alignas(64) std::byte small[2048];
  std::vector<std::byte> large;
  std::byte* uniforms = small;
  if (program.uniform_bytes > sizeof(small)) {
    large.resize(program.uniform_bytes + 64);
    uniforms = reinterpret_cast<std::byte*>(align(reinterpret_cast<std::uintptr_t>(large.data())));
  }
  Worker caller(program, run, uniforms, ScratchPurpose::kCaller);
  caller.run_uniform_steps();
  const std::int64_t elements =
      program.plan.rows * std::max<std::int64_t>(program.plan.row_length, 1);
  if (program.plan.is_in_parts()) {
    run_in_parts(program, run, uniforms, caller);
    return;
  }
  const std::int64_t blocks = program.plan.tile_count(false);
  const bool parallel =
      worth_threads(program.nanoseconds_per_element * static_cast<double>(elements));
  if (!parallel) {
    for (std::int64_t block = 0; block < blocks; ++block) caller.run_block(block);
    return;
  }
  parallel_shares(blocks, true, [&](std::int64_t begin, std::int64_t end) {
    Worker worker(program, run, uniforms, ScratchPurpose::kWorker);
    for (std::int64_t block = begin; block < end; ++block) worker.run_block(block);
  });
}

dispatch::Kernel with_core_as_load(const dispatch::Kernel& kernel, const dispatch::Operand& core) {
  dispatch::Kernel region = kernel;
  region.kind = ops::CoreKind::kNone;
  region.core_inputs.clear();
  const auto load = static_cast<std::int64_t>(region.loads.size());
  region.loads.push_back(core);
  for (ops::Instruction& instruction : region.program.code) {
    if (instruction.op != ops::Opcode::kCore) continue;
    instruction.op = ops::Opcode::kLoad;
    instruction.imm = load;
  }
  return region;
}

}  // namespace vkml::cpu
