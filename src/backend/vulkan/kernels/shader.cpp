#include "kernels/shader.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "vkml/core/error.h"

namespace vkml::vulkan {

using spirv::Id;
using spirv::Type;
using spirv::Value;
using spv::Op;

namespace {

/// A donated block holds a tensor's old value, which a failed submission leaves alone: one that
/// fails itself, or that reads what an earlier one failed to write. Fresh blocks have nothing to
/// lose.
bool needs_guard(const Context& context) {
  return std::any_of(context.kernel.stores.begin(), context.kernel.stores.end(),
                     [&](const dispatch::Operand& store) {
                       return context.graph.buffers[static_cast<std::size_t>(store.buffer)].donor >=
                              0;
                     });
}

bool has_negative_stride(const dispatch::Kernel& kernel) {
  const auto is_reversed = [](const dispatch::Operand& operand) {
    return std::any_of(operand.strides.begin(), operand.strides.end(),
                       [](std::int64_t stride) { return stride < 0; });
  };
  return std::any_of(kernel.loads.begin(), kernel.loads.end(), is_reversed) ||
         std::any_of(kernel.stores.begin(), kernel.stores.end(), is_reversed) ||
         std::any_of(kernel.core_inputs.begin(), kernel.core_inputs.end(), is_reversed);
}

bool uses(const dispatch::Kernel& kernel, ops::Opcode op) {
  return std::any_of(kernel.program.code.begin(), kernel.program.code.end(),
                     [&](const ops::Instruction& instruction) { return instruction.op == op; });
}

}  // namespace

void require_turns(const Context& context, std::int64_t turns) {
  if (!context.traits.is_software || turns <= kSoftwareTurns) return;
  const ops::CoreKind kind = context.kernel.kind;
  throw UnsupportedError(fmt::format(
      "[{}] {} loop turns for one element are more than the {} that a software Vulkan "
      "driver executes. Compute it on the CPU: vkml.tensor(t.numpy(), device=vkml.cpu)",
      kind == ops::CoreKind::kNone ? "reduction" : name_of(kind), turns, kSoftwareTurns));
}

Shader::Shader(const Context& context, std::string name, std::array<std::uint32_t, 3> local_size,
               Touches touches)
    : context_(context), name_(std::move(name)), local_size_(local_size) {
  const dispatch::Kernel& kernel = context.kernel;
  if (traits().use_addresses) builder_.module().use_physical_addresses();
  if (traits().has_half_conversions) builder_.allow_half_conversions();
  if (traits().keeps_special_values) builder_.keep_special_values();
  const auto declare = [&](const std::vector<dispatch::Operand>& operands, bool writes) {
    for (const dispatch::Operand& operand : operands) {
      add_buffer({BufferUse::Kind::kPlanBuffer, operand.buffer,
                  static_cast<std::uint32_t>(size_of(operand.dtype)), !writes, writes});
    }
  };
  if (touches.core_inputs) declare(kernel.core_inputs, false);
  if (touches.loads) declare(kernel.loads, false);
  if (touches.stores) declare(kernel.stores, true);
  if (touches.stores) declare(kernel.core_stores, true);
  if (touches.reads_scratch || touches.writes_scratch) {
    scratch_ =
        add_buffer({BufferUse::Kind::kPlanBuffer, kernel.scratch, touches.scratch_element_bytes,
                    touches.reads_scratch, touches.writes_scratch});
  }
  if (uses(kernel, ops::Opcode::kScalar)) {
    scalars_ = add_buffer({BufferUse::Kind::kScalars, -1, 4, true, false});
  }
  const bool guards = touches.stores && needs_guard(context);
  const std::vector<int> sites = dispatch::sites_of(kernel);
  if (guards || !sites.empty()) {
    status_ = add_buffer({BufferUse::Kind::kStatus, -1, 4, true, !sites.empty()});
  }
  if (bases_bytes() > traits().max_push_bytes) {
    throw InternalError(fmt::format(
        "[vulkan] {} buffers of a kernel need {} bytes of push constants, the device has {}",
        buffers_.size(), bases_bytes(), traits().max_push_bytes));
  }
  push_variable_ = builder_.module().new_id();
  if (guards) {
    const Base status = base_of(status_, 0);
    may_write_ = equal(load(status, kWord, status.offset), 0);
  }
  // Here, so that the values reach every block.
  for (const ops::Instruction& instruction : kernel.program.code) {
    const auto index = static_cast<int>(instruction.imm);
    if (instruction.op == ops::Opcode::kScalar && !scalar_values_.contains(index)) {
      scalar_values_[index] = load_scalar(index);
    }
  }
  for (const int site : sites) site_codes_[site] = parameter(site + 1);
}

int Shader::add_buffer(const BufferUse& use) {
  if (has_parameters_) throw InternalError("[vulkan] a buffer was declared after a parameter");
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    BufferUse& known = buffers_[i];
    if (known.kind == use.kind && known.buffer == use.buffer &&
        known.element_bytes == use.element_bytes) {
      known.reads |= use.reads;
      known.writes |= use.writes;
      return static_cast<int>(i);
    }
  }
  buffers_.push_back(use);
  return static_cast<int>(buffers_.size()) - 1;
}

