// Matrix product: a (B0, B1, M, K) @ b (B0, B1, K, N). Any strides: a transpose is another stride.
// Batch axes over which b does not change become rows of a, so that a linear layer is one product.
#include "kernels/contraction.h"
#include "kernels/kernels.h"

namespace vkml::vulkan {

using spirv::Value;

namespace {

constexpr std::size_t kRows = 2, kColumns = 3, kInner = 3;

/// Whether stepping through `axis` of every operand is the same as going on along the rows.
bool batch_axis_joins_rows(const dispatch::Kernel& kernel, std::size_t axis) {
  const std::int64_t rows = kernel.space[kRows];
  const auto joins = [&](const dispatch::Operand& operand) {
    return operand.strides[axis] == operand.strides[kRows] * rows;
  };
  for (const ops::Instruction& instruction : kernel.program.code) {
    const auto iota_axis = static_cast<std::size_t>(instruction.imm);
    if (instruction.op == ops::Opcode::kIota && iota_axis <= kRows) return false;
  }
  bool all = joins(kernel.core_inputs[0]) && kernel.core_inputs[1].strides[axis] == 0;
  for (const dispatch::Operand& load : kernel.loads) all &= joins(load);
  for (const dispatch::Operand& store : kernel.stores) all &= joins(store);
  return all;
}

void join_rows(dispatch::Operand& operand, std::size_t axis, std::int64_t extent) {
  operand.extents[kRows] *= extent;
  operand.extents[axis] = 1;
}

/// The same product with as few batch axes as its operands allow.
dispatch::Kernel fold_batch(dispatch::Kernel kernel) {
  for (const std::size_t axis : {std::size_t{1}, std::size_t{0}}) {
    const std::int64_t extent = kernel.space[axis];
    if (extent == 1) continue;
    if (!batch_axis_joins_rows(kernel, axis)) break;
    join_rows(kernel.core_inputs[0], axis, extent);
    kernel.core_inputs[1].extents[axis] = 1;
    for (dispatch::Operand& load : kernel.loads) join_rows(load, axis, extent);
    for (dispatch::Operand& store : kernel.stores) join_rows(store, axis, extent);
    kernel.space[kRows] *= extent;
    kernel.space[axis] = 1;
  }
  return kernel;
}

ContractionSize size_of(const dispatch::Kernel& kernel) {
  return {kernel.space[0] * kernel.space[1], kernel.space[kRows], kernel.space[kColumns],
          kernel.core_inputs[0].extents[kInner]};
}

StridedOperandLayout layout_of(const dispatch::Kernel& kernel, const dispatch::Operand& operand,
                               std::size_t outer_axis, std::size_t inner_axis) {
  const auto axis = [&](std::size_t i) {
    return IndexAxis{operand.extents[i], operand.strides[i]};
  };
  StridedOperandLayout layout{{axis(0), axis(1)}, {axis(outer_axis)}, {axis(inner_axis)}};
  // A batch that this operand broadcasts over still counts.
  for (std::size_t i = 0; i < 2; ++i) layout.batch[i].extent = kernel.space[i];
  return layout;
}

}  // namespace

std::vector<Dispatch> generate_matmul(const Context& context) {
  const dispatch::Kernel kernel = fold_batch(context.kernel);
  const Context folded{kernel, context.graph, context.traits};
  Contraction contraction;
  contraction.size = size_of(kernel);
  contraction.four_in_row = true;
  contraction.open_operands = [&](Shader& shader) {
    return ContractionOperands{
        strided_operand(shader, kernel.core_inputs[0],
                        layout_of(kernel, kernel.core_inputs[0], kRows, kInner)),
        strided_operand(shader, kernel.core_inputs[1],
                        layout_of(kernel, kernel.core_inputs[1], kColumns, kRows))};
  };
  contraction.open_place = [&](Shader& shader) -> Place {
    spirv::Builder& b = shader.builder();
    const Value inner_extent = kernel.space[1] == 1 ? b.u32(1) : shader.parameter(kernel.space[1]);
    return [inner_extent](Value batch, Value m, Value n) {
      const Value outer = batch / inner_extent;
      return Coordinates{outer, batch - outer * inner_extent, m, n};
    };
  };
  return generate_contraction(folded, contraction);
}

std::int64_t matmul_scratch_bytes(const dispatch::Kernel& kernel, const DeviceTraits& traits) {
  return contraction_scratch_bytes(size_of(fold_batch(kernel)), kernel.core_type, traits);
}

}  // namespace vkml::vulkan
