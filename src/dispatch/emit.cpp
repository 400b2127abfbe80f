#include "emit.h"

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "vkml/core/error.h"
#include "vkml/ops/core_kind.h"
#include "vkml/ops/elementwise.h"

namespace vkml::dispatch {
namespace {

using graph::Family;
using graph::Node;
using ops::Expr;
using ops::Instruction;
using ops::Opcode;
using ops::ScalarType;

std::size_t at(int index) { return static_cast<std::size_t>(index); }

bool operator==(const Operand& a, const Operand& b) {
  return a.buffer == b.buffer && a.offset == b.offset && a.strides == b.strides &&
         a.dtype == b.dtype;
}

class Emitter {
 public:
  explicit Emitter(const PlanContext& context) : context_(context), schedule_(context.schedule) {}

  Kernel group(const Group& group) {
    choose_axes(group);
    for (std::size_t i = 0; i < group.members.size(); ++i) {
      maps_ = &group.maps[i];
      if (group.members[i] != group.companion) member(group.members[i]);
    }
    for (std::size_t i = 0; i < group.members.size(); ++i) {
      const int position = group.members[i];
      kernel_.nodes.push_back(position);
      if (!context_.fusion.stored[at(position)]) continue;
      if (position == group.companion) {
        kernel_.core_stores.push_back(dense_operand(position));
      } else {
        store(position, group.maps[i]);
      }
    }
    return finish();
  }

  Kernel copy(int source, const Shape& reader, int buffer, DType dtype, std::int64_t offset,
              const Extents& strides) {
    kernel_.space = padded(reader);
    AxisMap map{-1, -1, -1, -1};
    for (int axis = 0; axis < kMaxDims; ++axis) {
      order_[at(axis)] = axis;
      if (kernel_.space[at(axis)] != 1) map[at(axis)] = axis;
    }
    maps_ = &map;
    const Expr value = read(source, reader, map);
    const Expr stored = convert_to(value, dtype);
    kernel_.stores.push_back({buffer, dtype, offset, kernel_.space, strides});
    outputs_.push_back(stored.reg());
    return finish();
  }

 private:
  /// The kernel's axes: kept ones first, reduced ones last, each in the order of the space.
  void choose_axes(const Group& group) {
    int next = 0;
    int reduced = 0;
    Extents space{1, 1, 1, 1};
    for (const bool row : {false, true}) {
      for (int axis = 0; axis < kMaxDims; ++axis) {
        if ((((group.reduced >> axis) & 1u) != 0) != row) continue;
        space[at(next)] = group.space[at(axis)];
        order_[at(axis)] = next++;
        reduced += row ? 1 : 0;
      }
    }
    kernel_.space = space;
    kernel_.reduce_dims = reduced;
    space_ = group.space;
  }

  void member(int position) {
    const Node& node = *schedule_[position].node;
    switch (node.family()) {
      case Family::kElementwise:
        values_.emplace(position, elementwise(position, node));
        return;
      case Family::kCast: {
        const Expr x = read(schedule_.sources_of(position)[0], node.shape(), *maps_);
        values_.emplace(position, convert_to(x, node.dtype()));
        return;
      }
      case Family::kCopy:
        values_.emplace(position, read(schedule_.sources_of(position)[0], node.shape(), *maps_));
        return;
      case Family::kAssign:
        values_.emplace(position, read(read_sources(schedule_, position)[0], node.shape(), *maps_));
        return;
      case Family::kCheck:
        values_.emplace(position, check(position, node));
        return;
      case Family::kReduce:
        values_.emplace(position, reduce(position, node));
        return;
      case Family::kIota: {
        Access access;
        access.root = position;
        access.strides = dense_strides(padded(node.shape()));
        values_.emplace(position, coordinates(access, node.shape(), *maps_));
        return;
      }
      case Family::kScalar:
        values_.emplace(position, scalar(position));
        return;
      case Family::kCore:
        values_.emplace(position, core(position, node));
        return;
      default:
        throw InternalError("no program for " + std::string(node.op().name));
    }
  }

