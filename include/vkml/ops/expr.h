// Records scalar programs: an Expr is one value of a program under construction, and its operators
// append instructions. Rows of the elementwise table are generic lambdas; called with Expr they
// become programs.
//
// The builder folds constants, shares equal instructions, and drops x + 0 or x * 1 only where that
// is exact for every input.
#pragma once

#include <concepts>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "vkml/ops/scalar_program.h"

namespace vkml::ops {

class ProgramBuilder {
 public:
  ProgramBuilder() = default;
  /// Of a program for operands of a storage type, for what depends on which numbers it has.
  explicit ProgramBuilder(DType operands) : operands_(operands) {}
  DType operands() const { return operands_; }

  /// The register of an instruction equal to this one, appended if there is none.
  std::uint16_t emit(const Instruction& instruction);
  const std::vector<Instruction>& code() const { return code_; }
  std::vector<Instruction>& code() { return code_; }
  std::size_t size() const { return code_.size(); }

 private:
  struct Hash {
    std::size_t operator()(const Instruction& instruction) const;
  };
  DType operands_ = DType::kF32;
  std::vector<Instruction> code_;
  std::unordered_map<Instruction, std::uint16_t, Hash> known_;
};

class Expr {
 public:
  Expr(ProgramBuilder* builder, std::uint16_t reg) : builder_(builder), reg_(reg) {}

  ProgramBuilder& builder() const { return *builder_; }
  std::uint16_t reg() const { return reg_; }
  ScalarType type() const { return builder_->code()[reg_].type; }

  /// A literal of the same type in the same program.
  Expr constant(double value) const;
  Expr constant_of(ScalarType type, double value) const;
  Expr bits_of(ScalarType type, std::int64_t bits) const;
  /// An instruction of this value's program.
  Expr emit(Opcode op, ScalarType type, std::int64_t imm = 0) const;
  Expr emit(Opcode op, ScalarType type, const Expr& b, std::int64_t imm = 0) const;
  Expr emit(Opcode op, ScalarType type, const Expr& b, const Expr& c, std::int64_t imm = 0) const;

 private:
  ProgramBuilder* builder_;
  std::uint16_t reg_;
};

template <typename T>
concept Number = std::integral<T> || std::floating_point<T>;

/// Arithmetic on bools is logical: + is or, * is and, as in NumPy and PyTorch.
Expr operator+(const Expr& a, const Expr& b);
Expr operator-(const Expr& a, const Expr& b);
Expr operator*(const Expr& a, const Expr& b);
Expr operator/(const Expr& a, const Expr& b);  // floats: IEEE; integers: truncates, x / 0 = 0
Expr operator-(const Expr& a);
Expr operator&(const Expr& a, const Expr& b);
Expr operator|(const Expr& a, const Expr& b);
Expr operator^(const Expr& a, const Expr& b);
Expr operator~(const Expr& a);
Expr operator<<(const Expr& a, const Expr& count);  // counts past the width give 0
Expr operator>>(const Expr& a,
                const Expr& count);  // arithmetic; counts past the width give 0 or -1
Expr operator<(const Expr& a, const Expr& b);
Expr operator<=(const Expr& a, const Expr& b);
Expr operator>(const Expr& a, const Expr& b);
Expr operator>=(const Expr& a, const Expr& b);
Expr operator==(const Expr& a, const Expr& b);
Expr operator!=(const Expr& a, const Expr& b);

#define VKML_EXPR_WITH_NUMBER(op)                   \
  template <Number N>                               \
  Expr operator op(const Expr& a, N b) {            \
    return a op a.constant(static_cast<double>(b)); \
  }                                                 \
  template <Number N>                               \
  Expr operator op(N a, const Expr& b) {            \
    return b.constant(static_cast<double>(a)) op b; \
  }
VKML_EXPR_WITH_NUMBER(+)
VKML_EXPR_WITH_NUMBER(-)
VKML_EXPR_WITH_NUMBER(*)
VKML_EXPR_WITH_NUMBER(/)
VKML_EXPR_WITH_NUMBER(&)
VKML_EXPR_WITH_NUMBER(|)
VKML_EXPR_WITH_NUMBER(^)
VKML_EXPR_WITH_NUMBER(<<)
VKML_EXPR_WITH_NUMBER(>>)
VKML_EXPR_WITH_NUMBER(<)
VKML_EXPR_WITH_NUMBER(<=)
VKML_EXPR_WITH_NUMBER(>)
VKML_EXPR_WITH_NUMBER(>=)
VKML_EXPR_WITH_NUMBER(==)
VKML_EXPR_WITH_NUMBER(!=)
#undef VKML_EXPR_WITH_NUMBER

Expr fma(const Expr& a, const Expr& b, const Expr& c);
Expr sqrt(const Expr& x);
Expr floor(const Expr& x);  // integers: unchanged, as for ceil, trunc and round
Expr ceil(const Expr& x);
Expr trunc(const Expr& x);
Expr round_even(const Expr& x);
Expr abs(const Expr& x);
/// a < b ? a : b without regard to NaN: b when either is NaN.
Expr min_number(const Expr& a, const Expr& b);
Expr max_number(const Expr& a, const Expr& b);
/// condition ? a : b; the condition is a bool.
Expr select(const Expr& condition, const Expr& a, const Expr& b);
/// a / b within 3 ULP, under the conditions of kNearQuotient: several times cheaper on GPUs.
Expr quotient(const Expr& a, const Expr& b);
Expr remainder_truncated(const Expr& a, const Expr& b);  // integers; x rem 0 = 0
Expr shift_right_logical(const Expr& a, int count);
Expr mul_high_u32(const Expr& a, const Expr& b);
/// Float to integer truncates, saturates at the type's ends, and sends NaN to 0; integers wrap; to
/// bool is != 0.
Expr convert(const Expr& x, ScalarType type);
Expr bitcast(const Expr& x, ScalarType type);
/// Rounds to the values of a narrow storage type; unchanged for the others.
Expr narrow(const Expr& x, DType dtype);

}  // namespace vkml::ops
