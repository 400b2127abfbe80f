#include "tile/polynomials.h"

#include <algorithm>
#include <array>

namespace vkml::cpu {
namespace {

using ops::Instruction;
using ops::Opcode;

std::vector<int> count_uses(const ops::ScalarProgram& program) {
  std::vector<int> uses(program.code.size(), 0);
  for (const Instruction& instruction : program.code) {
    const std::array<std::uint16_t, 3> operands{instruction.a, instruction.b, instruction.c};
    for (int k = 0; k < ops::operand_count(instruction.op); ++k) {
      ++uses[operands[static_cast<std::size_t>(k)]];
    }
  }
  for (const std::uint16_t output : program.outputs) ++uses[output];
  return uses;
}

bool adds_constant(const ops::ScalarProgram& program, std::uint16_t i) {
  const Instruction& instruction = program.code[i];
  return instruction.op == Opcode::kFma && program.code[instruction.c].op == Opcode::kConstant;
}

// The factor that is not x, where x is one of both.
bool split(const Instruction& fma, std::uint16_t x, std::uint16_t& other) {
  if (fma.a != x && fma.b != x) return false;
  other = fma.b == x ? fma.a : fma.b;
  return true;
}

// The chain ending at register i whose argument is x: its fmas, last first.
std::vector<std::uint16_t> chain(const ops::ScalarProgram& program, const std::vector<int>& uses,
                                 std::uint16_t i, std::uint16_t x, std::uint16_t& start) {
  std::vector<std::uint16_t> fmas;
  std::uint16_t at = i;
  while (adds_constant(program, at) && (at == i || uses[at] == 1) &&
         split(program.code[at], x, start)) {
    fmas.push_back(at);
    at = start;
  }
  return fmas;
}

}  // namespace

Polynomials find_polynomials(const ops::ScalarProgram& program) {
  const std::size_t count = program.code.size();
  Polynomials result{std::vector<Polynomial>(count), std::vector<bool>(count, false)};
  const std::vector<int> uses = count_uses(program);
  for (std::size_t k = count; k-- > 0;) {
    const auto i = static_cast<std::uint16_t>(k);
    if (result.absorbed[i] || !adds_constant(program, i)) continue;
    std::uint16_t start_a = 0;
    std::uint16_t start_b = 0;
    const Instruction& fma = program.code[i];
    const auto by_a = chain(program, uses, i, fma.a, start_a);
    const auto by_b = chain(program, uses, i, fma.b, start_b);
    const bool a_is_x = by_a.size() > by_b.size();
    const auto& fmas = a_is_x ? by_a : by_b;
    if (fmas.size() < 2) continue;
    Polynomial& polynomial = result.ending_at[i];
    polynomial.x = a_is_x ? fma.a : fma.b;
    polynomial.start = a_is_x ? start_a : start_b;
    for (const std::uint16_t at : fmas) {
      const std::int64_t bits = program.code[program.code[at].c].imm;
      polynomial.coefficients.push_back(static_cast<std::uint64_t>(bits));
      if (at != i) result.absorbed[at] = true;
    }
    std::reverse(polynomial.coefficients.begin(), polynomial.coefficients.end());
  }
  return result;
}

}  // namespace vkml::cpu