  Expr elementwise(int position, const Node& node) {
    const ops::ScalarProgram& program = ops::program_of(node.op(), ops::operand_dtype(node));
    std::vector<Expr> arguments;
    for (const int source : schedule_.sources_of(position)) {
      arguments.push_back(read(source, node.shape(), *maps_));
    }
    std::vector<std::uint16_t> registers;
    for (const Instruction& given : program.code) {
      if (given.op == Opcode::kArgument) {
        registers.push_back(arguments[static_cast<std::size_t>(given.imm)].reg());
        continue;
      }
      Instruction linked = given;
      const int operands = ops::operand_count(given.op);
      if (operands > 0) linked.a = registers[given.a];
      if (operands > 1) linked.b = registers[given.b];
      if (operands > 2) linked.c = registers[given.c];
      registers.push_back(builder_.emit(linked));
    }
    return ops::narrow(Expr(&builder_, registers[program.outputs[0]]), node.dtype());
  }

  /// A place where an index may be found bad.
  int add_site(const Node& node, std::int64_t extent) {
    if (!ops::checks_indices(node.op())) {
      throw InternalError(std::string(node.op().name) + " is not listed among what checks indices");
    }
    return context_.add_site(node.op(), extent);
  }

  /// A value that passes stands as the index 0 of an axis of extent 1, another as its own bits.
  Expr check_values(const Expr& x, const Node& node) {
    const ops::ValueInterval& interval = ops::interval_of(ops::value_check_of(node.op()));
    const Expr above = interval.is_open ? x > 0.0 : x >= 0.0;
    const Expr below = x <= (interval.is_unit ? 1.0 : double{std::numeric_limits<float>::max()});
    const ops::ScalarType word = ops::ScalarType::kI32;
    const Expr bits = ops::bitcast(x, word);
    const Expr minus_zero = x.bits_of(word, std::numeric_limits<std::int32_t>::min());
    const Expr found = ops::select(bits == 0, minus_zero, bits);
    const Expr index = ops::select(above & below, x.bits_of(word, 0), found);
    const Expr checked =
        index.emit(Opcode::kCheckIndex, word, x.bits_of(word, 1), add_site(node, 1));
    // 0 whatever it has found: what needs the value needs the check.
    return ops::bitcast(bits | checked, x.type());
  }

  Expr check(int position, const Node& node) {
    const Expr x = read(schedule_.sources_of(position)[0], node.shape(), *maps_);
    if (ops::value_check_of(node.op()) != ops::ValueCheck::kNone) return check_values(x, node);
    const std::int64_t extent = node.attributes()[0];
    const Expr exempt = x == x.bits_of(x.type(), node.attributes()[1]);
    const Expr index = ops::select(exempt, x.constant(0), x);
    const int site = add_site(node, extent);
    const Expr checked =
        index.emit(Opcode::kCheckIndex, x.type(), x.bits_of(x.type(), extent), site);
    return ops::select(exempt, x, checked);
  }

  Expr reduce(int position, const Node& node) {
    const Shape& source_shape = node.source(0)->shape();
    AxisMap map;
    if (!match_axes(padded(source_shape), space_, (1u << kMaxDims) - 1, map)) {
      throw InternalError("a reduction left its kernel's space");
    }
    const Expr x = read(schedule_.sources_of(position)[0], source_shape, map);
    const Expr total = x.emit(Opcode::kReduce, ops::compute_type(node.dtype()), node.op().id);
    return ops::narrow(total, node.dtype());
  }

  Expr core(int position, const Node& node) {
    kernel_.kind = ops::core_of(node.op());
    kernel_.attributes = core_attributes(node);
    if (ops::checks_indices(kernel_.kind)) {
      const int axis = static_cast<int>(node.attributes()[0]);
      kernel_.core_site = add_site(node, node.source(0)->shape()[axis]);
    }
    const int companion = companion_of(schedule_, position);
    for (const int source : schedule_.sources_of(position)) {
      if (source != companion) kernel_.core_inputs.push_back(core_operand(source));
    }
    if (kernel_.kind == ops::CoreKind::kMatmul) broadcast_batches();
    kernel_.core_type = ops::compute_type(node.dtype());
    const Expr value(&builder_, builder_.emit({Opcode::kCore, kernel_.core_type, 0, 0, 0, 0}));
    return ops::narrow(value, node.dtype());
  }

