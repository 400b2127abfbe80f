#include "spirv/matrix.h"

#include "vkml/core/error.h"

namespace vkml::vulkan::spirv {

using spv::Op;

namespace {

Id scalar_id(Module& module, MatrixScalar scalar) {
  switch (scalar) {
    case MatrixScalar::kF16:
      module.require(spv::Capability::Float16);
      return module.intern_type(Op::OpTypeFloat, {16});
    case MatrixScalar::kBF16:
      module.require(spv::Capability::BFloat16TypeKHR);
      module.require(spv::Capability::BFloat16CooperativeMatrixKHR);
      module.require_extension("SPV_KHR_bfloat16");
      return module.intern_type(Op::OpTypeFloat,
                                {16, static_cast<std::uint32_t>(spv::FPEncoding::BFloat16KHR)});
    case MatrixScalar::kF32:
      break;
  }
  return module.type(kFloat32);
}

Id type_id(Builder& builder, MatrixType type) {
  Module& module = builder.module();
  module.require(spv::Capability::CooperativeMatrixKHR);
  module.require_extension("SPV_KHR_cooperative_matrix");
  if (!module.uses_vulkan_memory_model()) {
    throw InternalError("[vulkan] cooperative matrices need the Vulkan memory model");
  }
  const auto literal = [&](std::uint32_t value) { return builder.u32(value).id; };
  return module.intern_type(
      Op::OpTypeCooperativeMatrixKHR,
      {scalar_id(module, type.scalar), literal(static_cast<std::uint32_t>(spv::Scope::Subgroup)),
       literal(type.rows), literal(type.columns), literal(static_cast<std::uint32_t>(type.use))});
}

constexpr auto kShared = static_cast<std::uint32_t>(spv::MemoryAccessMask::NonPrivatePointer);

}  // namespace

MatrixVariable::MatrixVariable(Builder& builder, MatrixType type)
    : builder_(&builder),
      type_(type),
      pointer_(builder.module().local_variable(type_id(builder, type))) {}

Matrix MatrixVariable::load() const {
  Module& module = builder_->module();
  const Id id = module.new_id();
  module.emit(Op::OpLoad, {type_id(*builder_, type_), id, pointer_});
  return {builder_, id, type_};
}

void MatrixVariable::store(Matrix value) const {
  builder_->module().emit(Op::OpStore, {pointer_, value.id});
}

Matrix zero_matrix(Builder& builder, MatrixType type) {
  return {&builder, builder.module().constant_composite(type_id(builder, type), builder.f32(0).id),
          type};
}

Matrix load_matrix(const SharedArray& memory, MatrixType type, Value first, std::uint32_t stride,
                   MatrixLayout layout) {
  Builder& builder = memory.builder();
  Module& module = builder.module();
  const Id matrix_type = type_id(builder, type);
  const Id pointer = memory.element_pointer(first);
  const Id layout_id = builder.u32(static_cast<std::uint32_t>(layout)).id;
  const Id stride_id = builder.u32(stride).id;
  const Id id = module.new_id();
  module.emit(Op::OpCooperativeMatrixLoadKHR,
              {matrix_type, id, pointer, layout_id, stride_id, kShared});
  return {&builder, id, type};
}

void store_matrix(const SharedArray& memory, Matrix matrix, Value first, std::uint32_t stride) {
  Builder& builder = memory.builder();
  const Id pointer = memory.element_pointer(first);
  const Id layout_id = builder.u32(static_cast<std::uint32_t>(MatrixLayout::kRowMajor)).id;
  const Id stride_id = builder.u32(stride).id;
  builder.module().emit(Op::OpCooperativeMatrixStoreKHR,
                        {pointer, matrix.id, layout_id, stride_id, kShared});
}

Matrix multiply_add(Matrix a, Matrix b, Matrix sum) {
  Module& module = sum.builder->module();
  const Id id = module.new_id();
  module.emit(Op::OpCooperativeMatrixMulAddKHR,
              {type_id(*sum.builder, sum.type), id, a.id, b.id, sum.id});
  return {sum.builder, id, sum.type};
}

Matrix operator+(Matrix a, Matrix b) {
  Module& module = a.builder->module();
  const Id id = module.new_id();
  module.emit(Op::OpFAdd, {type_id(*a.builder, a.type), id, a.id, b.id});
  return {a.builder, id, a.type};
}

}  // namespace vkml::vulkan::spirv
