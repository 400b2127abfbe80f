#include "tile/compiler.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <map>

#include "tile/aliasing.h"
#include "tile/loops.h"
#include "tile/polynomials.h"
#include "tile/simplify.h"
#include "tile/slot_allocation.h"
#include "tile/transfer.h"
#include "vkml/core/error.h"

namespace vkml::cpu {
namespace {

using dispatch::Kernel;
using dispatch::Level;
using ops::Instruction;
using ops::Opcode;
using ops::ScalarType;

// Values that a long row computes once and keeps for later passes may take this much.
constexpr std::int64_t kResidentBytes = 512 << 10;
constexpr int kNone = -1;

class Compiler {
 public:
  Compiler(const Kernel& kernel, const std::vector<dispatch::Buffer>& buffers, RegionPlan plan)
      : kernel_(kernel),
        code_(kernel.program.code),
        buffers_(buffers),
        levels_(dispatch::analyze_levels(kernel)),
        polynomials_(find_polynomials(kernel.program)) {
    draft_.program = std::make_unique<RegionProgram>();
    draft_.program->plan = std::move(plan);
    whole_rows_ = draft_.program->plan.holds_whole_rows();
    draft_.program->rows_are_splat =
        plan_().reduces && !plan_().vertical && plan_().tile_rows() == 1;
  }

  std::unique_ptr<RegionProgram> compile() {
    classify();
    const std::size_t passes = static_cast<std::size_t>(levels_.phases);
    draft_.program->passes.resize(passes);
    draft_.passes.resize(passes);
    values_.assign(code_.size(), kNone);
    expanded_.assign(code_.size(), kNone);
    computed_.assign(code_.size(), false);
    for (pass_ = 0; pass_ < passes; ++pass_) compile_pass();
    for (std::size_t k = 0; k < kernel_.stores.size(); ++k) {
      if (!is_element_store(k)) emit_row_store(k);
    }
    estimate_cost();
    return allocate_slots(std::move(draft_));
  }

 private:
  enum class Context : std::uint8_t { kUniform, kRow, kElement };

  const RegionPlan& plan_() const { return draft_.program->plan; }

  // ---- What varies along what.

  std::array<std::uint16_t, 3> operands(const Instruction& instruction) const {
    return {instruction.a, instruction.b, instruction.c};
  }

  bool is_uniform_source(const Instruction& instruction) const {
    switch (instruction.op) {
      case Opcode::kConstant:
      case Opcode::kScalar:
        return true;
      case Opcode::kLoad:
        return plan_().is_uniform(plan_().loads[static_cast<std::size_t>(instruction.imm)]);
      case Opcode::kIota:
        return plan_axis(instruction.imm) == kNone;
      default:
        return false;
    }
  }

  int plan_axis(std::int64_t original) const {
    for (std::size_t i = 0; i < plan_().original.size(); ++i) {
      if (plan_().original[i] == original) return static_cast<int>(i);
    }
    return kNone;
  }

  // As analyze_levels, but operands that broadcast along every axis are uniform.
  void classify() {
    context_.resize(code_.size());
    for (std::size_t i = 0; i < code_.size(); ++i) {
      const Instruction& instruction = code_[i];
      const int count = ops::operand_count(instruction.op);
      Context context = Context::kUniform;
      if (instruction.op == Opcode::kReduce) {
        context = Context::kRow;
      } else if (count > 0) {
        for (int k = 0; k < count; ++k) {
          context = std::max(context, context_[operands(instruction)[static_cast<std::size_t>(k)]]);
        }
      } else if (!is_uniform_source(instruction)) {
        context = levels_.level[i] == Level::kRow ? Context::kRow : Context::kElement;
      }
      context_[i] = context;
    }
  }

  // ---- Passes.

  // Stores that may overwrite a load wait for the last pass, after which nothing is read again.
  std::size_t pass_of_store(std::size_t k) const {
    if (overwrites_load(k)) return draft_.passes.size() - 1;
    return levels_.phase[kernel_.program.outputs[k]];
  }

