#include "kernels/program.h"

#include <spirv/unified1/GLSL.std.450.h>

#include <bit>

#include "kernels/conversions.h"
#include "vkml/core/error.h"
#include "vkml/ops/far_functions.h"

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

std::vector<Value> emit_program(Shader& shader, const ops::ScalarProgram& program,
                                const std::vector<Value>& arguments) {
  spirv::Builder& b = shader.builder();
  const int components = arguments[0].type.components;
  std::vector<Value> values;
  for (const ops::Instruction& instruction : program.code) {
    const int count = ops::operand_count(instruction.op);
    if (instruction.op == Opcode::kArgument) {
      values.push_back(arguments[static_cast<std::size_t>(instruction.imm)]);
    } else if (instruction.op == Opcode::kConstant) {
      values.push_back(b.constant(value_type(instruction.type, components),
                                  static_cast<std::uint64_t>(instruction.imm)));
    } else {
      values.push_back(emit_operation(shader, instruction, values[instruction.a],
                                      count > 1 ? values[instruction.b] : Value{},
                                      count > 2 ? values[instruction.c] : Value{}));
    }
  }
  std::vector<Value> results;
  for (const std::uint16_t output : program.outputs) results.push_back(values[output]);
  return results;
}

namespace {

Value any_component(Value condition) {
  spirv::Builder& b = *condition.builder;
  Value any = b.component(condition, 0);
  for (int k = 1; k < condition.type.components; ++k) {
    any = logical_or(any, b.component(condition, k));
  }
  return any;
}

Value emit_far(Shader& shader, const ops::FarProgram& program, Value b, Value c) {
  std::vector<Value> state = emit_program(shader, program.begin, {b, c});
  if (!program.step.outputs.empty()) {
    std::vector<spirv::Variable> variables;
    for (const Value& value : state) {
      variables.emplace_back(shader.builder(), value.type).store(value);
    }
    const auto load = [&] {
      for (std::size_t k = 0; k < state.size(); ++k) state[k] = variables[k].load();
    };
    shader.builder().while_loop(
        [&] {
          const Value missing = variables.back().load();
          return any_component(signed_less(shader.builder().constant(missing.type, 0), missing));
        },
        [&] {
          load();
          const std::vector<Value> next = emit_program(shader, program.step, state);
          for (std::size_t k = 0; k < next.size(); ++k) variables[k].store(next[k]);
        });
    load();
  }
  state.insert(state.begin(), {b, c});
  return emit_program(shader, program.end, state)[0];
}

}  // namespace

Value emit_beyond(Shader& shader, const ops::Instruction& instruction, Value near, Value b,
                  Value c) {
  spirv::Builder& builder = shader.builder();
  const auto function = static_cast<ops::FarFunction>(instruction.imm);
  const double reach = ops::reach_of(function, instruction.type);
  const bool is_f32 = instruction.type == ops::ScalarType::kF32;
  Value limit =
      builder.constant(near.type, is_f32 ? std::bit_cast<std::uint32_t>(static_cast<float>(reach))
                                         : std::bit_cast<std::uint64_t>(reach));
  const auto magnitude = [&](Value value) {
    return builder.extended(GLSLstd450FAbs, value.type, {value});
  };
  if (function == ops::FarFunction::kFmod) limit = limit * magnitude(c);
  const Value is_far = less_equal(limit, magnitude(b));
  const spirv::Variable result(builder, near.type);
  result.store(near);
  builder.if_then(any_component(is_far), [&] {
    const Value far = emit_far(shader, ops::far_program(function, instruction.type), b, c);
    result.store(builder.select(is_far, far, near));
  });
  return result.load();
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
