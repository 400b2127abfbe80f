#include "kernels/program.h"

#include "kernels/conversions.h"
#include "vkml/core/error.h"

namespace vkml::vulkan {

using ops::Opcode;
using spirv::Value;

void require_program_types(const Context& context) {
  for (const ops::Instruction& instruction : context.kernel.program.code) {
    require_type(context, instruction.type);
  }
}

ProgramEmitter::ProgramEmitter(Shader& shader, int components, ProgramSources sources)
    : shader_(shader),
      kernel_(shader.context().kernel),
      components_(components),
      sources_(std::move(sources)),
      values_(kernel_.program.code.size()) {}

void ProgramEmitter::emit_all() {
  for (std::size_t i = 0; i < values_.size(); ++i) emit(i);
}

void ProgramEmitter::emit(std::size_t index) {
  values_[index] = evaluate(kernel_.program.code[index]);
}

Value ProgramEmitter::value(std::size_t index) {
  if (!values_[index]) throw InternalError("[vulkan] a register was read before it was written");
  return shader_.builder().splat(values_[index], components_);
}

Value ProgramEmitter::evaluate(const ops::Instruction& instruction) {
  spirv::Builder& b = shader_.builder();
  const spirv::Type type = value_type(instruction.type, components_);
  switch (instruction.op) {
    case Opcode::kLoad:
      return sources_.load(static_cast<int>(instruction.imm));
    case Opcode::kCore:
      return sources_.core;
    case Opcode::kScalar:
      return shader_.scalar(static_cast<int>(instruction.imm));
    case Opcode::kConstant:
      return b.constant(value_type(instruction.type), static_cast<std::uint64_t>(instruction.imm));
    case Opcode::kIota:
      return b.widen(sources_.coordinate(static_cast<int>(instruction.imm)), type.scalar);
    case Opcode::kArgument:
      throw InternalError("[vulkan] an unbound argument in a program");
    case Opcode::kReduce:
      throw InternalError("[vulkan] a reduction outside a row kernel");
    case Opcode::kCheckIndex:
      return emit_index_check(shader_, static_cast<int>(instruction.imm), value(instruction.a),
                              value(instruction.b));
    default:
      break;
  }
  const int count = ops::operand_count(instruction.op);
  return emit_operation(shader_, instruction, value(instruction.a),
                        count > 1 ? value(instruction.b) : Value{},
                        count > 2 ? value(instruction.c) : Value{});
}

Value emit_index_check(Shader& shader, int site, Value index, Value extent) {
  spirv::Builder& b = shader.builder();
  // As unsigned, a negative index is past the end too.
  const Value is_bad = less_equal(extent, index);
  for (int k = 0; k < index.type.components; ++k) {
    b.if_then(b.component(is_bad, k),
              [&] { shader.report_bad_index(site, b.component(index, k)); });
  }
  const Value zero = b.constant(index.type, 0);
  const Value one = b.constant(index.type, 1);
  const Value last = b.select(equal(extent, zero), zero, extent - one);
  return b.select(is_bad, b.select(signed_less(index, zero), zero, last), index);
}

}  // namespace vkml::vulkan