  bool overwrites_load(std::size_t k) const {
    return std::any_of(kernel_.loads.begin(), kernel_.loads.end(), [&](const auto& load) {
      return may_overlap(buffers_, kernel_.stores[k].buffer, load.buffer);
    });
  }

  bool is_overwritten(std::size_t load) const {
    return std::any_of(kernel_.stores.begin(), kernel_.stores.end(), [&](const auto& store) {
      return may_overlap(buffers_, store.buffer, kernel_.loads[load].buffer);
    });
  }

  bool is_element_store(std::size_t k) const {
    if (!plan_().reduces) return true;
    const PlannedOperand& store = plan_().stores[k];
    for (std::size_t i = 0; i < store.strides.size(); ++i) {
      if (plan_().is_row[i] && plan_().extent[i] != 1 && store.strides[i] != 0) return true;
    }
    return context_[kernel_.program.outputs[k]] == Context::kElement;
  }

  void compile_pass() {
    if (!whole_rows_ && pass_ > 0) forget_unkept_values();
    std::fill(expanded_.begin(), expanded_.end(), kNone);
    needed_.assign(code_.size(), false);
    for (std::size_t i = 0; i < code_.size(); ++i) {
      if (is_reduction_of_this_pass(i)) need(code_[i].a);
    }
    for (std::size_t k = 0; k < kernel_.stores.size(); ++k) {
      if (is_element_store(k) && pass_of_store(k) == pass_) need(kernel_.program.outputs[k]);
    }
    for (std::size_t i = 0; i < code_.size(); ++i) {
      const auto r = static_cast<std::uint16_t>(i);
      const bool is_source = code_[i].op == Opcode::kReduce || code_[i].op == Opcode::kLoad;
      if (context_[i] == Context::kRow && !is_source && levels_.phase[i] == pass_ &&
          !polynomials_.absorbed[i]) {
        values_[i] = emit(r);
      }
      if (needed_[i] && values_[i] == kNone && code_[i].op != Opcode::kLoad) {
        values_[i] = emit(r);
        computed_[i] = true;
      }
      if (is_reduction_of_this_pass(i)) emit_reduction(r);
    }
    for (std::size_t k = 0; k < kernel_.stores.size(); ++k) {
      if (is_element_store(k) && pass_of_store(k) == pass_) emit_element_store(k);
    }
  }

  bool is_reduction_of_this_pass(std::size_t i) const {
    return code_[i].op == Opcode::kReduce && levels_.phase[code_[i].a] == pass_;
  }

  // Marks the element values that register r needs, down to values that are there already.
  void need(std::uint16_t r) {
    std::vector<std::uint16_t> stack{r};
    while (!stack.empty()) {
      const std::uint16_t at = stack.back();
      stack.pop_back();
      if (context_[at] != Context::kElement || needed_[at]) continue;
      if (computed_[at] && values_[at] == kNone && keep(at)) continue;
      needed_[at] = true;
      if (values_[at] != kNone) continue;
      for_each_operand(at, [&](std::uint16_t operand) { stack.push_back(operand); });
    }
  }

  template <typename Visit>
  void for_each_operand(std::uint16_t r, Visit visit) const {
    const Polynomial& polynomial = polynomials_.ending_at[r];
    if (!polynomial.coefficients.empty()) {
      visit(polynomial.x);
      visit(polynomial.start);
      return;
    }
    for (int k = 0; k < ops::operand_count(code_[r].op); ++k) {
      visit(operands(code_[r])[static_cast<std::size_t>(k)]);
    }
  }

