#include "tile/simplify.h"

#include <array>
#include <cstring>

#include "tile/loops.h"

namespace vkml::cpu {
namespace {

using ops::Instruction;
using ops::Opcode;
using ops::ScalarType;

std::array<std::uint16_t*, 3> operands_of(Instruction& instruction) {
  return {&instruction.a, &instruction.b, &instruction.c};
}

bool is_source(Opcode op) { return ops::operand_count(op) == 0; }

// Evaluates by the very loop that would run, on one vector.
class Folder {
 public:
  explicit Folder(const std::vector<Instruction>& code) : code_(code) {}

  bool folds(const Instruction& instruction) const {
    const int count = ops::operand_count(instruction.op);
    if (count == 0 || instruction.op == Opcode::kReduce || instruction.op == Opcode::kCheckIndex) {
      return false;
    }
    const std::array<std::uint16_t, 3> operands{instruction.a, instruction.b, instruction.c};
    for (int k = 0; k < count; ++k) {
      if (code_[operands[static_cast<std::size_t>(k)]].op != Opcode::kConstant) return false;
    }
    return true;
  }

  /// The constant that the instruction gives; the instruction itself if it has no loop.
  Instruction fold(const Instruction& instruction) const {
    const Loop loop = arithmetic_loop(instruction.op, instruction.type, code_[instruction.a].type,
                                      instruction.imm, 0);
    if (loop == nullptr) return instruction;
    std::array<Vector, 4> vectors;
    std::array<std::byte*, 4> slots;
    const std::array<std::uint16_t, 3> operands{instruction.a, instruction.b, instruction.c};
    Step step;
    step.immediate = instruction.imm;
    for (std::size_t k = 0; k < slots.size(); ++k) {
      slots[k] = vectors[k].bytes.data();
      if (k == 0) continue;
      step.source[k - 1] = static_cast<std::uint16_t>(k);
      if (static_cast<int>(k) <= ops::operand_count(instruction.op)) {
        fill(vectors[k], code_[operands[k - 1]]);
      }
    }
    Frame frame;
    frame.slots = slots.data();
    frame.count = kLaneMultiple;
    loop(step, frame);
    return {Opcode::kConstant, instruction.type, 0, 0, 0, bits(vectors[0], instruction.type)};
  }

 private:
  struct alignas(64) Vector {
    std::array<std::byte, kLaneMultiple * 8> bytes{};
  };

  static void fill(Vector& vector, const Instruction& constant) {
    std::int64_t value = constant.imm;
    if (constant.type == ScalarType::kBool) value = value != 0 ? -1 : 0;
    const std::size_t bytes = register_bytes(constant.type);
    for (std::size_t i = 0; i < kLaneMultiple; ++i) {
      std::memcpy(vector.bytes.data() + i * bytes, &value, bytes);  // the low bytes come first
    }
  }

  static std::int64_t bits(const Vector& vector, ScalarType type) {
    if (register_bytes(type) == 8) {
      std::int64_t value = 0;
      std::memcpy(&value, vector.bytes.data(), sizeof(value));
      return value;
    }
    std::int32_t value = 0;
    std::memcpy(&value, vector.bytes.data(), sizeof(value));
    return type == ScalarType::kBool ? value & 1 : value;
  }

  const std::vector<Instruction>& code_;
};

// The operand that the instruction merely passes on; its own register if it does something.
std::uint16_t passes_on(const std::vector<Instruction>& code, std::uint16_t self) {
  const Instruction& instruction = code[self];
  switch (instruction.op) {
    case Opcode::kSelect:
      if (code[instruction.a].op != Opcode::kConstant) return self;
      return code[instruction.a].imm != 0 ? instruction.b : instruction.c;
    case Opcode::kConvert:
      return code[instruction.a].type == instruction.type ? instruction.a : self;
    case Opcode::kNarrow:
      return static_cast<DType>(instruction.imm) == ops::storage_type(instruction.type)
                 ? instruction.a
                 : self;
    default:
      return self;
  }
}

ops::ScalarProgram without_dead_code(const ops::ScalarProgram& program) {
  std::vector<bool> is_live(program.code.size(), false);
  for (const std::uint16_t output : program.outputs) is_live[output] = true;
  for (std::size_t i = program.code.size(); i-- > 0;) {
    Instruction instruction = program.code[i];
    if (instruction.op == Opcode::kCheckIndex) is_live[i] = true;
    if (!is_live[i]) continue;
    for (int k = 0; k < ops::operand_count(instruction.op); ++k) {
      is_live[*operands_of(instruction)[static_cast<std::size_t>(k)]] = true;
    }
  }
  ops::ScalarProgram result;
  std::vector<std::uint16_t> place(program.code.size(), 0);
  for (std::size_t i = 0; i < program.code.size(); ++i) {
    if (!is_live[i]) continue;
    Instruction instruction = program.code[i];
    for (int k = 0; k < ops::operand_count(instruction.op); ++k) {
      std::uint16_t& operand = *operands_of(instruction)[static_cast<std::size_t>(k)];
      operand = place[operand];
    }
    place[i] = static_cast<std::uint16_t>(result.code.size());
    result.code.push_back(instruction);
  }
  for (const std::uint16_t output : program.outputs) result.outputs.push_back(place[output]);
  return result;
}

}  // namespace

ops::ScalarProgram simplify(const ops::ScalarProgram& program) {
  ops::ScalarProgram result = program;
  std::vector<std::uint16_t> replacement(program.code.size());
  const Folder folder(result.code);
  for (std::size_t i = 0; i < result.code.size(); ++i) {
    Instruction& instruction = result.code[i];
    if (!is_source(instruction.op)) {
      for (int k = 0; k < ops::operand_count(instruction.op); ++k) {
        std::uint16_t& operand = *operands_of(instruction)[static_cast<std::size_t>(k)];
        operand = replacement[operand];
      }
      if (folder.folds(instruction)) instruction = folder.fold(instruction);
    }
    replacement[i] = passes_on(result.code, static_cast<std::uint16_t>(i));
  }
  for (std::uint16_t& output : result.outputs) output = replacement[output];
  return without_dead_code(result);
}

}  // namespace vkml::cpu
