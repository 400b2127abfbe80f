#include "spirv/matrix.h"

#include <spirv/unified1/GLSL.std.450.h>

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

Id MatrixVariable::element_pointer(std::uint32_t number) const {
  Module& module = builder_->module();
  const Id type = module.pointer_type(spv::StorageClass::Function, module.type(kFloat32));
  const Id id = module.new_id();
  module.emit(Op::OpAccessChain, {type, id, pointer_, builder_->u32(number).id});
  return id;
}

Value MatrixVariable::element(std::uint32_t number) const {
  Module& module = builder_->module();
  const Id pointer = element_pointer(number);
  const Id id = module.new_id();
  module.emit(Op::OpLoad, {module.type(kFloat32), id, pointer});
  return {builder_, id, kFloat32, false, 0};
}

void MatrixVariable::set_element(std::uint32_t number, Value value) const {
  const Id pointer = element_pointer(number);
  builder_->module().emit(Op::OpStore, {pointer, value.id});
}

Matrix constant_matrix(Builder& builder, MatrixType type, float value) {
  return {&builder,
          builder.module().constant_composite(type_id(builder, type), builder.f32(value).id), type};
}
Matrix zero_matrix(Builder& builder, MatrixType type) { return constant_matrix(builder, type, 0); }

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

namespace {
void require_matrix2(Module& module, spv::Capability capability) {
  module.require(capability);
  module.require_extension("SPV_NV_cooperative_matrix2");
}
}  // namespace

Matrix convert(Matrix sum, MatrixType type) {
  Module& module = sum.builder->module();
  require_matrix2(module, spv::Capability::CooperativeMatrixConversionsNV);
  const Id id = module.new_id();
  module.emit(Op::OpFConvert, {type_id(*sum.builder, type), id, sum.id});
  return {sum.builder, id, type};
}

Matrix reduce_rows(Matrix matrix, MatrixReduction reduction) {
  Builder& builder = *matrix.builder;
  Module& module = builder.module();
  require_matrix2(module, spv::Capability::CooperativeMatrixReductionsNV);
  const Id combine = reduction == MatrixReduction::kSum
                         ? module.binary_function(kFloat32, Op::OpFAdd, {})
                         : module.binary_function(kFloat32, Op::OpExtInst,
                                                  {module.extended_instructions(),
                                                   static_cast<std::uint32_t>(GLSLstd450FMax)});
  const Id id = module.new_id();
  module.emit(Op::OpCooperativeMatrixReduceNV,
              {type_id(builder, matrix.type), id, matrix.id,
               static_cast<std::uint32_t>(spv::CooperativeMatrixReduceMask::Row), combine});
  return {&builder, id, matrix.type};
}

}  // namespace vkml::vulkan::spirv