  // A value of an earlier pass over long rows: kept for the whole row where memory allows, else
  // computed again. Whether it is kept.
  bool keep(std::uint16_t r) {
    Value& made = draft_.values[static_cast<std::size_t>(last_value_[r])];
    const std::int64_t bytes = plan_().row_length * plan_().tile_rows() * made.element_bytes;
    if (!made.is_resident) {
      const bool fits = !plan_().is_in_parts() && resident_bytes_ + bytes <= kResidentBytes;
      if (!made.is_step_result || !fits) return false;
      resident_bytes_ += bytes;
      made.is_resident = true;
    }
    values_[r] = last_value_[r];
    return true;
  }

  void forget_unkept_values() {
    for (std::size_t i = 0; i < code_.size(); ++i) {
      if (context_[i] != Context::kElement || values_[i] == kNone) continue;
      last_value_[static_cast<std::uint16_t>(i)] = values_[i];
      values_[i] = kNone;
    }
  }

  // ---- Steps.

  std::vector<DraftStep>& steps(Context context) {
    switch (context) {
      case Context::kUniform:
        return draft_.uniform_steps;
      case Context::kRow:
        return draft_.passes[pass_].row_steps;
      case Context::kElement:
        break;
    }
    return draft_.passes[pass_].element_steps;
  }

  int new_value(Context context, std::size_t element_bytes, Slot::Home home) {
    Value value;
    value.home = home;
    value.element_bytes = static_cast<std::uint8_t>(element_bytes);
    value.advances = context == Context::kElement ||
                     (context == Context::kRow && !draft_.program->rows_are_splat);
    value.is_row = context == Context::kRow;
    value.pass = pass_;
    draft_.values.push_back(value);
    return static_cast<int>(draft_.values.size()) - 1;
  }

  int add_step(Context context, Loop loop, std::size_t element_bytes, std::array<int, 3> sources,
               std::int64_t immediate) {
    const Slot::Home home =
        context == Context::kUniform ? Slot::Home::kUniform : Slot::Home::kRegister;
    const int result = new_value(context, element_bytes, home);
    draft_.values.back().is_step_result = true;
    steps(context).push_back({loop, result, sources, immediate});
    return result;
  }

  // Value of register r as an operand in a context; rows are repeated over their elements.
  int use(std::uint16_t r, Context context) {
    if (values_[r] == kNone) values_[r] = emit(r);
    const int value = values_[r];
    if (context != Context::kElement || context_[r] != Context::kRow ||
        draft_.program->rows_are_splat) {
      return value;
    }
    if (expanded_[r] == kNone) {
      const std::size_t bytes = register_bytes(code_[r].type);
      const Loop loop = plan_().vertical
                            ? (bytes == 4 ? expand_vertical<4> : expand_vertical<8>)
                            : (bytes == 4 ? expand_horizontal<4> : expand_horizontal<8>);
      expanded_[r] = add_step(Context::kElement, loop, bytes, {value, kNone, kNone}, 0);
    }
    return expanded_[r];
  }

  // The same as a tile in its own right, also where the value does not advance.
  int use_as_tile(std::uint16_t r, Context context) {
    const int value = use(r, context);
    if (advances(value) || context == Context::kUniform) return value;
    return copy(r, value, context);
  }

  int copy(std::uint16_t r, int value, Context context) {
    const Loop loop = advances(value) ? copy_loop(code_[r].type) : fill_loop(code_[r].type);
    return add_step(context, loop, register_bytes(code_[r].type), {value, kNone, kNone}, 0);
  }

  int emit(std::uint16_t r) {
    const Instruction& instruction = code_[r];
    const Context context = context_[r];
    switch (instruction.op) {
      case Opcode::kConstant:
        return emit_constant(instruction);
      case Opcode::kScalar:
        return emit_scalar(instruction);
      case Opcode::kLoad:
        return emit_load(instruction, context);
      case Opcode::kIota:
        return emit_iota(instruction, context);
      case Opcode::kCheckIndex: {
        const Loop loop = instruction.type == ScalarType::kI64 ? check_index<std::int64_t>
                                                               : check_index<std::int32_t>;
        return add_step(context, loop, register_bytes(instruction.type),
                        {use(instruction.a, context), use(instruction.b, context), kNone},
                        instruction.imm);
      }
      default:
        break;
    }
    const Polynomial& polynomial = polynomials_.ending_at[r];
    if (!polynomial.coefficients.empty()) return emit_polynomial(instruction, polynomial, context);
    return emit_arithmetic(instruction, context);
  }