  /// The node's attributes; an axis is that of the padded rank.
  graph::Attributes core_attributes(const Node& node) const {
    const graph::Attributes& given = node.attributes();
    switch (kernel_.kind) {
      case ops::CoreKind::kGather:
      case ops::CoreKind::kScatter:
      case ops::CoreKind::kScan:
      case ops::CoreKind::kArgSort: {
        graph::Attributes padded;
        padded.push_back(given[0] + kMaxDims - node.source(0)->shape().rank());
        for (const std::int64_t value : given.span().subspan(1)) padded.push_back(value);
        return padded;
      }
      default:
        return given;
    }
  }

  Operand core_operand(int source) {
    const Node& node = *schedule_[source].node;
    const Access access = access_of(schedule_, source, node.shape());
    const Location location = context_.locate(access.root);
    Operand operand;
    operand.buffer = location.buffer;
    operand.dtype = node.dtype();
    operand.offset = location.offset + access.offset;
    operand.extents = padded(node.shape());
    operand.strides = access.strides;
    return operand;
  }

  /// Batch axes of a product's operands read with stride 0 where they repeat.
  void broadcast_batches() {
    for (Operand& operand : kernel_.core_inputs) {
      for (int axis = 0; axis < 2; ++axis) operand.extents[at(axis)] = kernel_.space[at(axis)];
    }
  }

  Expr scalar(int position) {
    const ScalarType type = ops::compute_type(schedule_[position].node->dtype());
    return {&builder_,
            builder_.emit({Opcode::kScalar, type, 0, 0, 0, context_.scalar_of(position)})};
  }

  /// The coordinate that an iota holds where the access reads it: a sum over the reader's axes.
  Expr coordinates(const Access& access, const Shape& reader, const AxisMap& map) {
    const Node& node = *schedule_[access.root].node;
    const ScalarType type = ops::compute_type(node.dtype());
    const Extents shape = padded(node.shape());
    const Extents strides = dense_strides(shape);
    const int own = static_cast<int>(node.attributes()[0]) + kMaxDims - node.shape().rank();
    const std::int64_t unit = std::max<std::int64_t>(strides[at(own)], 1);
    const auto along = [&](std::int64_t distance) { return (distance / unit) % shape[at(own)]; };
    const Extents extents = padded(reader);
    const std::int64_t start = shape[at(own)] > 1 ? along(access.offset) : 0;
    Expr sum(&builder_, builder_.emit({Opcode::kConstant, type, 0, 0, 0, start}));
    for (int axis = 0; axis < kMaxDims; ++axis) {
      const std::int64_t stride = access.strides[at(axis)];
      if (stride == 0 || extents[at(axis)] == 1 || shape[at(own)] <= 1) continue;
      const std::int64_t step = stride < 0 ? -along(-stride) : along(stride);
      if (step == 0) continue;
      const int target = order_[at(map[at(axis)])];
      const Expr coordinate(&builder_, builder_.emit({Opcode::kIota, type, 0, 0, 0, target}));
      sum = sum + coordinate * coordinate.bits_of(type, step);
    }
    return sum;
  }

  /// `source` at the elements of `reader`, whose axes `map` leads into the space.
  Expr read(int source, const Shape& reader, const AxisMap& map) {
    const Access access = access_of(schedule_, source, reader);
    const auto known = values_.find(access.root);
    if (known != values_.end()) return known->second;
    const Node& node = *schedule_[source].node;
    if (is_inline(schedule_, access.root) && inlines_at(schedule_, access, reader)) {
      const bool number = schedule_[access.root].role == Role::kScalar;
      return number ? scalar(access.root) : coordinates(access, reader, map);
    }
    const Location location = context_.locate(access.root);
    Operand operand;
    operand.buffer = location.buffer;
    operand.dtype = node.dtype();
    operand.offset = location.offset + access.offset;
    operand.extents = kernel_.space;
    for (int axis = 0; axis < kMaxDims; ++axis) {
      if (map[at(axis)] >= 0)
        operand.strides[at(order_[at(map[at(axis)])])] = access.strides[at(axis)];
    }
    const auto same =
        std::ranges::find_if(kernel_.loads, [&](const Operand& o) { return o == operand; });
    const auto index = same - kernel_.loads.begin();
    if (same == kernel_.loads.end()) kernel_.loads.push_back(operand);
    return {&builder_,
            builder_.emit({Opcode::kLoad, ops::compute_type(node.dtype()), 0, 0, 0, index})};
  }