int Shader::buffer_of(const dispatch::Operand& operand) const {
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    if (buffers_[i].kind == BufferUse::Kind::kPlanBuffer && buffers_[i].buffer == operand.buffer &&
        buffers_[i].element_bytes == size_of(operand.dtype)) {
      return static_cast<int>(i);
    }
  }
  throw InternalError("[vulkan] an operand's buffer was not declared");
}

std::uint32_t Shader::bases_bytes() const {
  const auto count = static_cast<std::uint32_t>(buffers_.size());
  return traits().use_addresses ? count * 8 : (count * 4 + 7) / 8 * 8;
}

Value Shader::push_constant(std::uint32_t member, Type type, std::uint32_t index) {
  spirv::Module& module = builder_.module();
  const Id pointer_type = module.pointer_type(spv::StorageClass::PushConstant, module.type(type));
  const Id pointer = module.new_id();
  module.emit(Op::OpAccessChain, {pointer_type, pointer, push_variable_, builder_.u32(member).id,
                                  builder_.u32(index).id});
  const Id id = module.new_id();
  module.emit(Op::OpLoad, {module.type(type), id, pointer});
  return {&builder_, id, type, false, 0};
}

Value Shader::parameter(std::int64_t value) {
  if (value > std::numeric_limits<std::uint32_t>::max() ||
      value < std::numeric_limits<std::int32_t>::min()) {
    throw UnsupportedError(
        fmt::format("[{}] an extent, stride or offset of {} elements does not fit the 32-bit "
                    "indices of this kernel. Split the tensor along its first axis",
                    name_of(context_.kernel.kind), value));
  }
  has_parameters_ = true;
  const auto index = static_cast<std::uint32_t>(parameters_.size());
  if (bases_bytes() + (index + 1) * 4 > traits().max_push_bytes) {
    return builder_.u32(static_cast<std::uint32_t>(value));
  }
  parameters_.push_back(static_cast<std::uint32_t>(value));
  return push_constant(buffers_.empty() ? 0 : 1, spirv::kInt32, index);
}

Value Shader::stride_parameter(std::int64_t value) {
  if (value == 0 || value == 1) return builder_.u32(static_cast<std::uint32_t>(value));
  return parameter(value);
}

Value Shader::wide_parameter(std::int64_t value) {
  if (value == static_cast<std::int32_t>(value)) {
    return builder_.op(Op::OpSConvert, spirv::kInt64, {parameter(value)});
  }
  const auto bits = static_cast<std::uint64_t>(value);
  const std::array<Value, 2> words{parameter(static_cast<std::uint32_t>(bits)),
                                   parameter(static_cast<std::uint32_t>(bits >> 32))};
  return builder_.bitcast(builder_.compose(words), spirv::kInt64);
}

Shader::Base Shader::base_of(int buffer, std::int64_t offset, std::int64_t lowest) {
  const std::uint32_t bytes = buffers_[static_cast<std::size_t>(buffer)].element_bytes;
  const auto index = static_cast<std::uint32_t>(buffer);
  Base base{buffer, builder_.u32(0), {}};
  if (!traits().use_addresses) {
    base.offset = push_constant(0, spirv::kInt32, index) + stride_parameter(offset);
    return base;
  }
  base.address = push_constant(0, spirv::kInt64, index);
  if (offset + lowest != 0) {
    base.address =
        base.address + wide_parameter(offset + lowest) * builder_.constant(spirv::kInt64, bytes);
  }
  if (lowest != 0) base.offset = parameter(-lowest);
  const bool by_words =
      (bytes == 1 && !traits().has_storage8) || (bytes == 2 && !traits().has_storage16);
  if (by_words) {
    const Value low = builder_.widen(base.address, spirv::Scalar::kInt32);
    base.offset = base.offset + ((low & 3) >> (bytes == 1 ? 0 : 1));
    base.address = base.address & builder_.constant(spirv::kInt64, ~std::uint64_t{3});
  }
  return base;
}