  bool advances(int value) const { return draft_.values[static_cast<std::size_t>(value)].advances; }

  Pattern pattern_of(const std::array<int, 3>& sources, int count) const {
    Pattern tiles = 0;
    for (int k = 0; k < count; ++k) {
      if (advances(sources[static_cast<std::size_t>(k)])) tiles |= 1U << k;
    }
    return tiles;
  }

  int emit_arithmetic(const Instruction& instruction, Context context) {
    if (instruction.op == Opcode::kBitcast) return use(instruction.a, context);  // the same bits
    const int count = ops::operand_count(instruction.op);
    std::array<int, 3> sources{kNone, kNone, kNone};
    for (int k = 0; k < count; ++k) {
      const auto i = static_cast<std::size_t>(k);
      sources[i] = use(operands(instruction)[i], context);
    }
    Pattern tiles = pattern_of(sources, count);
    if (instruction.op == Opcode::kSelect && tiles != 0 && (tiles & 1U) == 0) {
      sources[0] = use_as_tile(instruction.a, context);
      tiles |= 1U;
    }
    const ScalarType source = code_[instruction.a].type;
    const Loop loop =
        arithmetic_loop(instruction.op, instruction.type, source, instruction.imm, tiles);
    if (loop == nullptr) {
      throw UnsupportedError(fmt::format("[cpu] no loop for {} of {}", ops::name_of(instruction.op),
                                         ops::name_of(instruction.type)));
    }
    return add_step(context, loop, register_bytes(instruction.type), sources, instruction.imm);
  }

  int emit_polynomial(const Instruction& instruction, const Polynomial& polynomial,
                      Context context) {
    int x = use(polynomial.x, context);
    const int start = use(polynomial.start, context);
    if (advances(start)) x = use_as_tile(polynomial.x, context);
    const std::size_t bytes = register_bytes(instruction.type);
    const int table = new_value(Context::kUniform, bytes, Slot::Home::kConstant);
    append_constants(polynomial.coefficients, bytes);
    return add_step(context, polynomial_loop(instruction.type, pattern_of({x, start, kNone}, 2)),
                    bytes, {x, start, table},
                    static_cast<std::int64_t>(polynomial.coefficients.size()));
  }

  int emit_constant(const Instruction& instruction) {
    auto bits = static_cast<std::uint64_t>(instruction.imm);
    if (instruction.type == ScalarType::kBool) bits = bits != 0 ? ~std::uint64_t{0} : 0;
    const std::size_t bytes = register_bytes(instruction.type);
    const auto [known, is_new] = constants_.try_emplace({bits, bytes}, 0);
    if (is_new) {
      known->second = new_value(Context::kUniform, bytes, Slot::Home::kConstant);
      append_constants(std::vector<std::uint64_t>(kLaneMultiple, bits), bytes);
    }
    return known->second;
  }

  // Data of the newest value, whose home is kConstant.
  void append_constants(const std::vector<std::uint64_t>& elements, std::size_t bytes) {
    std::vector<std::uint64_t>& memory = draft_.program->constants;
    draft_.values.back().offset = memory.size() * sizeof(std::uint64_t);
    const std::size_t begin = memory.size();
    memory.resize(begin + (elements.size() * bytes + 7) / 8);
    auto* target = reinterpret_cast<std::byte*>(memory.data() + begin);
    for (std::size_t i = 0; i < elements.size(); ++i) {
      const auto low = static_cast<std::uint32_t>(elements[i]);
      std::memcpy(target + i * bytes, bytes == 4 ? static_cast<const void*>(&low) : &elements[i],
                  bytes);
    }
  }

