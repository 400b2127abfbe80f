#include "tile/slot_allocation.h"

#include <algorithm>
#include <limits>

#include "tile/transfer.h"
#include "vkml/core/error.h"

namespace vkml::cpu {
namespace {

constexpr std::size_t kAlignment = 64;

std::size_t align(std::size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

class Allocation {
 public:
  explicit Allocation(Draft draft) : draft_(std::move(draft)), program_(*draft_.program) {}

  std::unique_ptr<RegionProgram> run() {
    for (const DraftStore& store : draft_.stores) place_store(store);
    if (draft_.values.size() > std::numeric_limits<std::uint16_t>::max()) {
      throw UnsupportedError("[cpu] a fused kernel has more than 65535 values");
    }
    program_.slots.resize(draft_.values.size());
    give_fixed_homes();
    share_registers();
    write_steps();
    return std::move(draft_.program);
  }

 private:
  Value& value(int index) { return draft_.values[static_cast<std::size_t>(index)]; }
  std::vector<DraftStep>& element_steps(std::size_t pass) {
    return draft_.passes[pass].element_steps;
  }

  // ---- Stores: straight from the step that makes the value, where nothing prevents it.

  void place_store(const DraftStore& store) {
    std::vector<DraftStep>& steps = element_steps(store.pass);
    const auto maker = std::find_if(steps.begin(), steps.end(), [&](const DraftStep& step) {
      return step.result == store.value;
    });
    const std::array<int, 3> none{-1, -1, -1};
    const std::array<int, 3> source{store.value, -1, -1};
    if (store.is_direct && can_write_elsewhere(store.value) && maker != steps.end() &&
        !is_read_after(store, static_cast<std::size_t>(maker - steps.begin()))) {
      value(store.value).home = Slot::Home::kAimed;
      steps.insert(maker, {aim_store, store.value, none, store.store});
      steps.push_back({finish_store, -1, source, store.store});
    } else {
      steps.push_back({store_window, -1, source, store.store});
    }
  }

  bool can_write_elsewhere(int index) {
    const Value& made = value(index);
    return made.is_step_result && !made.is_resident && made.home == Slot::Home::kRegister;
  }

  // Whether a step past `maker` reads memory that the store overwrites.
  bool is_read_after(const DraftStore& store, std::size_t maker) {
    if (store.overwritten_loads.empty()) return false;
    for (std::size_t pass = store.pass; pass < draft_.passes.size(); ++pass) {
      const std::vector<DraftStep>& steps = element_steps(pass);
      for (std::size_t i = pass == store.pass ? maker + 1 : 0; i < steps.size(); ++i) {
        if (reads_any(steps[i], store.overwritten_loads)) return true;
      }
    }
    return false;
  }

  bool reads_any(const DraftStep& step, const std::vector<int>& loads) {
    const auto is_among = [&](int load) {
      return std::find(loads.begin(), loads.end(), load) != loads.end();
    };
    if (step.loop == load_window && is_among(static_cast<int>(step.immediate))) return true;
    return std::any_of(step.sources.begin(), step.sources.end(), [&](int source) {
      return source >= 0 && value(source).home == Slot::Home::kAimed &&
             is_among(value(source).load);
    });
  }

  // ---- Memory.

  std::size_t take(std::size_t& total, std::size_t bytes) {
    const std::size_t offset = total;
    total += align(bytes);
    return offset;
  }

  std::size_t tile_bytes(const Value& v) const {
    const auto elements = static_cast<std::size_t>(program_.plan.tile_elements());
    return round_up_to_lanes(elements) * v.element_bytes;
  }

  // Row values come first: they are what one thread hands to the others.
  void give_fixed_homes() {
    const auto rows = static_cast<std::size_t>(program_.plan.tile_rows());
    for (std::size_t i = 0; i < draft_.values.size(); ++i) {
      if (!draft_.values[i].is_row) continue;
      give(i, Slot::Home::kRegister,
           take(program_.register_bytes, round_up_to_lanes(rows) * draft_.values[i].element_bytes));
    }
    program_.row_register_bytes = program_.register_bytes;
    for (std::size_t i = 0; i < draft_.values.size(); ++i) give_other_home(i);
  }

  void give_other_home(std::size_t i) {
    const Value& v = draft_.values[i];
    if (v.is_row) return;
    const RegionPlan& plan = program_.plan;
    switch (v.home) {
      case Slot::Home::kConstant:
        give(i, v.home, v.offset);
        return;
      case Slot::Home::kUniform:
        give(i, v.home, take(program_.uniform_bytes, kLaneMultiple * v.element_bytes));
        return;
      case Slot::Home::kAimed:
        give(i, v.home, take(program_.register_bytes, tile_bytes(v)));
        return;
      default:
        break;
    }
    if (!v.is_resident) return;
    const auto elements = static_cast<std::size_t>(plan.row_length * plan.tile_rows());
    give(i, Slot::Home::kResident,
         take(program_.register_bytes, (elements + 2 * kLaneMultiple) * v.element_bytes));
    program_.resident.push_back(static_cast<std::uint16_t>(i));
  }

  void give(std::size_t index, Slot::Home home, std::size_t offset) {
    program_.slots[index] = {home, draft_.values[index].element_bytes, offset};
  }

  bool is_shared(int index) {
    if (index < 0) return false;
    const Value& v = value(index);
    return !v.is_row && !v.is_resident && v.home == Slot::Home::kRegister;
  }

  // A register is free again after the last step that reads it; a step may write where it reads,
  // since loops load a vector before they store it and both have the same element size.
  void share_registers() {
    std::vector<const DraftStep*> order;
    for (const DraftPass& pass : draft_.passes) {
      for (const DraftStep& step : pass.element_steps) order.push_back(&step);
    }
    std::vector<std::size_t> last(draft_.values.size(), 0);
    for (std::size_t i = 0; i < order.size(); ++i) {
      for (const int source : order[i]->sources) {
        if (source >= 0) last[static_cast<std::size_t>(source)] = i;
      }
    }
    std::array<std::vector<std::size_t>, 2> free;  // offsets, of 4- and 8-byte registers
    std::vector<bool> given(draft_.values.size(), false);
    for (std::size_t i = 0; i < order.size(); ++i) {
      const DraftStep& step = *order[i];
      std::vector<int> dying;
      for (const int source : step.sources) {
        if (is_shared(source) && last[static_cast<std::size_t>(source)] == i &&
            std::find(dying.begin(), dying.end(), source) == dying.end()) {
          dying.push_back(source);
        }
      }
      for (const int source : dying) {
        free[value(source).element_bytes == 8].push_back(
            program_.slots[static_cast<std::size_t>(source)].offset);
      }
      if (!is_shared(step.result) || given[static_cast<std::size_t>(step.result)]) continue;
      std::vector<std::size_t>& pool = free[value(step.result).element_bytes == 8];
      if (pool.empty()) {
        pool.push_back(take(program_.register_bytes, tile_bytes(value(step.result))));
      }
      give(static_cast<std::size_t>(step.result), Slot::Home::kRegister, pool.back());
      given[static_cast<std::size_t>(step.result)] = true;
      pool.pop_back();
    }
  }

  // ---- Steps.

  void write_steps() {
    write(draft_.uniform_steps, program_.uniform_steps);
    for (std::size_t i = 0; i < draft_.passes.size(); ++i) {
      write(draft_.passes[i].row_steps, program_.passes[i].row_steps);
      write(draft_.passes[i].element_steps, program_.passes[i].element_steps);
    }
    for (std::size_t i = 0; i < draft_.reduction_values.size(); ++i) {
      program_.reductions[i].slot = static_cast<std::uint16_t>(draft_.reduction_values[i]);
    }
  }

  void write(const std::vector<DraftStep>& drafts, std::vector<Step>& steps) {
    for (const DraftStep& draft : drafts) {
      Step step;
      step.loop = draft.loop;
      step.immediate = draft.immediate;
      if (draft.result >= 0) step.result = static_cast<std::uint16_t>(draft.result);
      for (std::size_t k = 0; k < draft.sources.size(); ++k) {
        if (draft.sources[k] < 0) continue;
        step.source[k] = static_cast<std::uint16_t>(draft.sources[k]);
        step.mask[k] = value(draft.sources[k]).advances ? ~std::size_t{0} : 0;
      }
      steps.push_back(step);
    }
  }

  Draft draft_;
  RegionProgram& program_;
};

}  // namespace

std::unique_ptr<RegionProgram> allocate_slots(Draft draft) {
  return Allocation(std::move(draft)).run();
}

}  // namespace vkml::cpu
