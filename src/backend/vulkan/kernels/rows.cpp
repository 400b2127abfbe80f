// Row reduction: the lanes of a workgroup read a row, reduce it, and go on with the row's value:
// softmax, layer norm, their gradients, sums over any axes are this kernel with different programs.
//
// Phase by phase, values that are equal along the row are computed once, then each lane runs
// through its elements. A row that fits is held in registers and read once; a longer one is read
// again in each phase (from the cache). Short rows share a workgroup. Rows that are neighbours in
// memory go to neighbouring lanes, so that sums of columns read whole cache lines. Few long rows
// are cut into parts that reduce into scratch, which a second dispatch combines; what is stored at
// each element then has to be known in the first. Loops sum in blocks, so that rounding errors grow
// with the length of a block and the number of blocks, not their product. A row that begins at no
// multiple of a vector is read in vectors all the same, from the multiple before it (row_plan.h).
// Bound: memory, one read and one write of the row.
#include "kernels/rows.h"

#include <algorithm>
#include <bit>

#include "kernels/conversions.h"
#include "kernels/kernels.h"
#include "vkml/core/error.h"

namespace vkml::vulkan {

using dispatch::Level;
using ops::Opcode;
using spirv::Value;

namespace {

constexpr int kVector = static_cast<int>(kRowVector);
/// Turns of a loop that sum into one accumulator before it is added to the total.
constexpr std::uint32_t kBlockTurns = 64;

Touches touches_of(RowKernel::Stage stage, const RowPlan& plan) {
  Touches touches;
  touches.stores = stage != RowKernel::Stage::kPartials || plan.stores_in_pass;
  touches.writes_scratch = stage == RowKernel::Stage::kPartials;
  touches.reads_scratch = stage == RowKernel::Stage::kFinal;
  return touches;
}

/// Where turns are scarce, as many as are loaded in one; elsewhere loads alone have a latency.
std::uint32_t stores_in_a_turn(const DeviceTraits& traits, const RowPlan& plan) {
  return traits.is_software ? plan.unroll : 1;
}

const char* name_of(RowKernel::Stage stage) {
  constexpr const char* kNames[] = {"rows", "rows_partial", "rows_final"};
  return kNames[static_cast<int>(stage)];
}

}  // namespace

RowKernel::RowKernel(const Context& context, const RowSpaces& spaces, const RowPlan& plan,
                     Stage stage)
    : kernel_(context.kernel),
      spaces_(spaces),
      plan_(plan),
      stage_(stage),
      levels_(dispatch::analyze_levels(kernel_)),
      shader_(context, name_of(stage), {plan.layout.size(), 1, 1}, touches_of(stage, plan)),
      b_(shader_.builder()),
      lanes_(shader_, plan.layout) {}

void RowKernel::open_operands() {
  const auto extents = [&](const CollapsedSpace& space) {
    std::vector<Value> values(static_cast<std::size_t>(space.rank()));
    for (std::size_t axis = 1; axis < values.size(); ++axis) {
      values[axis] = shader_.parameter(space.extents[axis]);
    }
    return values;
  };
  row_extents_ = extents(spaces_.rows);
  column_extents_ = extents(spaces_.columns);
  row_count_ = shader_.parameter(spaces_.rows.count());
  column_count_ = shader_.parameter(spaces_.columns.count());
  for (std::size_t i = 0; i < spaces_.operands.size(); ++i) {
    if (i >= kernel_.loads.size()) {
      if (stage_ == Stage::kPartials && !plan_.stores_in_pass) break;
      (spaces_.varies_along_row(i) ? element_stores_ : row_stores_)
          .push_back(i - kernel_.loads.size());
    }
    Access access;
    access.elements = Elements(shader_, *spaces_.operands[i]);
    const auto& rows = spaces_.rows.strides[i];
    const auto& columns = spaces_.columns.strides[i];
    for (const std::int64_t stride : rows) {
      access.row_strides.push_back(shader_.stride_parameter(stride));
    }
    for (const std::int64_t stride : columns) {
      access.column_strides.push_back(shader_.stride_parameter(stride));
    }
    access.varies = spaces_.varies_along_row(i);
    access.is_dense = lies_in_vectors(spaces_, plan_, i);
    accesses_.push_back(std::move(access));
  }
  if (plan_.splits > 1) {
    split_count_ = shader_.parameter(plan_.splits);
    span_ = shader_.parameter(plan_.span);
    scratch_ = shader_.base_of(shader_.scratch_buffer(), 0);
  }
}

std::vector<Value> RowKernel::coordinates_of(const CollapsedSpace& space,
                                             const std::vector<Value>& extents, Value position) {
  std::vector<Value> coordinates(static_cast<std::size_t>(space.rank()));
  Value rest = position;
  for (std::size_t axis = coordinates.size(); axis-- > 1;) {
    const Value outer = rest / extents[axis];
    coordinates[axis] = rest - outer * extents[axis];
    rest = outer;
  }
  coordinates[0] = rest;
  return coordinates;
}

void RowKernel::place_rows() {
  Value group = b_.workgroup_id(1) * b_.workgroup_count(0) + b_.workgroup_id(0);
  begin_ = b_.u32(0);
  if (stage_ == Stage::kPartials) {
    split_ = group % split_count_;
    group = group / split_count_;
    begin_ = split_ * span_;
  }
  const Value local = b_.local_index();
  lane_ = plan_.layout.lane(local);
  row_ = group * plan_.layout.rows + plan_.layout.row(local);
  // Lanes without a row work on the last one, since all must reach the barriers.
  row_is_valid_ = less(row_, row_count_);
  row_ = b_.select(row_is_valid_, row_, row_count_ - 1);
  row_coordinates_ = coordinates_of(spaces_.rows, row_extents_, row_);
  for (Access& access : accesses_) {
    access.row_start = b_.u32(0);
    for (std::size_t axis = 0; axis < row_coordinates_.size(); ++axis) {
      access.row_start = access.row_start + row_coordinates_[axis] * access.row_strides[axis];
    }
  }
  if (plan_.is_shifted()) {
    lead_ = accesses_[static_cast<std::size_t>(plan_.lead)].row_start & (kVector - 1);
  }
}

Value RowKernel::element_index(const Access& access, Value position) {
  if (!access.varies) return access.row_start;
  const std::vector<Value> coordinates = coordinates_of(spaces_.columns, column_extents_, position);
  Value index = access.row_start;
  for (std::size_t axis = 0; axis < coordinates.size(); ++axis) {
    index = index + coordinates[axis] * access.column_strides[axis];
  }
  return index;
}

Value RowKernel::load(const Access& access, Value position, int components) {
  const Value index = element_index(access, position);
  if (components == 1 || access.column_strides.back().is(0)) return access.elements.load(index);
  if (access.is_dense) return access.elements.load4(index);
  std::vector<Value> lanes;
  for (std::uint32_t k = 0; k < kVector; ++k) {
    if (is_shifted(components)) {
      // What lies outside the row may lie outside the operand.
      const Value at = position + k;
      const Value inside = b_.select(less(at, column_count_), at, b_.u32(0));
      lanes.push_back(access.elements.load(element_index(access, inside)));
    } else {
      lanes.push_back(access.elements.load(index + access.column_strides.back() * k));
    }
  }
  return b_.compose(lanes);
}

void RowKernel::store(const Access& access, Value position, Value value) {
  const Value index = element_index(access, position);
  if (value.type.components == kVector) {
    access.elements.store4(index, value);
  } else {
    access.elements.store(index, value);
  }
}

void RowKernel::store_valid(const Access& access, const Chunk& chunk, Value value) {
  if (chunk.is_valid.type.components == 1) return store(access, chunk.position, value);
  const Value are_all =
      logical_and(b_.component(chunk.is_valid, 0), b_.component(chunk.is_valid, kVector - 1));
  b_.if_else(
      are_all, [&] { store(access, chunk.position, value); },
      [&] {
        for (int k = 0; k < kVector; ++k) {
          b_.if_then(b_.component(chunk.is_valid, k), [&] {
            store(access, chunk.position + static_cast<std::uint32_t>(k), b_.component(value, k));
          });
        }
      });
}

Value RowKernel::validity(Value place, int components) {
  if (!is_shifted(components)) return less(place, column_count_);
  std::array<Value, kVector> valid;
  for (std::uint32_t k = 0; k < kVector; ++k) {
    // A position below zero has wrapped round to a very large one.
    valid[k] = less(place - shift_ + k, column_count_);
  }
  return b_.compose(valid);
}

Value RowKernel::vector_from(Value first) {
  std::array<Value, kVector> lanes;
  for (std::uint32_t k = 0; k < kVector; ++k) lanes[k] = k == 0 ? first : first + k;
  return b_.compose(lanes);
}

RowKernel::Chunk RowKernel::make_chunk(Value first, Value is_valid, int components) {
  const Value position = is_shifted(components) ? first - shift_ : first;
  ProgramSources sources;
  sources.load = [this, position, components](int load) {
    return this->load(accesses_[static_cast<std::size_t>(load)], position, components);
  };
  sources.coordinate = [this, position, components](int axis) {
    const int place = spaces_.columns.place[static_cast<std::size_t>(axis)];
    if (place < 0) return b_.u32(0);
    const Value coordinate =
        coordinates_of(spaces_.columns, column_extents_, position)[static_cast<std::size_t>(place)];
    if (components == 1 || place + 1 != spaces_.columns.rank()) return coordinate;
    return vector_from(coordinate);
  };
  return {position, is_valid,
          std::make_unique<ProgramEmitter>(shader_, components, std::move(sources))};
}

std::vector<RowKernel::Chunk> RowKernel::hold_row(int components, std::uint32_t chunks) {
  std::vector<Chunk> held;
  const std::uint32_t step = plan_.layout.lanes * static_cast<std::uint32_t>(components);
  const bool is_whole =
      !is_shifted(components) && spaces_.columns.count() == std::int64_t{step} * chunks;
  for (std::uint32_t i = 0; i < chunks; ++i) {
    const Value position = lane_ * static_cast<std::uint32_t>(components) + i * step;
    const Value is_inside = is_whole ? b_.boolean(true) : less(position, end_);
    const Value is_valid = is_shifted(components) ? validity(position, components) : is_inside;
    held.push_back(make_chunk(b_.select(is_inside, position, b_.u32(0)), is_valid, components));
  }
  return held;
}

void RowKernel::emit_row_values(int phase) {
  for (std::size_t i = 0; i < kernel_.program.code.size(); ++i) {
    const bool belongs = levels_.level[i] != Level::kElement && levels_.phase[i] == phase;
    if (belongs && kernel_.program.code[i].op != Opcode::kReduce) row_program_->emit(i);
  }
}

void RowKernel::emit_elements(Chunk& chunk, const std::vector<std::size_t>& registers) {
  const auto& code = kernel_.program.code;
  std::vector<bool> needed(code.size(), false);
  for (const std::size_t reg : registers) needed[reg] = true;
  for (std::size_t i = code.size(); i-- > 0;) {
    if (!needed[i] || levels_.level[i] != Level::kElement || chunk.program->has(i)) continue;
    const std::uint16_t operands[] = {code[i].a, code[i].b, code[i].c};
    for (int k = 0; k < ops::operand_count(code[i].op); ++k) needed[operands[k]] = true;
  }
  for (std::size_t i = 0; i < code.size(); ++i) {
    if (!needed[i] || chunk.program->has(i)) continue;
    if (levels_.level[i] == Level::kElement) {
      chunk.program->emit(i);
    } else {
      chunk.program->set(i, row_program_->value(i));
    }
  }
}

std::vector<std::size_t> RowKernel::reductions_after(int phase) const {
  std::vector<std::size_t> registers;
  for (std::size_t i = 0; i < kernel_.program.code.size(); ++i) {
    const bool is_reduction = kernel_.program.code[i].op == Opcode::kReduce;
    if (is_reduction && levels_.phase[i] == phase + 1) registers.push_back(i);
  }
  return registers;
}

Partial RowKernel::of_chunk(const Reduction& reduction, std::size_t reduce_register, Chunk& chunk,
                            int components) {
  Value position = chunk.position;
  if (components == kVector) position = vector_from(position);
  const Value value = chunk.program->value(kernel_.program.code[reduce_register].a);
  const Partial partial = reduction.of_elements(value, position);
  return chunk.is_valid.is(1) ? partial : reduction.masked(chunk.is_valid, partial);
}

void RowKernel::accumulate(const std::vector<Reduction>& reductions,
                           const std::vector<std::size_t>& registers,
                           const std::vector<PartialVariable>& totals, Value first,
                           std::uint32_t count, int components) {
  std::vector<std::size_t> operands;
  for (const std::size_t reg : registers) operands.push_back(kernel_.program.code[reg].a);
  const std::uint32_t step = plan_.layout.lanes * static_cast<std::uint32_t>(components);
  std::vector<Chunk> chunks;
  for (std::uint32_t i = 0; i < count; ++i) {
    const Value place = first + i * step;
    const Value is_valid = is_shifted(components) ? validity(place, components) : b_.boolean(true);
    chunks.push_back(make_chunk(place, is_valid, components));
    emit_elements(chunks.back(), operands);
  }
  if (plan_.stores_in_pass && !element_stores_.empty()) {
    for (Chunk& chunk : chunks) store_chunk(chunk, components);
  }
  for (std::size_t k = 0; k < reductions.size(); ++k) {
    Partial sum = of_chunk(reductions[k], registers[k], chunks[0], components);
    for (std::uint32_t i = 1; i < count; ++i) {
      sum =
          reductions[k].combine(sum, of_chunk(reductions[k], registers[k], chunks[i], components));
    }
    totals[k].store(reductions[k].combine(totals[k].load(), sum));
  }
}

std::vector<Partial> RowKernel::loop_over_row(const std::vector<Reduction>& reductions,
                                              const std::vector<std::size_t>& registers,
                                              int components) {
  const std::uint32_t step = plan_.layout.lanes * static_cast<std::uint32_t>(components);
  std::vector<PartialVariable> totals, blocks;
  for (const Reduction& reduction : reductions) {
    totals.emplace_back(b_, reduction, components);
    blocks.emplace_back(b_, reduction, components);
  }
  const auto close_block = [&] {
    for (std::size_t k = 0; k < reductions.size(); ++k) {
      totals[k].store(reductions[k].combine(totals[k].load(), blocks[k].load()));
      blocks[k].store(reductions[k].identity(components));
    }
  };
  const Value start = begin_ + lane_ * static_cast<std::uint32_t>(components);
  const spirv::Variable position(b_, spirv::kInt32);
  position.store(start);
  const std::uint32_t big_step = step * plan_.unroll;
  b_.while_loop([&] { return less(position.load() + (big_step - step), end_); },
                [&] {
                  const Value block_end = position.load() + big_step * kBlockTurns;
                  b_.while_loop(
                      [&] {
                        const Value at = position.load();
                        return logical_and(less(at + (big_step - step), end_), less(at, block_end));
                      },
                      [&] {
                        accumulate(reductions, registers, blocks, position.load(), plan_.unroll,
                                   components);
                        position.store(position.load() + big_step);
                      });
                  close_block();
                });
  if (plan_.unroll > 1) {
    b_.for_range(position.load(), end_, b_.u32(step),
                 [&](Value at) { accumulate(reductions, registers, blocks, at, 1, components); });
    close_block();
  }
  std::vector<Partial> partials;
  for (std::size_t k = 0; k < reductions.size(); ++k) {
    partials.push_back(reductions[k].across_components(totals[k].load()));
  }
  return partials;
}

PartialSlot RowKernel::slot_of(Value part, std::size_t reduction) {
  const auto count = static_cast<std::uint32_t>(reductions_after(0).size());
  return {shader_, scratch_,
          (row_ * split_count_ + part) * count + static_cast<std::uint32_t>(reduction)};
}

void RowKernel::write_partials(const std::vector<Reduction>& reductions,
                               const std::vector<Partial>& partials) {
  const Value is_writer = logical_and(equal(lane_, 0), row_is_valid_);
  b_.if_then(is_writer, [&] {
    for (std::size_t k = 0; k < reductions.size(); ++k)
      slot_of(split_, k).store(reductions[k], partials[k]);
  });
}

std::vector<Partial> RowKernel::loop_over_scratch(const std::vector<Reduction>& reductions) {
  std::vector<PartialVariable> totals;
  for (const Reduction& reduction : reductions) totals.emplace_back(b_, reduction, 1);
  b_.for_range(lane_, split_count_, b_.u32(plan_.layout.lanes), [&](Value part) {
    for (std::size_t k = 0; k < reductions.size(); ++k) {
      const Partial partial = slot_of(part, k).load(reductions[k]);
      totals[k].store(reductions[k].combine(totals[k].load(), partial));
    }
  });
  std::vector<Partial> partials;
  for (const PartialVariable& total : totals) partials.push_back(total.load());
  return partials;
}

void RowKernel::reduce(const std::vector<std::size_t>& registers, std::vector<Chunk>& held,
                       int components) {
  const auto& code = kernel_.program.code;
  std::vector<Reduction> reductions;
  std::vector<std::size_t> operands;
  for (const std::size_t reg : registers) {
    reductions.emplace_back(shader_, code[reg], code[code[reg].a].type);
    operands.push_back(code[reg].a);
  }
  std::vector<Partial> partials;
  if (stage_ == Stage::kFinal) {
    partials = loop_over_scratch(reductions);
  } else if (held.empty()) {
    partials = loop_over_row(reductions, registers, components);
  } else {
    for (Chunk& chunk : held) emit_elements(chunk, operands);
    for (std::size_t k = 0; k < registers.size(); ++k) {
      Partial sum = of_chunk(reductions[k], registers[k], held[0], components);
      for (std::size_t i = 1; i < held.size(); ++i) {
        sum =
            reductions[k].combine(sum, of_chunk(reductions[k], registers[k], held[i], components));
      }
      partials.push_back(reductions[k].across_components(sum));
    }
  }
  partials = lanes_.reduce(reductions, std::move(partials), reductions_done_);
  reductions_done_ += registers.size();
  if (stage_ == Stage::kPartials) {
    write_partials(reductions, partials);
    return;
  }
  for (std::size_t k = 0; k < registers.size(); ++k) {
    row_program_->set(registers[k], reductions[k].result(partials[k]));
  }
}

void RowKernel::store_chunk(Chunk& chunk, int components) {
  std::vector<std::size_t> registers;
  for (const std::size_t i : element_stores_) registers.push_back(kernel_.program.outputs[i]);
  emit_elements(chunk, registers);
  const Value may_store = is_shifted(components) || chunk.is_valid.is(1)
                              ? row_is_valid_
                              : logical_and(chunk.is_valid, row_is_valid_);
  b_.if_then(may_store, [&] {
    shader_.guarded([&] {
      for (const std::size_t i : element_stores_) {
        store_valid(accesses_[kernel_.loads.size() + i], chunk,
                    chunk.program->value(kernel_.program.outputs[i]));
      }
    });
  });
}

void RowKernel::store_outputs(std::vector<Chunk>& held, int components) {
  if (!element_stores_.empty()) {
    for (Chunk& chunk : held) store_chunk(chunk, components);
    if (held.empty() && !plan_.stores_in_pass) {
      const std::uint32_t step = plan_.layout.lanes * static_cast<std::uint32_t>(components);
      const Value first = lane_ * static_cast<std::uint32_t>(components);
      const auto store_at = [&](Value at) {
        const Value is_valid = is_shifted(components) ? validity(at, components) : b_.boolean(true);
        Chunk chunk = make_chunk(at, is_valid, components);
        store_chunk(chunk, components);
      };
      const std::uint32_t count = stores_in_a_turn(shader_.traits(), plan_);
      // NOLINTNEXTLINE(clang-analyzer-cplusplus.NewDeleteLeaks): of a Chunk, which owns it.
      b_.for_range(first, end_, b_.u32(step * count), [&](Value at) {
        store_at(at);
        for (std::uint32_t i = 1; i < count; ++i) {
          const Value next = at + i * step;
          b_.if_then(less(next, end_), [&] { store_at(next); });
        }
      });
    }
  }
  b_.if_then(logical_and(equal(lane_, 0), row_is_valid_), [&] {
    shader_.guarded([&] {
      for (const std::size_t i : row_stores_) {
        const Access& access = accesses_[kernel_.loads.size() + i];
        access.elements.store(access.row_start, row_program_->value(kernel_.program.outputs[i]));
      }
    });
  });
}

void RowKernel::run(int components, std::uint32_t chunks) {
  reductions_done_ = 0;
  shift_ = is_shifted(components) ? lead_ : b_.u32(0);
  end_ = is_shifted(components) ? column_count_ + shift_ : column_count_;
  if (stage_ == Stage::kPartials) {
    const Value past = begin_ + span_;
    end_ = b_.select(less(past, end_), past, end_);
  }
  ProgramSources sources;
  sources.load = [this](int load) {
    const Access& access = accesses_[static_cast<std::size_t>(load)];
    return access.elements.load(access.row_start);
  };
  sources.coordinate = [this](int axis) {
    const int place = spaces_.rows.place[static_cast<std::size_t>(axis)];
    return place < 0 ? b_.u32(0) : row_coordinates_[static_cast<std::size_t>(place)];
  };
  row_program_ = std::make_unique<ProgramEmitter>(shader_, 1, std::move(sources));
  std::vector<Chunk> held = hold_row(components, chunks);
  for (int phase = 0; phase < levels_.phases; ++phase) {
    emit_row_values(phase);
    const std::vector<std::size_t> registers = reductions_after(phase);
    if (!registers.empty()) reduce(registers, held, components);
    if (stage_ == Stage::kPartials) return;
  }
  store_outputs(held, components);
}

Dispatch RowKernel::generate() {
  open_operands();
  place_rows();
  Value aligned = b_.boolean(true);
  for (const Access& access : accesses_) {
    if (access.varies && access.is_dense) {
      aligned = logical_and(aligned, access.elements.is_aligned());
    }
  }
  if (plan_.vectors && stage_ != Stage::kFinal) {
    b_.if_else(
        aligned, [&] { run(kVector, plan_.chunks); }, [&] { run(1, 0); });
  } else {
    run(1, plan_.chunks);
  }
  std::int64_t groups = (spaces_.rows.count() + plan_.layout.rows - 1) / plan_.layout.rows;
  if (stage_ == Stage::kPartials) groups *= plan_.splits;
  return shader_.finish(shader_.groups_for(groups));
}

namespace {

/// Loop turns of one invocation where its elements come one by one: whether they come in vectors is
/// decided when the kernel runs.
std::int64_t turns_of(const dispatch::Kernel& kernel, const RowSpaces& spaces,
                      const RowPlan& plan) {
  const bool is_split = plan.splits > 1;
  bool stores_again = false;
  for (std::size_t i = kernel.loads.size(); i < spaces.operands.size(); ++i) {
    stores_again |= !plan.stores_in_pass && spaces.varies_along_row(i);
  }
  const std::int64_t reductions = is_split ? 1 : dispatch::analyze_levels(kernel).phases - 1;
  const std::int64_t columns = is_split ? plan.span : spaces.columns.count();
  const std::int64_t turns = columns / (std::int64_t{plan.layout.lanes} * plan.unroll) + 1;
  return reductions * (turns + turns / kBlockTurns + 1 + plan.unroll) + (stores_again ? turns : 0);
}

}  // namespace

std::vector<Dispatch> generate_rows(const Context& context) {
  const RowSpaces spaces = row_spaces(context.kernel);
  RowPlan plan = plan_rows(context.kernel, spaces, context.traits);
  if (context.kernel.scratch < 0) plan.splits = 1;
  require_turns(context, turns_of(context.kernel, spaces, plan));
  if (plan.splits < 2) {
    return {RowKernel(context, spaces, plan, RowKernel::Stage::kWhole).generate()};
  }
  RowPlan final_plan = plan;
  final_plan.vectors = false;
  final_plan.layout = {};
  final_plan.layout.lanes = std::bit_ceil(std::min<std::uint32_t>(plan.splits, 128));
  return {RowKernel(context, spaces, plan, RowKernel::Stage::kPartials).generate(),
          RowKernel(context, spaces, final_plan, RowKernel::Stage::kFinal).generate()};
}

}  // namespace vkml::vulkan
