// Matrix product: a (B0, B1, M, K) @ b (B0, B1, K, N). Any strides: a transpose is another stride.
// Batch axes over which b does not change become rows of a, so that a linear layer is one product.
#include <algorithm>

#include "kernels/contraction.h"
#include "kernels/kernels.h"
#include "kernels/matrix_copy.h"
#include "vkml/ops/functions.h"

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

/// The two operands, and the axes that their outer and inner directions are.
struct Side {
  std::size_t input, outer_axis, inner_axis;
};
constexpr Side kA{0, kRows, kInner}, kB{1, kColumns, kRows};

StridedOperandLayout layout_of(const dispatch::Kernel& kernel, const Side& side) {
  const dispatch::Operand& operand = kernel.core_inputs[side.input];
  const auto axis = [&](std::size_t i) {
    return IndexAxis{operand.extents[i], operand.strides[i]};
  };
  StridedOperandLayout layout{{axis(0), axis(1)}, {axis(side.outer_axis)}, {axis(side.inner_axis)}};
  // A batch that this operand broadcasts over still counts.
  for (std::size_t i = 0; i < 2; ++i) layout.batch[i].extent = kernel.space[i];
  return layout;
}

/// Matrix units take what lies in whole vectors; the rest is copied before.
MatrixAccess access_of(const dispatch::Kernel& kernel, const Side& side) {
  const dispatch::Operand& operand = kernel.core_inputs[side.input];
  if (vector_direction(layout_of(kernel, side)) != ContractionOperand::Dense::kNone &&
      operand.offset % kVectorElements == 0) {
    return {MatrixAccess::Kind::kVectors, 0};
  }
  return {MatrixAccess::Kind::kThroughCopy, matrix_copy_bytes(operand, nearest_axis(operand))};
}

ContractionProblem problem_of(const dispatch::Kernel& kernel, const DeviceTraits& traits) {
  ContractionProblem problem{
      size_of(kernel), kernel.core_type, kernel.core_inputs[0].dtype, {}, {}, 3};
  const bool is_high =
      kernel.attributes.size() > 0 &&
      kernel.attributes[0] == static_cast<std::int64_t>(graph::MatmulPrecision::kHigh);
  if (is_high) problem.parts = 2;
  if (may_use_matrix_units(kernel, traits)) {
    problem.a = access_of(kernel, kA);
    problem.b = access_of(kernel, kB);
  }
  return problem;
}

/// Copies to scratch what the plan wants there, and makes the kernel read it from there.
std::vector<Dispatch> copy_operands(const Context& context, const ContractionProblem& problem,
                                    const ContractionPlan& plan, dispatch::Kernel& kernel) {
  std::vector<Dispatch> dispatches;
  const auto copy = [&](const Side& side, const MatrixAccess& access, std::int64_t begin) {
    if (access.kind != MatrixAccess::Kind::kThroughCopy) return;
    dispatch::Operand& operand = kernel.core_inputs[side.input];
    const std::size_t row = nearest_axis(operand);
    const dispatch::Operand target = matrix_copy_of(operand, row, kernel.scratch, begin);
    dispatches.push_back(generate_matrix_copy(context, operand, row, target));
    operand = target;
  };
  if (plan.engine == ContractionEngine::kMatrix) {
    copy(kA, problem.a, plan.copy_a);
    copy(kB, problem.b, plan.copy_b);
  }
  return dispatches;
}

}  // namespace

std::vector<Dispatch> generate_matmul(const Context& context) {
  dispatch::Kernel kernel = fold_batch(context.kernel);
  Contraction contraction;
  contraction.problem = problem_of(kernel, context.traits);
  contraction.four_in_row = true;
  const ContractionPlan plan =
      plan_contraction(contraction.problem, context.traits, kernel.scratch >= 0);
  std::vector<Dispatch> dispatches = copy_operands(context, contraction.problem, plan, kernel);
  const Context changed{kernel, context.graph, context.traits};
  const auto open = [&](Shader& shader, const Side& side) {
    return strided_operand(shader, kernel.core_inputs[side.input], layout_of(kernel, side));
  };
  contraction.open_operands = [&](Shader& shader) {
    return ContractionOperands{open(shader, kA), open(shader, kB)};
  };
  contraction.open_place = [&](Shader& shader) -> Place {
    spirv::Builder& b = shader.builder();
    const Value inner_extent = kernel.space[1] == 1 ? b.u32(1) : shader.parameter(kernel.space[1]);
    return [inner_extent](Value batch, Value m, Value n) {
      const Value outer = batch / inner_extent;
      return Coordinates{outer, batch - outer * inner_extent, m, n};
    };
  };
  for (Dispatch& dispatch : generate_contraction(changed, contraction, plan)) {
    dispatches.push_back(std::move(dispatch));
  }
  return dispatches;
}

std::int64_t matmul_scratch_bytes(const dispatch::Kernel& kernel, const DeviceTraits& traits) {
  return plan_contraction(problem_of(fold_batch(kernel), traits), traits).scratch_bytes;
}

}  // namespace vkml::vulkan
