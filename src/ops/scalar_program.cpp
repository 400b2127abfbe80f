#include "vkml/ops/scalar_program.h"

#include <fmt/format.h>

#include "vkml/core/error.h"

namespace vkml::ops {

ScalarType compute_type(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return ScalarType::kBool;
    case DType::kU8:
    case DType::kI32:
      return ScalarType::kI32;
    case DType::kI64:
      return ScalarType::kI64;
    case DType::kF16:
    case DType::kBF16:
    case DType::kF32:
      return ScalarType::kF32;
    case DType::kF64:
      return ScalarType::kF64;
  }
  throw InternalError("unknown dtype");
}

DType storage_type(ScalarType type) {
  constexpr DType kTypes[] = {DType::kBool, DType::kI32, DType::kI64, DType::kF32, DType::kF64};
  return kTypes[static_cast<int>(type)];
}

namespace {

struct OpcodeInfo {
  const char* name;
  int operands;
};

// In the order of Opcode.
constexpr OpcodeInfo kOpcodes[] = {
    {"argument", 0},
    {"load", 0},
    {"core", 0},
    {"scalar", 0},
    {"constant", 0},
    {"iota", 0},
    {"add", 2},
    {"sub", 2},
    {"mul", 2},
    {"div", 2},
    {"rem", 2},
    {"neg", 1},
    {"abs", 1},
    {"min", 2},
    {"max", 2},
    {"fma", 3},
    {"sqrt", 1},
    {"floor", 1},
    {"ceil", 1},
    {"trunc", 1},
    {"round_even", 1},
    {"exp", 1},
    {"beyond", 3},
    {"mul_high_u32", 2},
    {"and", 2},
    {"or", 2},
    {"xor", 2},
    {"not", 1},
    {"shift_left", 2},
    {"shift_right", 2},
    {"shift_right_logical", 2},
    {"equal", 2},
    {"not_equal", 2},
    {"less", 2},
    {"less_equal", 2},
    {"select", 3},
    {"convert", 1},
    {"bitcast", 1},
    {"narrow", 1},
    {"reduce", 1},
    {"check_index", 2},
};
static_assert(std::size(kOpcodes) == static_cast<std::size_t>(Opcode::kCheckIndex) + 1);

}  // namespace

int operand_count(Opcode op) { return kOpcodes[static_cast<int>(op)].operands; }
const char* name_of(Opcode op) { return kOpcodes[static_cast<int>(op)].name; }

const char* name_of(ScalarType type) {
  constexpr const char* kNames[] = {"bool", "i32", "i64", "f32", "f64"};
  return kNames[static_cast<int>(type)];
}

const char* name_of(ReduceKind kind) {
  constexpr const char* kNames[] = {"sum", "prod", "max", "min", "argmax", "argmin", "any", "all"};
  return kNames[static_cast<int>(kind)];
}

std::string to_string(const ScalarProgram& program) {
  std::string text;
  for (std::size_t i = 0; i < program.code.size(); ++i) {
    const Instruction& instruction = program.code[i];
    text += fmt::format("  r{} = {}.{}", i, name_of(instruction.op), name_of(instruction.type));
    const std::uint16_t operands[] = {instruction.a, instruction.b, instruction.c};
    for (int k = 0; k < operand_count(instruction.op); ++k)
      text += fmt::format(" r{}", operands[k]);
    if (instruction.op == Opcode::kReduce) {
      text += fmt::format(" {}", name_of(static_cast<ReduceKind>(instruction.imm)));
    } else if (instruction.op <= Opcode::kIota || instruction.op == Opcode::kBeyond ||
               instruction.op >= Opcode::kNarrow) {
      text += fmt::format(" #{}", instruction.imm);
    }
    text += "\n";
  }
  for (std::size_t i = 0; i < program.outputs.size(); ++i) {
    text += fmt::format("  store {} <- r{}\n", i, program.outputs[i]);
  }
  return text;
}

}  // namespace vkml::ops
