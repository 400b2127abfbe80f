// Builds a plan of one kernel by hand, for tests of code generation.
#pragma once

#include <bit>
#include <initializer_list>
#include <utility>
#include <vector>

#include "vkml/dispatch/execution_graph.h"

namespace vkml::oracle {

using Register = std::uint16_t;

inline dispatch::Extents row_major(const dispatch::Extents& extents) {
  dispatch::Extents strides{};
  std::int64_t stride = 1;
  for (std::size_t axis = extents.size(); axis-- > 0;) {
    strides[axis] = stride;
    stride *= extents[axis];
  }
  return strides;
}

class KernelBuilder {
 public:
  KernelBuilder(ops::CoreKind kind, const dispatch::Extents& space, int reduce_dims = 0) {
    kernel.kind = kind;
    kernel.space = space;
    kernel.reduce_dims = reduce_dims;
  }

  int buffer(std::int64_t bytes, dispatch::BufferKind kind) {
    dispatch::Buffer buffer;
    buffer.kind = kind;
    buffer.bytes = bytes;
    int& count = kind == dispatch::BufferKind::kInput ? graph.input_count : graph.result_count;
    if (kind != dispatch::BufferKind::kTemporary) buffer.binding = count++;
    graph.buffers.push_back(buffer);
    return static_cast<int>(graph.buffers.size()) - 1;
  }

  /// A dense operand over `extents` in a buffer of its own.
  dispatch::Operand dense(DType dtype, const dispatch::Extents& extents,
                          dispatch::BufferKind kind = dispatch::BufferKind::kInput) {
    const std::int64_t bytes = dispatch::numel(extents) * static_cast<std::int64_t>(size_of(dtype));
    return {buffer(bytes, kind), dtype, 0, extents, row_major(extents)};
  }

  Register emit(ops::Opcode op, ops::ScalarType type, std::initializer_list<Register> operands = {},
                std::int64_t imm = 0) {
    ops::Instruction instruction;
    instruction.op = op;
    instruction.type = type;
    auto operand = operands.begin();
    if (operands.size() > 0) instruction.a = *operand++;
    if (operands.size() > 1) instruction.b = *operand++;
    if (operands.size() > 2) instruction.c = *operand++;
    instruction.imm = imm;
    kernel.program.code.push_back(instruction);
    return static_cast<Register>(kernel.program.code.size() - 1);
  }

  Register load(const dispatch::Operand& operand) {
    kernel.loads.push_back(operand);
    return emit(ops::Opcode::kLoad, ops::compute_type(operand.dtype), {},
                static_cast<std::int64_t>(kernel.loads.size()) - 1);
  }
  Register constant(float value) {
    return emit(ops::Opcode::kConstant, ops::ScalarType::kF32, {},
                std::bit_cast<std::uint32_t>(value));
  }
  Register integer(std::int64_t value, ops::ScalarType type = ops::ScalarType::kI32) {
    return emit(ops::Opcode::kConstant, type, {}, value);
  }
  Register reduce(ops::ReduceKind kind, ops::ScalarType type, Register value) {
    return emit(ops::Opcode::kReduce, type, {value}, static_cast<std::int64_t>(kind));
  }
  Register core(ops::ScalarType type) {
    kernel.core_type = type;
    return emit(ops::Opcode::kCore, type);
  }
  int scalar(ops::ScalarType type) {
    graph.scalars.push_back(type);
    return static_cast<int>(graph.scalars.size()) - 1;
  }

  void store(const dispatch::Operand& operand, Register value) {
    kernel.stores.push_back(operand);
    kernel.program.outputs.push_back(value);
  }
  /// A dense result over the space; a row value has one element a row.
  dispatch::Operand result(DType dtype, Register value, bool is_row_value = false,
                           dispatch::BufferKind kind = dispatch::BufferKind::kResult) {
    dispatch::Extents extents = kernel.space;
    for (int axis = kMaxDims - kernel.reduce_dims; is_row_value && axis < kMaxDims; ++axis) {
      extents[static_cast<std::size_t>(axis)] = 1;
    }
    dispatch::Operand operand = dense(dtype, extents, kind);
    operand.extents = kernel.space;
    for (int axis = kMaxDims - kernel.reduce_dims; is_row_value && axis < kMaxDims; ++axis) {
      operand.strides[static_cast<std::size_t>(axis)] = 0;
    }
    store(operand, value);
    return operand;
  }

  dispatch::ExecutionGraph finish() {
    graph.kernels.assign(1, kernel);
    return graph;
  }

  dispatch::ExecutionGraph graph;
  dispatch::Kernel kernel;
};

}  // namespace vkml::oracle