Id Shader::descriptor_variable(int buffer, Type unit) {
  Id& variable = descriptors_[{buffer, unit}];
  if (variable == 0) {
    spirv::Module& module = builder_.module();
    variable =
        module.global_variable(spv::StorageClass::StorageBuffer, module.runtime_array_block(unit));
    module.decorate(variable, spv::Decoration::DescriptorSet, {0});
    module.decorate(variable, spv::Decoration::Binding, {static_cast<std::uint32_t>(buffer)});
    // Operands may share memory: an updated tensor, or offsets into one arena.
    module.decorate(variable, spv::Decoration::Aliased);
  }
  return variable;
}

namespace {

/// Storage of 8 or 16 bits is a capability of its own; arithmetic in such types is not needed.
void require_storage(spirv::Module& module, Type unit) {
  if (unit.scalar == spirv::Scalar::kInt8) {
    module.require(spv::Capability::StorageBuffer8BitAccess);
    module.require_extension("SPV_KHR_8bit_storage");
  } else if (unit.scalar == spirv::Scalar::kInt16) {
    module.require(spv::Capability::StorageBuffer16BitAccess);
  }
}

std::uint32_t bytes_of(Type unit) { return spirv::component_bytes(unit.scalar) * unit.components; }

}  // namespace

Id Shader::pointer_to(const Base& base, Type unit, Value index, std::uint32_t index_bytes) {
  if (index_bytes == 0) index_bytes = bytes_of(unit);
  spirv::Module& module = builder_.module();
  require_storage(module, unit);
  const Id zero = builder_.u32(0).id;
  const auto storage = traits().use_addresses ? spv::StorageClass::PhysicalStorageBuffer
                                              : spv::StorageClass::StorageBuffer;
  Id block = 0;
  Id element = zero;
  if (traits().use_addresses) {
    // The address is computed in 64 bits: in access chains drivers disagree about the sign of an
    // index, and negative strides need it.
    const Value wide = has_negative_stride(context_.kernel)
                           ? builder_.op(Op::OpSConvert, spirv::kInt64, {index})
                           : builder_.widen(index, spirv::Scalar::kInt64);
    const Value address = base.address + wide * builder_.constant(spirv::kInt64, index_bytes);
    const Id block_type = module.pointer_type(storage, module.runtime_array_block(unit));
    block = module.new_id();
    module.emit(Op::OpConvertUToPtr, {block_type, block, address.id});
  } else {
    block = descriptor_variable(base.buffer, unit);
    element = (index / (bytes_of(unit) / index_bytes)).id;
  }
  const Id pointer = module.new_id();
  module.emit(Op::OpAccessChain,
              {module.pointer_type(storage, module.type(unit)), pointer, block, zero, element});
  return pointer;
}

Value Shader::load_from(Id pointer, Type unit) {
  spirv::Module& module = builder_.module();
  const Id id = module.new_id();
  if (traits().use_addresses) {
    module.emit(Op::OpLoad,
                {module.type(unit), id, pointer,
                 static_cast<std::uint32_t>(spv::MemoryAccessMask::Aligned), bytes_of(unit)});
  } else {
    module.emit(Op::OpLoad, {module.type(unit), id, pointer});
  }
  return {&builder_, id, unit, false, 0};
}

Value Shader::load(const Base& base, Type unit, Value index) {
  return load_from(pointer_to(base, unit, index), unit);
}

Value Shader::load_vector(const Base& base, Value element) {
  const std::uint32_t bytes = buffers_[static_cast<std::size_t>(base.buffer)].element_bytes;
  return load_from(pointer_to(base, kWord4, element, bytes), kWord4);
}

void Shader::store(const Base& base, Type unit, Value index, Value value) {
  const Id pointer = pointer_to(base, unit, index);
  if (traits().use_addresses) {
    builder_.module().emit(
        Op::OpStore, {pointer, value.id, static_cast<std::uint32_t>(spv::MemoryAccessMask::Aligned),
                      bytes_of(unit)});
  } else {
    builder_.module().emit(Op::OpStore, {pointer, value.id});
  }
}

