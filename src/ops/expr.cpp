#include "vkml/ops/expr.h"

#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>
#include <span>

#include "vkml/core/error.h"
#include "vkml/core/half.h"

namespace vkml::ops {
namespace {

std::int64_t bits_from(ScalarType type, double value) {
  switch (type) {
    case ScalarType::kBool:
      return value != 0;
    case ScalarType::kI32:
      return static_cast<std::int32_t>(value);
    case ScalarType::kI64:
      return static_cast<std::int64_t>(value);
    case ScalarType::kF32:
      return std::bit_cast<std::int32_t>(static_cast<float>(value));
    case ScalarType::kF64:
      return std::bit_cast<std::int64_t>(value);
  }
  throw InternalError("unknown scalar type");
}

bool is_constant(const Expr& x) { return x.builder().code()[x.reg()].op == Opcode::kConstant; }

bool is_constant(const Expr& x, double value) {
  return is_constant(x) && x.builder().code()[x.reg()].imm == bits_from(x.type(), value);
}

/// A literal shift count that the instruction takes as it is.
bool is_constant_within(const Expr& x, int bits) {
  if (!is_constant(x)) return false;
  const std::int64_t value = x.builder().code()[x.reg()].imm;
  return value >= 0 && value < bits;
}

bool is_commutative(Opcode op) {
  switch (op) {
    case Opcode::kAdd:
    case Opcode::kMul:
    case Opcode::kMulHighU32:
    case Opcode::kAnd:
    case Opcode::kOr:
    case Opcode::kXor:
    case Opcode::kEqual:
    case Opcode::kNotEqual:
      return true;
    default:
      return false;
  }
}

/// The value of an instruction whose operands are all f32, i32 or bool constants.
std::optional<std::int64_t> fold(const Instruction& instruction,
                                 const std::vector<Instruction>& code) {
  const int count = operand_count(instruction.op);
  if (count == 0 || instruction.op >= Opcode::kNarrow) return std::nullopt;
  const std::array<std::uint16_t, 3> operands = {instruction.a, instruction.b, instruction.c};
  for (const std::uint16_t reg : std::span(operands).first(static_cast<std::size_t>(count))) {
    if (code[reg].op != Opcode::kConstant) return std::nullopt;
  }
  const ScalarType type = code[operands[count == 3 ? 1 : 0]].type;
  if (type == ScalarType::kF32 && instruction.type == ScalarType::kF32) {
    const auto value = [&](std::uint16_t reg) {
      return std::bit_cast<float>(static_cast<std::int32_t>(code[reg].imm));
    };
    const float a = value(instruction.a);
    const float b = count > 1 ? value(instruction.b) : 0;
    float result = 0;
    switch (instruction.op) {
      case Opcode::kAdd:
        result = a + b;
        break;
      case Opcode::kSub:
        result = a - b;
        break;
      case Opcode::kMul:
        result = a * b;
        break;
      case Opcode::kDiv:
        result = a / b;
        break;
      case Opcode::kNeg:
        result = -a;
        break;
      default:
        return std::nullopt;
    }
    return std::bit_cast<std::int32_t>(result);
  }
  if (type == ScalarType::kI32 && instruction.type == ScalarType::kI32) {
    const auto a = static_cast<std::uint32_t>(code[instruction.a].imm);
    const auto b = static_cast<std::uint32_t>(count > 1 ? code[instruction.b].imm : 0);
    switch (instruction.op) {
      case Opcode::kAdd:
        return static_cast<std::int32_t>(a + b);
      case Opcode::kSub:
        return static_cast<std::int32_t>(a - b);
      case Opcode::kMul:
        return static_cast<std::int32_t>(a * b);
      default:
        return std::nullopt;
    }
  }
  return std::nullopt;
}

int width(ScalarType type) {
  return type == ScalarType::kI64 || type == ScalarType::kF64 ? 64 : 32;
}

void require(bool condition, const char* what, const Expr& x) {
  if (condition) return;
  throw DTypeError(std::string(what) + " is not defined for " + name_of(x.type()) +
                   (x.type() == ScalarType::kBool
                        ? ". Use a logical operator, or convert first: x.to(vkml.int32)"
                        : ". Convert first: x.to(vkml.float32)"));
}

Expr binary(Opcode op, const Expr& a, const Expr& b) { return a.emit(op, a.type(), b); }
Expr compare(Opcode op, const Expr& a, const Expr& b) { return a.emit(op, ScalarType::kBool, b); }

Expr round_with(Opcode op, const Expr& x) {
  return is_floating(x.type()) ? x.emit(op, x.type()) : x;
}

/// A divisor that integer division accepts: 1 in place of 0 and -1.
Expr safe_divisor(const Expr& b) { return select((b == 0) | (b == -1), b.constant(1), b); }

}  // namespace

std::size_t ProgramBuilder::Hash::operator()(const Instruction& i) const {
  std::uint64_t hash = static_cast<std::uint64_t>(i.imm) * 0x9e3779b97f4a7c15u;
  const std::uint64_t fields =
      static_cast<std::uint64_t>(i.op) | (static_cast<std::uint64_t>(i.type) << 8) |
      (static_cast<std::uint64_t>(i.a) << 16) | (static_cast<std::uint64_t>(i.b) << 32) |
      (static_cast<std::uint64_t>(i.c) << 48);
  hash ^= fields * 0xff51afd7ed558ccdu;
  return static_cast<std::size_t>(hash ^ (hash >> 29));
}

std::uint16_t ProgramBuilder::emit(const Instruction& given) {
  Instruction instruction = given;
  if (is_commutative(instruction.op) && instruction.a > instruction.b) {
    std::swap(instruction.a, instruction.b);
  }
  if (const auto bits = fold(instruction, code_)) {
    instruction = {Opcode::kConstant, instruction.type, 0, 0, 0, *bits};
  }
  const auto [entry, added] =
      known_.try_emplace(instruction, static_cast<std::uint16_t>(code_.size()));
  if (added) {
    if (code_.size() > std::numeric_limits<std::uint16_t>::max()) {
      throw InternalError("a scalar program grew past 65535 instructions");
    }
    code_.push_back(instruction);
  }
  return entry->second;
}

Expr Expr::constant(double value) const { return constant_of(type(), value); }
Expr Expr::constant_of(ScalarType type, double value) const {
  return bits_of(type, bits_from(type, value));
}
Expr Expr::bits_of(ScalarType type, std::int64_t bits) const {
  return {builder_, builder_->emit({Opcode::kConstant, type, 0, 0, 0, bits})};
}
Expr Expr::emit(Opcode op, ScalarType type, std::int64_t imm) const {
  return {builder_, builder_->emit({op, type, reg_, 0, 0, imm})};
}
Expr Expr::emit(Opcode op, ScalarType type, const Expr& b, std::int64_t imm) const {
  return {builder_, builder_->emit({op, type, reg_, b.reg_, 0, imm})};
}
Expr Expr::emit(Opcode op, ScalarType type, const Expr& b, const Expr& c, std::int64_t imm) const {
  return {builder_, builder_->emit({op, type, reg_, b.reg_, c.reg_, imm})};
}

Expr operator+(const Expr& a, const Expr& b) {
  if (a.type() == ScalarType::kBool) return a | b;
  // x + (-0.0) is x for every x, and so is x + 0 for integers.
  if (is_constant(b, is_floating(b.type()) ? -0.0 : 0.0)) return a;
  return binary(Opcode::kAdd, a, b);
}
Expr operator-(const Expr& a, const Expr& b) {
  require(a.type() != ScalarType::kBool, "subtraction", a);
  if (is_constant(b, 0.0)) return a;
  return binary(Opcode::kSub, a, b);
}
Expr operator*(const Expr& a, const Expr& b) {
  if (a.type() == ScalarType::kBool) return a & b;
  if (is_constant(b, 1.0)) return a;
  if (is_constant(a, 1.0)) return b;
  return binary(Opcode::kMul, a, b);
}
Expr operator/(const Expr& a, const Expr& b) {
  require(a.type() != ScalarType::kBool, "division", a);
  if (is_floating(a.type())) return is_constant(b, 1.0) ? a : binary(Opcode::kDiv, a, b);
  const Expr quotient = binary(Opcode::kDiv, a, safe_divisor(b));
  return select(b == 0, b.constant(0), select(b == -1, -a, quotient));
}
Expr quotient(const Expr& a, const Expr& b) {
  require(is_floating(a.type()), "a near quotient", a);
  return a.emit(Opcode::kDiv, a.type(), b, kNearQuotient);
}
Expr remainder_truncated(const Expr& a, const Expr& b) {
  require(a.type() != ScalarType::kBool, "division", a);
  const Expr rest = binary(Opcode::kRem, a, safe_divisor(b));
  return select((b == 0) | (b == -1), b.constant(0), rest);
}
Expr operator-(const Expr& a) {
  require(a.type() != ScalarType::kBool, "negation", a);
  return a.emit(Opcode::kNeg, a.type());
}
Expr operator&(const Expr& a, const Expr& b) { return binary(Opcode::kAnd, a, b); }
Expr operator|(const Expr& a, const Expr& b) { return binary(Opcode::kOr, a, b); }
Expr operator^(const Expr& a, const Expr& b) { return binary(Opcode::kXor, a, b); }
Expr operator~(const Expr& a) { return a.emit(Opcode::kNot, a.type()); }
Expr operator<<(const Expr& a, const Expr& count) {
  require(a.type() != ScalarType::kBool, "a shift", a);
  const int bits = width(a.type());
  if (is_constant_within(count, bits)) return binary(Opcode::kShiftLeft, a, count);
  const Expr inside = count & (bits - 1);
  return select(inside == count, binary(Opcode::kShiftLeft, a, inside), a.constant(0));
}
Expr operator>>(const Expr& a, const Expr& count) {
  require(a.type() != ScalarType::kBool, "a shift", a);
  const int bits = width(a.type());
  if (is_constant_within(count, bits)) return binary(Opcode::kShiftRight, a, count);
  const Expr inside = count & (bits - 1);
  const Expr ends = select(inside == count, inside, count.constant(bits - 1));
  return binary(Opcode::kShiftRight, a, ends);
}
Expr shift_right_logical(const Expr& a, int count) {
  return binary(Opcode::kShiftRightLogical, a, a.constant(count));
}
Expr mul_high_u32(const Expr& a, const Expr& b) { return binary(Opcode::kMulHighU32, a, b); }

Expr operator<(const Expr& a, const Expr& b) {
  if (a.type() == ScalarType::kBool) return ~a & b;
  return compare(Opcode::kLess, a, b);
}
Expr operator<=(const Expr& a, const Expr& b) {
  if (a.type() == ScalarType::kBool) return ~a | b;
  return compare(Opcode::kLessEqual, a, b);
}
Expr operator>(const Expr& a, const Expr& b) { return b < a; }
Expr operator>=(const Expr& a, const Expr& b) { return b <= a; }
Expr operator==(const Expr& a, const Expr& b) {
  if (a.type() == ScalarType::kBool) return ~(a ^ b);
  return compare(Opcode::kEqual, a, b);
}
Expr operator!=(const Expr& a, const Expr& b) {
  if (a.type() == ScalarType::kBool) return a ^ b;
  return compare(Opcode::kNotEqual, a, b);
}

Expr fma(const Expr& a, const Expr& b, const Expr& c) {
  return a.emit(Opcode::kFma, a.type(), b, c);
}
Expr sqrt(const Expr& x) { return x.emit(Opcode::kSqrt, x.type()); }
Expr floor(const Expr& x) { return round_with(Opcode::kFloor, x); }
Expr ceil(const Expr& x) { return round_with(Opcode::kCeil, x); }
Expr trunc(const Expr& x) { return round_with(Opcode::kTrunc, x); }
Expr round_even(const Expr& x) { return round_with(Opcode::kRoundEven, x); }
Expr abs(const Expr& x) {
  if (x.type() == ScalarType::kBool) return x;
  return x.emit(Opcode::kAbs, x.type());
}
Expr min_number(const Expr& a, const Expr& b) {
  if (a.type() == ScalarType::kBool) return a & b;
  return binary(Opcode::kMin, a, b);
}
Expr max_number(const Expr& a, const Expr& b) {
  if (a.type() == ScalarType::kBool) return a | b;
  return binary(Opcode::kMax, a, b);
}
Expr select(const Expr& condition, const Expr& a, const Expr& b) {
  if (is_constant(condition)) {
    return condition.builder().code()[condition.reg()].imm != 0 ? a : b;
  }
  if (a.reg() == b.reg()) return a;
  return condition.emit(Opcode::kSelect, a.type(), a, b);
}

Expr convert(const Expr& x, ScalarType type) {
  if (x.type() == type) return x;
  if (type == ScalarType::kBool) return x != x.constant(0);
  if (!is_floating(x.type()) || is_floating(type)) return x.emit(Opcode::kConvert, type);
  // Outside the integer's range the instruction is undefined, so the ends are chosen around it.
  const double limit = type == ScalarType::kI32 ? 0x1p31 : 0x1p63;
  const Expr low = x < -limit;
  const Expr high = x >= limit;
  const Expr inside = select(low | high | (x != x), x.constant(0), x);
  const Expr value = inside.emit(Opcode::kConvert, type);
  const bool is_i32 = type == ScalarType::kI32;
  const std::int64_t least =
      is_i32 ? std::numeric_limits<std::int32_t>::min() : std::numeric_limits<std::int64_t>::min();
  const std::int64_t greatest =
      is_i32 ? std::numeric_limits<std::int32_t>::max() : std::numeric_limits<std::int64_t>::max();
  return select(low, x.bits_of(type, least), select(high, x.bits_of(type, greatest), value));
}

Expr bitcast(const Expr& x, ScalarType type) {
  if (x.type() == type) return x;
  if (is_constant(x)) return x.bits_of(type, x.builder().code()[x.reg()].imm);
  return x.emit(Opcode::kBitcast, type);
}

Expr narrow(const Expr& x, DType dtype) {
  switch (dtype) {
    case DType::kF16:
    case DType::kBF16:
    case DType::kU8:
      return x.emit(Opcode::kNarrow, x.type(), static_cast<std::int64_t>(dtype));
    default:
      return x;
  }
}

}  // namespace vkml::ops
