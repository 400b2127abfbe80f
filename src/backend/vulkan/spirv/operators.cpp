// The operators of Value: which instruction each type takes, and the folding of integer literals.
#include <spirv/unified1/GLSL.std.450.h>

#include "spirv/builder.h"

namespace vkml::vulkan::spirv {

using spv::Op;

namespace {

/// Both are literals of a 32-bit integer type, the only one that index arithmetic uses.
bool foldable(Value a, Value b) { return a.is_literal && b.is_literal && a.type == kInt32; }

Value folded(Value like, std::uint64_t bits) {
  return like.builder->u32(static_cast<std::uint32_t>(bits));
}

bool is_integer_zero(Value value) { return !is_float(value.type) && value.is(0); }
bool is_integer_one(Value value) { return !is_float(value.type) && value.is(1); }

Value arithmetic(Op integer, Op floating, Value a, Value b) {
  if (is_float(a.type)) return a.builder->exact(floating, a.type, {a, b});
  return a.builder->op(integer, a.type, {a, b});
}

Value compare(Op integer, Op floating, Value a, Value b) {
  const Type result = with_components(kBool, a.type.components);
  return a.builder->op(is_float(a.type) ? floating : integer, result, {a, b});
}

Value literal_like(Value value, std::uint32_t literal) {
  return value.builder->constant(value.type, literal);
}

Value bits_of(Value value) {
  const Scalar scalar = value.type.scalar == Scalar::kFloat64 ? Scalar::kInt64 : Scalar::kInt32;
  return value.builder->bitcast(value, {scalar, value.type.components});
}

constexpr std::uint64_t kInfinity32 = 0x7f800000u;
constexpr std::uint64_t kInfinity64 = 0x7ff0000000000000u;

Value magnitude_bits(Value value) {
  const bool is_wide = value.type.scalar == Scalar::kFloat64;
  const Value bits = bits_of(value);
  return bits & value.builder->constant(bits.type, is_wide ? 0x7fffffffffffffffu : 0x7fffffffu);
}

Value infinity_bits(Value magnitude) {
  return magnitude.builder->constant(
      magnitude.type, magnitude.type.scalar == Scalar::kInt64 ? kInfinity64 : kInfinity32);
}

}  // namespace

Value operator+(Value a, Value b) {
  if (is_integer_zero(a)) return b;
  if (is_integer_zero(b)) return a;
  if (foldable(a, b)) return folded(a, a.literal + b.literal);
  return arithmetic(Op::OpIAdd, Op::OpFAdd, a, b);
}
Value operator-(Value a, Value b) {
  if (is_integer_zero(b)) return a;
  if (foldable(a, b)) return folded(a, a.literal - b.literal);
  return arithmetic(Op::OpISub, Op::OpFSub, a, b);
}
Value operator*(Value a, Value b) {
  if (is_integer_one(a) || is_integer_zero(b)) return b;
  if (is_integer_one(b) || is_integer_zero(a)) return a;
  if (foldable(a, b)) return folded(a, a.literal * b.literal);
  return arithmetic(Op::OpIMul, Op::OpFMul, a, b);
}
Value operator/(Value a, Value b) {
  if (is_integer_one(b)) return a;
  if (foldable(a, b)) return folded(a, a.literal / b.literal);
  return arithmetic(Op::OpUDiv, Op::OpFDiv, a, b);
}
Value operator%(Value a, Value b) {
  if (is_integer_one(b)) return literal_like(a, 0);
  if (foldable(a, b)) return folded(a, a.literal % b.literal);
  return a.builder->op(Op::OpUMod, a.type, {a, b});
}
Value operator&(Value a, Value b) { return a.builder->op(Op::OpBitwiseAnd, a.type, {a, b}); }
Value operator|(Value a, Value b) { return a.builder->op(Op::OpBitwiseOr, a.type, {a, b}); }
Value operator^(Value a, Value b) { return a.builder->op(Op::OpBitwiseXor, a.type, {a, b}); }
Value operator<<(Value a, Value b) {
  if (is_integer_zero(b)) return a;
  if (foldable(a, b)) return folded(a, a.literal << b.literal);
  return a.builder->op(Op::OpShiftLeftLogical, a.type, {a, b});
}
Value operator>>(Value a, Value b) {
  if (is_integer_zero(b)) return a;
  if (foldable(a, b)) return folded(a, a.literal >> b.literal);
  return a.builder->op(Op::OpShiftRightLogical, a.type, {a, b});
}
Value operator~(Value a) { return a.builder->op(Op::OpNot, a.type, {a}); }
Value operator-(Value a) {
  return is_float(a.type) ? a.builder->exact(Op::OpFNegate, a.type, {a})
                          : a.builder->op(Op::OpSNegate, a.type, {a});
}

Value operator+(Value a, std::uint32_t b) { return a + literal_like(a, b); }
Value operator-(Value a, std::uint32_t b) { return a - literal_like(a, b); }
Value operator*(Value a, std::uint32_t b) { return a * literal_like(a, b); }
Value operator/(Value a, std::uint32_t b) { return a / literal_like(a, b); }
Value operator%(Value a, std::uint32_t b) { return a % literal_like(a, b); }
Value operator&(Value a, std::uint32_t b) { return a & literal_like(a, b); }
Value operator|(Value a, std::uint32_t b) { return a | literal_like(a, b); }
Value operator<<(Value a, std::uint32_t b) { return a << literal_like(a, b); }
Value operator>>(Value a, std::uint32_t b) { return a >> literal_like(a, b); }

Value equal(Value a, Value b) {
  if (foldable(a, b)) return a.builder->boolean(a.literal == b.literal);
  const bool is_boolean = a.type.scalar == Scalar::kBool;
  return compare(is_boolean ? Op::OpLogicalEqual : Op::OpIEqual, Op::OpFOrdEqual, a, b);
}
Value not_equal(Value a, Value b) {
  if (foldable(a, b)) return a.builder->boolean(a.literal != b.literal);
  const bool is_boolean = a.type.scalar == Scalar::kBool;
  return compare(is_boolean ? Op::OpLogicalNotEqual : Op::OpINotEqual, Op::OpFUnordNotEqual, a, b);
}
Value less(Value a, Value b) {
  if (foldable(a, b)) return a.builder->boolean(a.literal < b.literal);
  return compare(Op::OpULessThan, Op::OpFOrdLessThan, a, b);
}
Value less_equal(Value a, Value b) {
  if (foldable(a, b)) return a.builder->boolean(a.literal <= b.literal);
  return compare(Op::OpULessThanEqual, Op::OpFOrdLessThanEqual, a, b);
}
Value signed_less(Value a, Value b) { return compare(Op::OpSLessThan, Op::OpFOrdLessThan, a, b); }
Value signed_less_equal(Value a, Value b) {
  return compare(Op::OpSLessThanEqual, Op::OpFOrdLessThanEqual, a, b);
}
Value equal(Value a, std::uint32_t b) { return equal(a, literal_like(a, b)); }
Value not_equal(Value a, std::uint32_t b) { return not_equal(a, literal_like(a, b)); }
Value less(Value a, std::uint32_t b) { return less(a, literal_like(a, b)); }

Value logical_and(Value a, Value b) {
  if (a.is_literal) return a.literal != 0 ? b : a;
  if (b.is_literal) return b.literal != 0 ? a : b;
  return a.builder->op(Op::OpLogicalAnd, a.type, {a, b});
}
Value logical_or(Value a, Value b) {
  if (a.is_literal) return a.literal != 0 ? a : b;
  if (b.is_literal) return b.literal != 0 ? b : a;
  return a.builder->op(Op::OpLogicalOr, a.type, {a, b});
}
Value logical_not(Value a) {
  if (a.is_literal) return a.builder->constant(a.type, a.literal == 0 ? 1 : 0);
  return a.builder->op(Op::OpLogicalNot, a.type, {a});
}

Value is_nan(Value value) {
  const Value magnitude = magnitude_bits(value);
  return less(infinity_bits(magnitude), magnitude);
}
Value is_finite(Value value) {
  const Value magnitude = magnitude_bits(value);
  return less(magnitude, infinity_bits(magnitude));
}

}  // namespace vkml::vulkan::spirv