Value Shader::atomic(Op op, Id pointer, Value value) {
  spirv::Module& module = builder_.module();
  const Id scope = builder_.u32(static_cast<std::uint32_t>(spv::Scope::Device)).id;
  const Id relaxed = builder_.u32(0).id;
  const Id id = module.new_id();
  module.emit(op, {module.type(kWord), id, pointer, scope, relaxed, value.id});
  return {&builder_, id, kWord, false, 0};
}

void Shader::replace_bits(const Base& base, Value index, Value mask, Value bits) {
  // Other invocations own the word's other bits, and nobody reads it in this dispatch: two atomic
  // steps are as good as one.
  const Id pointer = pointer_to(base, kWord, index);
  atomic(Op::OpAtomicAnd, pointer, ~mask);
  atomic(Op::OpAtomicOr, pointer, bits);
}

Value Shader::load_scalar(int index) {
  const ops::ScalarType type = context_.graph.scalars[static_cast<std::size_t>(index)];
  const Base base = base_of(scalars_, 0);
  const Value word = parameter(std::int64_t{2} * index) + base.offset;
  const Value low = load(base, kWord, word);
  switch (type) {
    case ops::ScalarType::kBool:
      return not_equal(low, 0);
    case ops::ScalarType::kI32:
      return low;
    case ops::ScalarType::kF32:
      return builder_.bitcast(low, spirv::kFloat32);
    case ops::ScalarType::kI64:
    case ops::ScalarType::kF64:
      break;
  }
  const std::array<Value, 2> words{low, load(base, kWord, word + 1)};
  return builder_.bitcast(builder_.compose(words),
                          type == ops::ScalarType::kI64 ? spirv::kInt64 : spirv::kFloat64);
}

void Shader::report_bad_index(int site, Value index) {
  const Base base = base_of(status_, 0);
  const Value code = site_codes_.at(site);
  const Value check = (code - 1) & (kStatusChecks - 1);
  const Value bit = builder_.u32(1) << check;
  const Value before = atomic(Op::OpAtomicOr, pointer_to(base, kWord, base.offset), bit);
  builder_.if_then(equal(before & bit, 0), [&] {
    const bool is_wide = index.type.scalar == spirv::Scalar::kInt64;
    const Value high = is_wide ? builder_.widen(index >> 32, spirv::Scalar::kInt32)
                               : builder_.select(signed_less(index, builder_.u32(0)),
                                                 builder_.u32(~0u), builder_.u32(0));
    const Value first = base.offset + check * kWordsPerCheck + 1;
    store(base, kWord, first, code);
    store(base, kWord, first + 1, builder_.widen(index, spirv::Scalar::kInt32));
    store(base, kWord, first + 2, high);
  });
}

void Shader::guarded(const spirv::Body& body) {
  if (may_write_) {
    builder_.if_then(may_write_, body);
  } else {
    body();
  }
}

Value Shader::global_index() {
  const Value group =
      builder_.workgroup_id(1) * builder_.workgroup_count(0) + builder_.workgroup_id(0);
  return group * local_count() + builder_.local_index();
}

std::array<std::uint32_t, 3> Shader::groups_for(std::int64_t count) const {
  const std::int64_t limit = traits().max_groups[0];
  const std::int64_t x = std::clamp<std::int64_t>(count, 1, limit);
  const std::int64_t y = std::max<std::int64_t>(1, (count + x - 1) / x);
  if (y > traits().max_groups[1]) {
    throw UnsupportedError(fmt::format(
        "[{}] {} workgroups exceed the device's {} x {}. Split the tensor along its first axis",
        name_of(context_.kernel.kind), count, limit, traits().max_groups[1]));
  }
  return {static_cast<std::uint32_t>(x), static_cast<std::uint32_t>(y), 1};
}

Dispatch Shader::finish(std::array<std::uint32_t, 3> groups) {
  spirv::Module& module = builder_.module();
  const auto buffer_count = static_cast<std::uint32_t>(buffers_.size());
  const auto parameter_count = static_cast<std::uint32_t>(parameters_.size());
  if (buffer_count + parameter_count > 0) {
    const Id block = module.push_block(traits().use_addresses ? spirv::kInt64 : spirv::kInt32,
                                       buffer_count, spirv::kInt32, parameter_count, bases_bytes());
    module.global_variable(spv::StorageClass::PushConstant, block, push_variable_);
  }
  auto code = std::make_shared<ShaderCode>();
  code->name = name_;
  code->words = module.assemble(local_size_);
  code->buffer_count = buffer_count;
  code->push_bytes = bases_bytes() + parameter_count * 4;
  return {std::move(code), groups, buffers_, parameters_};
}

}  // namespace vkml::vulkan