  int emit_scalar(const Instruction& instruction) {
    const std::size_t bytes = register_bytes(instruction.type);
    Loop loop = bytes == 4 ? load_scalar<4> : load_scalar<8>;
    if (instruction.type == ScalarType::kBool) loop = load_boolean_scalar;
    return add_step(Context::kUniform, loop, bytes, {kNone, kNone, kNone}, instruction.imm);
  }

  int emit_load(const Instruction& instruction, Context context) {
    const PlannedOperand& operand = plan_().loads[static_cast<std::size_t>(instruction.imm)];
    const std::size_t bytes = register_bytes(instruction.type);
    const std::array<int, 3> none{kNone, kNone, kNone};
    if (context == Context::kElement && is_direct(operand) && plan_().is_dense(operand)) {
      const int value = new_value(context, bytes, Slot::Home::kAimed);
      draft_.values.back().load = static_cast<int>(instruction.imm);
      steps(context).push_back({aim_load, value, none, instruction.imm});
      return value;
    }
    const bool splat = context == Context::kUniform ||
                       (context == Context::kRow && draft_.program->rows_are_splat);
    const int value =
        add_step(context, splat ? load_splat : load_window, bytes, none, instruction.imm);
    draft_.values.back().is_step_result = false;  // loading again is as cheap as keeping
    draft_.values.back().load = static_cast<int>(instruction.imm);
    return value;
  }

  // Whether memory of this type is a register as it is.
  static bool is_direct(const PlannedOperand& operand) {
    return operand.dtype != DType::kBool &&
           ops::storage_type(ops::compute_type(operand.dtype)) == operand.dtype;
  }

  int emit_iota(const Instruction& instruction, Context context) {
    const int axis = plan_axis(instruction.imm);
    if (axis == kNone) return emit_constant({Opcode::kConstant, instruction.type, 0, 0, 0, 0});
    const Loop loop =
        instruction.type == ScalarType::kI64 ? iota<std::int64_t> : iota<std::int32_t>;
    return add_step(context, loop, register_bytes(instruction.type), {kNone, kNone, kNone}, axis);
  }

  void emit_reduction(std::uint16_t r) {
    const Instruction& instruction = code_[r];
    const int source = use_as_tile(instruction.a, Context::kElement);
    Reduction reduction;
    reduction.kind = static_cast<ops::ReduceKind>(instruction.imm);
    reduction.type = code_[instruction.a].type;
    reduction.result = instruction.type;
    const Loop loop = reduce_loop(reduction, plan_().vertical);
    if (loop == nullptr) {
      throw UnsupportedError(fmt::format("[cpu] no reduction {} of {}",
                                         ops::name_of(reduction.kind),
                                         ops::name_of(reduction.type)));
    }
    values_[r] = new_value(Context::kRow, register_bytes(instruction.type), Slot::Home::kRegister);
    const auto index = static_cast<int>(draft_.program->reductions.size());
    draft_.program->reductions.push_back(reduction);
    draft_.reduction_values.push_back(values_[r]);
    draft_.program->passes[pass_].reductions.push_back(index);
    steps(Context::kElement).push_back({loop, kNone, {source, kNone, kNone}, index});
  }

  // ---- Stores.

  void emit_element_store(std::size_t k) {
    const std::uint16_t r = kernel_.program.outputs[k];
    const PlannedOperand& store = plan_().stores[k];
    int value = use_as_tile(r, Context::kElement);
    // Another store may overwrite the memory that this value lies in.
    const Value& stored = draft_.values[static_cast<std::size_t>(value)];
    if (stored.home == Slot::Home::kAimed &&
        is_overwritten(static_cast<std::size_t>(stored.load))) {
      value = copy(r, value, Context::kElement);
    }
    DraftStore draft{static_cast<int>(k), value, pass_, false, {}};
    for (std::size_t i = 0; i < kernel_.loads.size(); ++i) {
      if (may_overlap(buffers_, kernel_.stores[k].buffer, kernel_.loads[i].buffer)) {
        draft.overwritten_loads.push_back(static_cast<int>(i));
      }
    }
    draft.is_direct = is_direct(store) && plan_().is_dense(store);
    draft_.stores.push_back(std::move(draft));
  }

