// Runs the program of an elementwise row on many inputs at once: one loop over the samples for each
// instruction, written from the comments of scalar_program.h. For tests of the programs' accuracy.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "vkml/core/half.h"
#include "vkml/ops/far_functions.h"
#include "vkml/ops/scalar_program.h"

namespace vkml::interpreter {

using ops::Instruction;
using ops::Opcode;
using ops::ScalarType;

/// Values of one register for all samples, as bits: f32, i32 in the low 32, bools 0 or 1.
using Column = std::vector<std::uint64_t>;

template <typename T>
std::uint64_t to_bits(T value) {
  if constexpr (std::is_same_v<T, float>) return std::bit_cast<std::uint32_t>(value);
  if constexpr (std::is_same_v<T, double>) return std::bit_cast<std::uint64_t>(value);
  if constexpr (std::is_same_v<T, std::int32_t>) return static_cast<std::uint32_t>(value);
  if constexpr (std::is_same_v<T, std::int64_t>) return static_cast<std::uint64_t>(value);
  if constexpr (std::is_same_v<T, bool>) return value ? 1 : 0;
}

template <typename T>
T from_bits(std::uint64_t bits) {
  if constexpr (std::is_same_v<T, float>)
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
  if constexpr (std::is_same_v<T, double>) return std::bit_cast<double>(bits);
  if constexpr (std::is_same_v<T, std::int32_t>) return static_cast<std::int32_t>(bits);
  if constexpr (std::is_same_v<T, std::int64_t>) return static_cast<std::int64_t>(bits);
  if constexpr (std::is_same_v<T, bool>) return bits != 0;
}

/// Calls action(T{}) with the C++ type of a scalar type.
template <typename Action>
void with_scalar_type(ScalarType type, Action action) {
  switch (type) {
    case ScalarType::kBool:
      return action(bool{});
    case ScalarType::kI32:
      return action(std::int32_t{});
    case ScalarType::kI64:
      return action(std::int64_t{});
    case ScalarType::kF32:
      return action(float{});
    case ScalarType::kF64:
      return action(double{});
  }
}

template <typename T>
T wrap(std::uint64_t bits) {
  return from_bits<T>(bits);
}

/// An arithmetic instruction whose operands and result have type T.
template <typename T>
T arithmetic(Opcode op, T a, T b, T c) {
  if constexpr (std::is_same_v<T, bool>) {
    switch (op) {
      case Opcode::kAnd:
        return a && b;
      case Opcode::kOr:
        return a || b;
      case Opcode::kXor:
        return a != b;
      case Opcode::kNot:
        return !a;
      default:
        throw std::logic_error("not an instruction on bools");
    }
  } else if constexpr (std::is_floating_point_v<T>) {
    switch (op) {
      case Opcode::kAdd:
        return a + b;
      case Opcode::kSub:
        return a - b;
      case Opcode::kMul:
        return a * b;
      case Opcode::kDiv:
        return a / b;
      case Opcode::kNeg:
        return -a;
      case Opcode::kAbs:
        return std::fabs(a);
      case Opcode::kMin:
        return a < b ? a : b;
      case Opcode::kMax:
        return a > b ? a : b;
      case Opcode::kFma:
        return std::fma(a, b, c);
      case Opcode::kSqrt:
        return std::sqrt(a);
      case Opcode::kFloor:
        return std::floor(a);
      case Opcode::kCeil:
        return std::ceil(a);
      case Opcode::kTrunc:
        return std::trunc(a);
      case Opcode::kRoundEven:
        return std::nearbyint(a);
      case Opcode::kExp:
        return std::exp(a);
      default:
        throw std::logic_error("not an instruction on floats");
    }
  } else {
    using Unsigned = std::make_unsigned_t<T>;
    const auto ua = static_cast<Unsigned>(a);
    const auto ub = static_cast<Unsigned>(b);
    const bool unsafe = b == 0 || b == -1;
    const bool is_shift =
        op == Opcode::kShiftLeft || op == Opcode::kShiftRight || op == Opcode::kShiftRightLogical;
    if ((unsafe && (op == Opcode::kDiv || op == Opcode::kRem)) ||
        (is_shift && ub >= sizeof(T) * 8)) {
      throw std::logic_error("an operand that the instruction does not define");
    }
    switch (op) {
      case Opcode::kAdd:
        return static_cast<T>(ua + ub);
      case Opcode::kSub:
        return static_cast<T>(ua - ub);
      case Opcode::kMul:
        return static_cast<T>(ua * ub);
      case Opcode::kDiv:
        return a / b;
      case Opcode::kRem:
        return a % b;
      case Opcode::kNeg:
        return static_cast<T>(0 - ua);
      case Opcode::kAbs:
        return a < 0 ? static_cast<T>(0 - ua) : a;
      case Opcode::kMin:
        return a < b ? a : b;
      case Opcode::kMax:
        return a > b ? a : b;
      case Opcode::kMulHighU32:
        return static_cast<T>((std::uint64_t{ua} * ub) >> 32);
      case Opcode::kAnd:
        return a & b;
      case Opcode::kOr:
        return a | b;
      case Opcode::kXor:
        return a ^ b;
      case Opcode::kNot:
        return ~a;
      case Opcode::kShiftLeft:
        return static_cast<T>(ua << b);
      case Opcode::kShiftRight:
        return a >> b;
      case Opcode::kShiftRightLogical:
        return static_cast<T>(ua >> b);
      default:
        throw std::logic_error("not an instruction on integers");
    }
  }
}

template <typename T>
bool compare(Opcode op, T a, T b) {
  switch (op) {
    case Opcode::kEqual:
      return a == b;
    case Opcode::kNotEqual:
      return a != b;
    case Opcode::kLess:
      return a < b;
    default:
      return a <= b;
  }
}

inline std::uint64_t narrow(ScalarType type, DType dtype, std::uint64_t bits) {
  if (dtype == DType::kU8) return bits & 0xff;
  if (type != ScalarType::kF32) throw std::logic_error("halves are computed in f32");
  const float value = from_bits<float>(bits);
  return to_bits(dtype == DType::kF16 ? f16_to_f32(f32_to_f16(value))
                                      : bf16_to_f32(f32_to_bf16(value)));
}

/// kBeyond, by the program that devices without a function of their own run.
inline std::vector<Column> run_program_of_many(const ops::ScalarProgram& program,
                                               const std::vector<Column>& arguments);
inline Column run_beyond(const Instruction& in, const Column& near, const Column& b,
                         const Column& c) {
  const auto function = static_cast<ops::FarFunction>(in.imm);
  const ops::FarProgram program = ops::far_program(function, in.type);
  std::vector<Column> state = run_program_of_many(program.begin, {b, c});
  const auto is_missing = [&](std::uint64_t bits) {
    const bool is_wide = program.begin.code[program.begin.outputs.back()].type == ScalarType::kI64;
    return is_wide ? from_bits<std::int64_t>(bits) > 0 : from_bits<std::int32_t>(bits) > 0;
  };
  while (std::any_of(state.back().begin(), state.back().end(), is_missing)) {
    state = run_program_of_many(program.step, state);
  }
  state.insert(state.begin(), {b, c});
  const Column far = run_program_of_many(program.end, state)[0];
  Column out(near.size());
  with_scalar_type(in.type, [&]<typename T>(T) {
    if constexpr (std::is_floating_point_v<T>) {
      for (std::size_t i = 0; i < near.size(); ++i) {
        T limit = static_cast<T>(ops::reach_of(function, in.type));
        if (function == ops::FarFunction::kFmod) limit *= std::fabs(from_bits<T>(c[i]));
        out[i] = std::fabs(from_bits<T>(b[i])) >= limit ? far[i] : near[i];
      }
    } else {
      throw std::logic_error("not an instruction on floats");
    }
  });
  return out;
}

/// Values of the program's outputs. `arguments[i]` holds the samples of kArgument i.
inline std::vector<Column> run_program_of_many(const ops::ScalarProgram& program,
                                               const std::vector<Column>& arguments) {
  const std::size_t count = arguments[0].size();
  std::vector<Column> registers;
  const auto type_of = [&](std::uint16_t reg) { return program.code[reg].type; };
  for (const Instruction& in : program.code) {
    Column out(count);
    const int operands = ops::operand_count(in.op);
    const Column* a = operands > 0 ? &registers[in.a] : &out;
    const Column* b = operands > 1 ? &registers[in.b] : &out;
    const Column* c = operands > 2 ? &registers[in.c] : &out;
    switch (in.op) {
      case Opcode::kArgument:
        out = arguments.at(static_cast<std::size_t>(in.imm));
        break;
      case Opcode::kConstant:
        with_scalar_type(in.type, [&]<typename T>(T) {
          out.assign(count, to_bits(from_bits<T>(static_cast<std::uint64_t>(in.imm))));
        });
        break;
      case Opcode::kSelect:
        for (std::size_t i = 0; i < count; ++i) out[i] = (*a)[i] != 0 ? (*b)[i] : (*c)[i];
        break;
      case Opcode::kBeyond:
        out = run_beyond(in, *a, *b, *c);
        break;
      case Opcode::kBitcast:
        out = *a;
        break;
      case Opcode::kNarrow:
        for (std::size_t i = 0; i < count; ++i) {
          out[i] = narrow(in.type, static_cast<DType>(in.imm), (*a)[i]);
        }
        break;
      case Opcode::kConvert:
        with_scalar_type(type_of(in.a), [&]<typename From>(From) {
          with_scalar_type(in.type, [&]<typename To>(To) {
            for (std::size_t i = 0; i < count; ++i) {
              out[i] = to_bits(static_cast<To>(from_bits<From>((*a)[i])));
            }
          });
        });
        break;
      case Opcode::kEqual:
      case Opcode::kNotEqual:
      case Opcode::kLess:
      case Opcode::kLessEqual:
        if (type_of(in.a) != type_of(in.b)) throw std::logic_error("operands of two types");
        with_scalar_type(type_of(in.a), [&]<typename T>(T) {
          for (std::size_t i = 0; i < count; ++i) {
            out[i] = compare(in.op, from_bits<T>((*a)[i]), from_bits<T>((*b)[i])) ? 1 : 0;
          }
        });
        break;
      default:
        with_scalar_type(in.type, [&]<typename T>(T) {
          for (std::size_t i = 0; i < count; ++i) {
            out[i] = to_bits(arithmetic(in.op, from_bits<T>((*a)[i]), from_bits<T>((*b)[i]),
                                        from_bits<T>((*c)[i])));
          }
        });
        break;
    }
    registers.push_back(std::move(out));
  }
  std::vector<Column> results;
  for (const std::uint16_t output : program.outputs) results.push_back(registers[output]);
  return results;
}

/// Values of the program's only output.
inline Column run_program(const ops::ScalarProgram& program, const std::vector<Column>& arguments) {
  return run_program_of_many(program, arguments)[0];
}

}  // namespace vkml::interpreter