  Expr convert_to(const Expr& x, DType dtype) {
    Expr value = x;
    if (dtype == DType::kU8 && ops::is_floating(x.type())) {
      // Integers wrap, floats saturate; a NaN passes, and becomes 0.
      value = ops::max_number(x.constant(0), ops::min_number(x.constant(255), x));
    }
    return ops::narrow(ops::convert(value, ops::compute_type(dtype)), dtype);
  }

  Operand dense_operand(int position) {
    const Node& node = *schedule_[position].node;
    const Location location = context_.locate(position);
    return {location.buffer, node.dtype(), location.offset, padded(node.shape()), location.strides};
  }

  void store(int position, const AxisMap& map) {
    const Node& node = *schedule_[position].node;
    const Location location = context_.locate(position);
    Operand operand;
    operand.buffer = location.buffer;
    operand.dtype = node.dtype();
    operand.offset = location.offset;
    operand.extents = kernel_.space;
    for (int axis = 0; axis < kMaxDims; ++axis) {
      if (map[at(axis)] >= 0)
        operand.strides[at(order_[at(map[at(axis)])])] = location.strides[at(axis)];
    }
    kernel_.stores.push_back(operand);
    outputs_.push_back(values_.at(position).reg());
  }

  /// Drops instructions that no store needs.
  Kernel finish() {
    const std::vector<Instruction>& code = builder_.code();
    std::vector<bool> live(code.size());
    for (const std::uint16_t output : outputs_) live[output] = true;
    for (std::size_t i = code.size(); i-- > 0;) {
      // Checks act even where their value is unused.
      if (code[i].op == Opcode::kCheckIndex) live[i] = true;
      if (!live[i]) continue;
      const int operands = ops::operand_count(code[i].op);
      if (operands > 0) live[code[i].a] = true;
      if (operands > 1) live[code[i].b] = true;
      if (operands > 2) live[code[i].c] = true;
    }
    std::vector<std::uint16_t> renamed(code.size());
    std::vector<std::int64_t> load_index(kernel_.loads.size(), -1);
    std::vector<Operand> loads;
    for (std::size_t i = 0; i < code.size(); ++i) {
      if (!live[i]) continue;
      Instruction instruction = code[i];
      instruction.a = renamed[instruction.a];
      instruction.b = renamed[instruction.b];
      instruction.c = renamed[instruction.c];
      if (instruction.op == Opcode::kLoad) {
        std::int64_t& index = load_index[static_cast<std::size_t>(instruction.imm)];
        if (index < 0) {
          index = static_cast<std::int64_t>(loads.size());
          loads.push_back(kernel_.loads[static_cast<std::size_t>(instruction.imm)]);
        }
        instruction.imm = index;
      }
      renamed[i] = static_cast<std::uint16_t>(kernel_.program.code.size());
      kernel_.program.code.push_back(instruction);
    }
    kernel_.loads = std::move(loads);
    for (const std::uint16_t output : outputs_) kernel_.program.outputs.push_back(renamed[output]);
    return std::move(kernel_);
  }

  const PlanContext& context_;
  const Schedule& schedule_;
  ops::ProgramBuilder builder_;
  Kernel kernel_;
  Extents space_{1, 1, 1, 1};
  AxisMap order_{0, 1, 2, 3};  // axis of the group's space -> axis of the kernel
  const AxisMap* maps_ = nullptr;
  std::unordered_map<int, Expr> values_;
  std::vector<std::uint16_t> outputs_;
};

}  // namespace

Kernel emit_group(const PlanContext& context, const Group& group) {
  return Emitter(context).group(group);
}

Kernel emit_copy(const PlanContext& context, int source, const Shape& reader, int target_buffer,
                 DType dtype, std::int64_t offset, const Extents& strides) {
  return Emitter(context).copy(source, reader, target_buffer, dtype, offset, strides);
}

Kernel copy_kernel(const Operand& from, const Operand& to) {
  Kernel kernel;
  kernel.space = to.extents;
  kernel.loads = {from};
  kernel.stores = {to};
  kernel.program.code = {{Opcode::kLoad, ops::compute_type(to.dtype), 0, 0, 0, 0}};
  kernel.program.outputs = {0};
  return kernel;
}

}  // namespace vkml::dispatch