  void emit_row_store(std::size_t k) {
    pass_ = draft_.passes.size() - 1;
    const std::uint16_t r = kernel_.program.outputs[k];
    const int value =
        draft_.program->rows_are_splat ? use(r, Context::kRow) : use_as_tile(r, Context::kRow);
    draft_.passes[pass_].row_steps.push_back(
        {store_window, kNone, {value, kNone, kNone}, static_cast<std::int64_t>(k)});
  }

  // From measurements: an arithmetic loop in the first-level cache, per element and step.
  void estimate_cost() {
    constexpr double kStep = 0.08;
    double steps_per_element = 1;
    for (const DraftPass& pass : draft_.passes) {
      for (const DraftStep& step : pass.element_steps) {
        steps_per_element += step.loop == load_window ? 4 : 1;
      }
    }
    draft_.program->nanoseconds_per_element = kStep * steps_per_element;
  }

  const Kernel& kernel_;
  const std::vector<Instruction>& code_;
  const std::vector<dispatch::Buffer>& buffers_;
  const dispatch::ProgramLevels levels_;
  const Polynomials polynomials_;
  Draft draft_;
  bool whole_rows_ = true;
  std::size_t pass_ = 0;
  std::vector<Context> context_;             // by register
  std::vector<int> values_;                  // by register: its value now, or kNone
  std::vector<int> expanded_;                // by register: a row value as a tile, in this pass
  std::vector<bool> computed_;               // by register: in this pass or an earlier one
  std::vector<bool> needed_;                 // by register: in this pass
  std::map<std::uint16_t, int> last_value_;  // of an earlier pass
  std::map<std::pair<std::uint64_t, std::size_t>, int> constants_;
  std::int64_t resident_bytes_ = 0;
};

// Elements of a register, so that about as many as are alive at once stay in the first-level cache.
std::int64_t register_capacity(const Kernel& kernel) {
  constexpr std::int64_t kCacheBytes = 24 << 10;
  constexpr std::int64_t kLeast = 256;
  constexpr std::int64_t kMost = 1024;
  const auto& code = kernel.program.code;
  std::vector<std::size_t> last_use(code.size(), 0);
  for (std::size_t i = 0; i < code.size(); ++i) {
    const std::array<std::uint16_t, 3> operands{code[i].a, code[i].b, code[i].c};
    for (int k = 0; k < ops::operand_count(code[i].op); ++k) {
      last_use[operands[static_cast<std::size_t>(k)]] = i;
    }
  }
  for (const std::uint16_t output : kernel.program.outputs) last_use[output] = code.size();
  std::int64_t most = 1;
  for (std::size_t i = 0; i < code.size(); ++i) {
    std::int64_t bytes = 0;
    for (std::size_t j = 0; j <= i; ++j) {
      const bool is_tile = code[j].op != Opcode::kConstant && code[j].op != Opcode::kScalar;
      if (is_tile && last_use[j] > i)
        bytes += static_cast<std::int64_t>(register_bytes(code[j].type));
    }
    most = std::max(most, bytes + 4);
  }
  const auto fitting = static_cast<std::int64_t>(
      std::bit_floor(static_cast<std::uint64_t>(std::max<std::int64_t>(kCacheBytes / most, 1))));
  return std::clamp(fitting, kLeast, kMost);
}

}  // namespace

std::unique_ptr<RegionProgram> compile_region(const Kernel& kernel,
                                              const std::vector<dispatch::Buffer>& buffers) {
  Kernel simplified = kernel;
  simplified.program = simplify(kernel.program);
  return Compiler(simplified, buffers, plan_region(simplified, register_capacity(simplified)))
      .compile();
}

}  // namespace vkml::cpu
