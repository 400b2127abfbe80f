#include "spirv/builder.h"

#include <spirv/unified1/GLSL.std.450.h>

#include <bit>

namespace vkml::vulkan::spirv {

using spv::Op;

namespace {

std::uint32_t word(spv::Scope scope) { return static_cast<std::uint32_t>(scope); }

/// An access to memory that the workgroup shares: under the Vulkan memory model accesses are
/// private unless they say otherwise.
void emit_shared_access(Module& module, Op op, std::vector<std::uint32_t> operands) {
  if (module.uses_vulkan_memory_model()) {
    operands.push_back(static_cast<std::uint32_t>(spv::MemoryAccessMask::NonPrivatePointer));
  }
  module.emit(op, operands);
}

}  // namespace

void Builder::use_half_conversions() {
  module_.require(spv::Capability::Float16);
  module_.require_extension("SPV_KHR_float_controls");
  constexpr std::uint32_t kWidth = 16;
  module_.require(spv::Capability::RoundingModeRTE);
  module_.require_mode(spv::ExecutionMode::RoundingModeRTE, kWidth);
  module_.require(spv::Capability::DenormPreserve);
  module_.require_mode(spv::ExecutionMode::DenormPreserve, kWidth);
  module_.require(spv::Capability::SignedZeroInfNanPreserve);
  module_.require_mode(spv::ExecutionMode::SignedZeroInfNanPreserve, kWidth);
}

void Builder::keep_special_values() {
  module_.require_extension("SPV_KHR_float_controls");
  module_.require(spv::Capability::SignedZeroInfNanPreserve);
  module_.require_mode(spv::ExecutionMode::SignedZeroInfNanPreserve, 32);
}

Value Builder::constant(Type type, std::uint64_t bits) {
  return {this, module_.constant(type, bits), type, true, bits};
}

Value Builder::f32(float value) { return constant(kFloat32, std::bit_cast<std::uint32_t>(value)); }

Value Builder::op(Op op, Type result, std::initializer_list<Value> operands) {
  const Id type_id = module_.type(result);
  const Id id = module_.new_id();
  std::vector<std::uint32_t> words{type_id, id};
  for (const Value& operand : operands) words.push_back(operand.id);
  module_.emit(op, words);
  return make(id, result);
}

Value Builder::extended(std::uint32_t instruction, Type result,
                        std::initializer_list<Value> operands) {
  const Id set = module_.extended_instructions();
  const Id type_id = module_.type(result);
  const Id id = module_.new_id();
  std::vector<std::uint32_t> words{type_id, id, set, instruction};
  for (const Value& operand : operands) words.push_back(operand.id);
  module_.emit(Op::OpExtInst, words);
  return make(id, result);
}

Value Builder::exact(Op op, Type result, std::initializer_list<Value> operands) {
  const Value value = this->op(op, result, operands);
  module_.decorate(value.id, spv::Decoration::NoContraction);
  return value;
}

Value Builder::select(Value condition, Value a, Value b) {
  if (condition.is_literal) return condition.literal != 0 ? a : b;
  if (condition.type.components != a.type.components) {
    condition = splat(condition, a.type.components);
  }
  return op(Op::OpSelect, a.type, {condition, a, b});
}

Value Builder::bitcast(Value value, Type type) {
  return value.type == type ? value : op(Op::OpBitcast, type, {value});
}

Value Builder::fma(Value a, Value b, Value c) {
  const Value value = extended(GLSLstd450Fma, a.type, {a, b, c});
  module_.decorate(value.id, spv::Decoration::NoContraction);
  return value;
}

Value Builder::splat(Value scalar, int components) {
  if (components == 1 || scalar.type.components == components) return scalar;
  if (scalar.is_literal) {
    return constant(with_components(scalar.type, components), scalar.literal);
  }
  const std::vector<Value> copies(static_cast<std::size_t>(components), scalar);
  return compose(copies);
}

Value Builder::compose(std::span<const Value> scalars) {
  if (scalars.size() == 1) return scalars[0];
  const Type type = with_components(scalars[0].type, static_cast<int>(scalars.size()));
  const Id type_id = module_.type(type);
  const Id id = module_.new_id();
  std::vector<std::uint32_t> words{type_id, id};
  for (const Value& scalar : scalars) words.push_back(scalar.id);
  module_.emit(Op::OpCompositeConstruct, words);
  return make(id, type);
}

Value Builder::component(Value vector, int index) {
  if (vector.type.components == 1) return vector;
  const Type type = with_components(vector.type, 1);
  const Id type_id = module_.type(type);
  const Id id = module_.new_id();
  module_.emit(Op::OpCompositeExtract, {type_id, id, vector.id, static_cast<std::uint32_t>(index)});
  return make(id, type);
}

Value Builder::widen(Value value, Scalar scalar) {
  const Type type{scalar, value.type.components};
  return value.type == type ? value : op(Op::OpUConvert, type, {value});
}

Value Builder::builtin(spv::BuiltIn builtin, Type type) {
  const Id variable = module_.builtin(builtin, type);
  const Id type_id = module_.type(type);
  const Id id = module_.new_id();
  module_.emit(Op::OpLoad, {type_id, id, variable});
  return make(id, type);
}

Value Builder::workgroup_id(int axis) {
  return component(builtin(spv::BuiltIn::WorkgroupId, with_components(kInt32, 3)), axis);
}
Value Builder::workgroup_count(int axis) {
  return component(builtin(spv::BuiltIn::NumWorkgroups, with_components(kInt32, 3)), axis);
}
Value Builder::local_index() { return builtin(spv::BuiltIn::LocalInvocationIndex, kInt32); }
Value Builder::subgroup_lane() {
  module_.require(spv::Capability::GroupNonUniform);
  return builtin(spv::BuiltIn::SubgroupLocalInvocationId, kInt32);
}
Value Builder::subgroup_id() {
  module_.require(spv::Capability::GroupNonUniform);
  return builtin(spv::BuiltIn::SubgroupId, kInt32);
}
Value Builder::subgroup_size() {
  module_.require(spv::Capability::GroupNonUniform);
  return builtin(spv::BuiltIn::SubgroupSize, kInt32);
}
Value Builder::subgroup_count() {
  module_.require(spv::Capability::GroupNonUniform);
  return builtin(spv::BuiltIn::NumSubgroups, kInt32);
}

void Builder::if_then(Value condition, const Body& body) { if_else(condition, body, {}); }

void Builder::if_else(Value condition, const Body& then_body, const Body& else_body) {
  if (condition.is_literal) {
    const Body& taken = condition.literal != 0 ? then_body : else_body;
    if (taken) taken();
    return;
  }
  const Id then_block = module_.new_id();
  const Id merge = module_.new_id();
  const Id else_block = else_body ? module_.new_id() : merge;
  module_.emit(Op::OpSelectionMerge,
               {merge, static_cast<std::uint32_t>(spv::SelectionControlMask::MaskNone)});
  module_.emit(Op::OpBranchConditional, {condition.id, then_block, else_block});
  label(then_block);
  then_body();
  branch(merge);
  if (else_body) {
    label(else_block);
    else_body();
    branch(merge);
  }
  label(merge);
}

void Builder::for_range(Value begin, Value end, Value step,
                        const std::function<void(Value)>& body) {
  if (block_ == 0) {
    // The phi must name its predecessor; the first block's label is not known here.
    const Id entry = module_.new_id();
    branch(entry);
    label(entry);
  }
  const Id before = block_;
  const Id header = module_.new_id(), test = module_.new_id(), turn = module_.new_id();
  const Id next = module_.new_id(), merge = module_.new_id();
  const Id index = module_.new_id(), advanced = module_.new_id();
  const Id type_id = module_.type(begin.type);
  branch(header);
  label(header);
  module_.emit(Op::OpPhi, {type_id, index, begin.id, before, advanced, next});
  module_.emit(Op::OpLoopMerge,
               {merge, next, static_cast<std::uint32_t>(spv::LoopControlMask::MaskNone)});
  branch(test);
  label(test);
  const Value counter = make(index, begin.type);
  module_.emit(Op::OpBranchConditional, {less(counter, end).id, turn, merge});
  label(turn);
  body(counter);
  branch(next);
  label(next);
  module_.emit(Op::OpIAdd, {type_id, advanced, index, step.id});
  branch(header);
  label(merge);
}

void Builder::while_loop(const std::function<Value()>& condition, const Body& body) {
  const Id header = module_.new_id(), test = module_.new_id(), turn = module_.new_id();
  const Id next = module_.new_id(), merge = module_.new_id();
  branch(header);
  label(header);
  module_.emit(Op::OpLoopMerge,
               {merge, next, static_cast<std::uint32_t>(spv::LoopControlMask::MaskNone)});
  branch(test);
  label(test);
  const Value go_on = condition();
  module_.emit(Op::OpBranchConditional, {go_on.id, turn, merge});
  label(turn);
  body();
  branch(next);
  label(next);
  branch(header);
  label(merge);
}

void Builder::barrier(spv::Scope scope) {
  using Semantics = spv::MemorySemanticsMask;
  Semantics semantics = Semantics::AcquireRelease | Semantics::WorkgroupMemory;
  if (module_.uses_vulkan_memory_model()) {
    semantics = semantics | Semantics::MakeAvailable | Semantics::MakeVisible;
  }
  const Id scope_id = u32(word(scope)).id;
  const Id semantics_id = u32(static_cast<std::uint32_t>(semantics)).id;
  module_.emit(Op::OpControlBarrier, {scope_id, scope_id, semantics_id});
}

Value Builder::subgroup_reduce(Op op, Value value) {
  module_.require(spv::Capability::GroupNonUniform);
  module_.require(spv::Capability::GroupNonUniformArithmetic);
  const Id type_id = module_.type(value.type);
  const Id scope = u32(word(spv::Scope::Subgroup)).id;
  const Id id = module_.new_id();
  module_.emit(
      op, {type_id, id, scope, static_cast<std::uint32_t>(spv::GroupOperation::Reduce), value.id});
  return make(id, value.type);
}

Value Builder::subgroup_shuffle_xor(Value value, std::uint32_t mask) {
  module_.require(spv::Capability::GroupNonUniform);
  module_.require(spv::Capability::GroupNonUniformShuffle);
  const Id type_id = module_.type(value.type);
  const Id scope = u32(word(spv::Scope::Subgroup)).id;
  const Id id = module_.new_id();
  module_.emit(Op::OpGroupNonUniformShuffleXor, {type_id, id, scope, value.id, u32(mask).id});
  return make(id, value.type);
}

Variable::Variable(Builder& builder, Type type)
    : builder_(&builder),
      pointer_(builder.module().local_variable(builder.module().type(type))),
      type_(type) {}

Value Variable::load() const {
  Module& module = builder_->module();
  const Id type_id = module.type(type_);
  const Id id = module.new_id();
  module.emit(Op::OpLoad, {type_id, id, pointer_});
  return {builder_, id, type_, false, 0};
}

void Variable::store(Value value) const {
  builder_->module().emit(Op::OpStore, {pointer_, value.id});
}

SharedArray::SharedArray(Builder& builder, Type element, std::uint32_t length)
    : builder_(&builder), element_(element) {
  Module& module = builder.module();
  pointer_ = module.global_variable(spv::StorageClass::Workgroup,
                                    module.array_type(module.type(element), length));
}

Id SharedArray::element_pointer(Value index) const {
  Module& module = builder_->module();
  const Id type_id = module.pointer_type(spv::StorageClass::Workgroup, module.type(element_));
  const Id id = module.new_id();
  module.emit(Op::OpAccessChain, {type_id, id, pointer_, index.id});
  return id;
}

Value SharedArray::load(Value index) const {
  Module& module = builder_->module();
  const Id pointer = element_pointer(index);
  const Id type_id = module.type(element_);
  const Id id = module.new_id();
  emit_shared_access(module, Op::OpLoad, {type_id, id, pointer});
  return {builder_, id, element_, false, 0};
}

Value SharedArray::load_component(Value index, Value component) const {
  Module& module = builder_->module();
  const Type type = with_components(element_, 1);
  const Id type_id = module.type(type);
  const Id pointer_type = module.pointer_type(spv::StorageClass::Workgroup, type_id);
  const Id pointer = module.new_id(), id = module.new_id();
  module.emit(Op::OpAccessChain, {pointer_type, pointer, pointer_, index.id, component.id});
  emit_shared_access(module, Op::OpLoad, {type_id, id, pointer});
  return {builder_, id, type, false, 0};
}

void SharedArray::store(Value index, Value value) const {
  const Id pointer = element_pointer(index);
  emit_shared_access(builder_->module(), Op::OpStore, {pointer, value.id});
}

void SharedArray::atomic_max(Value index, Value value) const {
  const Id pointer = element_pointer(index);
  Module& module = builder_->module();
  const Id scope = builder_->u32(word(spv::Scope::Workgroup)).id;
  const Id relaxed = builder_->u32(0).id;
  module.emit(Op::OpAtomicUMax,
              {module.type(element_), module.new_id(), pointer, scope, relaxed, value.id});
}

}  // namespace vkml::vulkan::spirv
