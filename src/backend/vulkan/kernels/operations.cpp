// The instructions of the scalar program that take operands, one SPIR-V sequence each.
#include <spirv/unified1/GLSL.std.450.h>

#include <bit>
#include <cmath>

#include "kernels/conversions.h"
#include "kernels/program.h"
#include "vkml/core/error.h"

namespace vkml::vulkan {

using ops::Opcode;
using spirv::Scalar;
using spirv::Type;
using spirv::Value;
using spv::Op;

namespace {

bool is_f32(Value value) { return value.type.scalar == Scalar::kFloat32; }

Value f32_like(Value like, float value) {
  return like.builder->constant(like.type, std::bit_cast<std::uint32_t>(value));
}

/// Whether the divisor is a power of two whose reciprocal is exact.
bool has_exact_reciprocal(Value divisor) {
  if (!divisor.is_literal || !is_f32(divisor)) return false;
  int exponent = 0;
  const float value = std::bit_cast<float>(static_cast<std::uint32_t>(divisor.literal));
  return std::abs(std::frexp(value, &exponent)) == 0.5F && exponent > -120 && exponent < 120;
}

/// Vulkan promises 2.5 ulp, and nothing for divisors above 2^126, whose reciprocal is subnormal.
/// Scaling covers those; one step of Newton's iteration on the exact remainder rounds correctly,
/// save where the remainder itself is subnormal.
Value divide_f32(Shader& shader, Value a, Value divisor) {
  spirv::Builder& b = shader.builder();
  if (shader.traits().is_software) return a / divisor;
  const Value scale =
      b.select(less(f32_like(a, 0x1p120F), b.extended(GLSLstd450FAbs, divisor.type, {divisor})),
               f32_like(a, 0x1p-8F), f32_like(a, 1.0F));
  const Value numerator = a * scale;
  const Value denominator = divisor * scale;
  const Value reciprocal = f32_like(a, 1.0F) / denominator;
  const Value quotient = numerator * reciprocal;
  const Value remainder = b.fma(-quotient, denominator, numerator);
  const Value refined = b.fma(remainder, reciprocal, quotient);
  return b.select(is_finite(refined), refined, quotient);
}

/// The same for the square root, which Vulkan defines through an approximate reciprocal.
Value sqrt_f32(Shader& shader, Value a) {
  spirv::Builder& b = shader.builder();
  const Value root = b.extended(GLSLstd450Sqrt, a.type, {a});
  if (shader.traits().is_software) return root;
  const Value remainder = b.fma(-root, root, a);
  const Value refined = b.fma(remainder, f32_like(a, 0.5F) / root, root);
  return b.select(is_finite(refined), refined, root);
}

/// e^x where 2^x of the device is good to 2 ULP. As much of the exponent as a float's own holds is
/// added there, and 2^x gets what is left: a fraction, but where results overflow or are subnormal.
Value exponential_f32(Value x) {
  constexpr float kLog2EHigh = 1.44269502F, kLog2ELow = 1.92596303e-8F;
  // Beside it a float has no room for a fraction, and its low bits count.
  constexpr float kLarge = 0x1.8p23F;
  constexpr float kBias = 127.0F, kMost = 253.0F;
  spirv::Builder& b = *x.builder;
  const auto number = [&](float value) { return f32_like(x, value); };
  Value sum = b.fma(x, number(kLog2EHigh), number(kLarge + kBias));
  sum = b.extended(GLSLstd450NMax, x.type, {sum, number(kLarge + 1.0F)});
  sum = b.extended(GLSLstd450NMin, x.type, {sum, number(kLarge + kMost)});
  Value rest = b.fma(x, number(kLog2EHigh), -(sum - number(kLarge + kBias)));
  rest = b.fma(x, number(kLog2ELow), rest);
  const Type bits{Scalar::kInt32, x.type.components};
  const Value scale =
      b.op(Op::OpBitcast, x.type, {b.op(Op::OpBitcast, bits, {sum}) << b.constant(bits, 23)});
  return b.extended(GLSLstd450Exp2, x.type, {rest}) * scale;
}

Value exponential(Shader& shader, ops::ScalarType type, Value x) {
  if (is_f32(x) && shader.traits().has_accurate_exp2) return exponential_f32(x);
  return emit_program(shader, ops::exp_program(type), {x})[0];
}

/// The high half of a float's digits (Veltkamp), so that products of halves are exact.
Value high_half(Value a) {
  const bool is_wide = a.type.scalar == Scalar::kFloat64;
  const Value splitter =
      a.builder->constant(a.type, is_wide ? std::bit_cast<std::uint64_t>(134217729.0)
                                          : std::bit_cast<std::uint32_t>(4097.0F));
  const Value scaled = a * splitter;
  return scaled - (scaled - a);
}

/// a * b + c by error-free transformations (Dekker, Knuth): the product's and the sum's errors are
/// added at the end. Near overflow, where the splitting fails, the plain sum is kept.
Value fma_without_hardware(Value a, Value b, Value c) {
  const Value product = a * b;
  const Value a_high = high_half(a), b_high = high_half(b);
  const Value a_low = a - a_high, b_low = b - b_high;
  const Value product_error =
      a_low * b_low - (((product - a_high * b_high) - a_low * b_high) - a_high * b_low);
  const Value sum = product + c;
  const Value part = sum - product;
  const Value sum_error = (product - (sum - part)) + (c - part);
  const Value result = sum + (sum_error + product_error);
  return a.builder->select(is_finite(result), result, sum);
}

/// Mesa's software driver splits fma into two roundings.
Value fused_multiply_add(Shader& shader, Value a, Value b, Value c) {
  spirv::Builder& builder = shader.builder();
  if (!shader.traits().is_software) return builder.fma(a, b, c);
  if (!is_f32(a) || !shader.traits().has_float64) return fma_without_hardware(a, b, c);
  const Type wide{Scalar::kFloat64, a.type.components};
  const auto widened = [&](Value value) { return builder.op(Op::OpFConvert, wide, {value}); };
  return builder.op(Op::OpFConvert, a.type, {widened(a) * widened(b) + widened(c)});
}

/// Mesa's software driver truncates and rounds doubles wrongly (1.5 to 1, -0.5 to 0); its floor of
/// what is not negative is right.
Value rounded_magnitude(Value a, bool to_even) {
  spirv::Builder& b = *a.builder;
  const auto number = [&](double value) {
    return b.constant(a.type, std::bit_cast<std::uint64_t>(value));
  };
  const auto floor_of = [&](Value value) { return b.extended(GLSLstd450Floor, a.type, {value}); };
  const Value magnitude = b.extended(GLSLstd450FAbs, a.type, {a});
  Value whole = floor_of(magnitude);
  if (to_even) {
    const Value fraction = magnitude - whole;
    const Value is_odd = not_equal(floor_of(whole * number(0.5)) * number(2.0), whole);
    const Value goes_up =
        logical_or(less(number(0.5), fraction), logical_and(equal(fraction, number(0.5)), is_odd));
    whole = b.select(goes_up, whole + number(1.0), whole);
  }
  // 0 keeps its own sign.
  return b.select(equal(a, number(0.0)), a, b.select(less(a, number(0.0)), -whole, whole));
}

Value divide(Shader& shader, Value a, Value divisor) {
  spirv::Builder& b = shader.builder();
  if (!spirv::is_float(a.type)) return b.op(Op::OpSDiv, a.type, {a, divisor});
  if (!is_f32(a)) return a / divisor;
  if (has_exact_reciprocal(divisor)) {
    const float value = std::bit_cast<float>(static_cast<std::uint32_t>(divisor.literal));
    return a * f32_like(a, 1.0F / value);
  }
  return divide_f32(shader, a, divisor);
}

Value greater(Value a, Value b) { return spirv::is_float(a.type) ? less(b, a) : signed_less(b, a); }

Value signed_or_float_less(Value a, Value b) {
  return spirv::is_float(a.type) ? less(a, b) : signed_less(a, b);
}

/// `a_wins` ? a : b, and b when b is NaN. Without that test on the bits, drivers that do not
/// promise to keep NaN turn the comparison and the selection into a minimum or maximum that prefers
/// numbers.
Value pick_extreme(Shader& shader, Value a_wins, Value a, Value b) {
  if (spirv::is_float(a.type) && !(is_f32(a) && shader.traits().keeps_special_values)) {
    a_wins = logical_and(a_wins, logical_not(is_nan(b)));
  }
  return a.builder->select(a_wins, a, b);
}

/// Vulkan leaves OpSRem undefined for negative operands.
Value remainder(Value a, Value b) { return a - a.builder->op(Op::OpSDiv, a.type, {a, b}) * b; }

Value multiply_high(Value a, Value b) {
  spirv::Builder& builder = *a.builder;
  spirv::Module& module = builder.module();
  const spirv::Id type = module.type(a.type);
  const spirv::Id pair_type = module.intern_type(Op::OpTypeStruct, {type, type});
  const spirv::Id pair = module.new_id();
  module.emit(Op::OpUMulExtended, {pair_type, pair, a.id, b.id});
  const spirv::Id high = module.new_id();
  module.emit(Op::OpCompositeExtract, {type, high, pair, 1});
  return {&builder, high, a.type, false, 0};
}

Value convert(Value a, Type to) {
  spirv::Builder& b = *a.builder;
  if (a.type == to) return a;
  if (to.scalar == Scalar::kBool) return not_equal(a, b.constant(a.type, 0));
  if (a.type.scalar == Scalar::kBool) {
    std::uint64_t one = 1;
    if (to.scalar == Scalar::kFloat32) one = std::bit_cast<std::uint32_t>(1.0F);
    if (to.scalar == Scalar::kFloat64) one = std::bit_cast<std::uint64_t>(1.0);
    return b.select(a, b.constant(to, one), b.constant(to, 0));
  }
  if (spirv::is_float(a.type)) {
    return b.op(spirv::is_float(to) ? Op::OpFConvert : Op::OpConvertFToS, to, {a});
  }
  return b.op(spirv::is_float(to) ? Op::OpConvertSToF : Op::OpSConvert, to, {a});
}

Value narrow(Value a, DType dtype) {
  switch (dtype) {
    case DType::kF16: {
      const Value bits = f32_to_f16(a);
      spirv::Builder& b = *a.builder;
      if (!b.has_half_conversions()) return f16_to_f32(bits);
      // Compilers of drivers take the two conversions for none, and lose the rounding, unless
      // something stands between that they do not know: there is one workgroup along the last axis.
      return f16_to_f32(bits ^ b.splat(b.workgroup_count(2) - 1, bits.type.components));
    }
    case DType::kBF16:
      return bf16_to_f32(f32_to_bf16(a));
    case DType::kU8:
      return a & 0xffu;
    default:
      return a;
  }
}

Value bitwise(Op integer, Op boolean, Value a, Value b) {
  return a.builder->op(a.type.scalar == Scalar::kBool ? boolean : integer, a.type, {a, b});
}

}  // namespace

Value emit_operation(Shader& shader, const ops::Instruction& instruction, Value a, Value b,
                     Value c) {
  spirv::Builder& builder = shader.builder();
  const Type type = value_type(instruction.type, a.type.components);
  const bool floating = spirv::is_float(a.type);
  const bool by_magnitude = type.scalar == Scalar::kFloat64 && shader.traits().is_software;
  const auto unary = [&](GLSLstd450 function) { return builder.extended(function, type, {a}); };
  switch (instruction.op) {
    case Opcode::kAdd:
      return a + b;
    case Opcode::kSub:
      return a - b;
    case Opcode::kMul:
      return a * b;
    case Opcode::kDiv:
      return instruction.imm == ops::kNearQuotient ? a / b : divide(shader, a, b);
    case Opcode::kRem:
      return remainder(a, b);
    case Opcode::kNeg:
      return -a;
    case Opcode::kAbs:
      return unary(floating ? GLSLstd450FAbs : GLSLstd450SAbs);
    case Opcode::kMin:
      return pick_extreme(shader, signed_or_float_less(a, b), a, b);
    case Opcode::kMax:
      return pick_extreme(shader, greater(a, b), a, b);
    case Opcode::kFma:
      return fused_multiply_add(shader, a, b, c);
    case Opcode::kSqrt:
      return is_f32(a) ? sqrt_f32(shader, a) : unary(GLSLstd450Sqrt);
    case Opcode::kFloor:
      return unary(GLSLstd450Floor);
    case Opcode::kCeil:
      return unary(GLSLstd450Ceil);
    case Opcode::kTrunc:
      return by_magnitude ? rounded_magnitude(a, false) : unary(GLSLstd450Trunc);
    case Opcode::kRoundEven:
      return by_magnitude ? rounded_magnitude(a, true) : unary(GLSLstd450RoundEven);
    case Opcode::kExp:
      return exponential(shader, instruction.type, a);
    case Opcode::kBeyond:
      return emit_beyond(shader, instruction, a, b, c);
    case Opcode::kMulHighU32:
      return multiply_high(a, b);
    case Opcode::kAnd:
      return bitwise(Op::OpBitwiseAnd, Op::OpLogicalAnd, a, b);
    case Opcode::kOr:
      return bitwise(Op::OpBitwiseOr, Op::OpLogicalOr, a, b);
    case Opcode::kXor:
      return bitwise(Op::OpBitwiseXor, Op::OpLogicalNotEqual, a, b);
    case Opcode::kNot:
      return builder.op(a.type.scalar == Scalar::kBool ? Op::OpLogicalNot : Op::OpNot, type, {a});
    case Opcode::kShiftLeft:
      return a << b;
    case Opcode::kShiftRight:
      return builder.op(Op::OpShiftRightArithmetic, type, {a, b});
    case Opcode::kShiftRightLogical:
      return a >> b;
    case Opcode::kEqual:
      return equal(a, b);
    case Opcode::kNotEqual:
      // Drivers reason that x != x is never true, whatever they promise; bits cannot be argued
      // with.
      return is_f32(a) && a.id == b.id ? is_nan(a) : not_equal(a, b);
    case Opcode::kLess:
      return floating ? less(a, b) : signed_less(a, b);
    case Opcode::kLessEqual:
      return floating ? less_equal(a, b) : signed_less_equal(a, b);
    case Opcode::kSelect:
      return builder.select(a, b, c);
    case Opcode::kConvert:
      return convert(a, type);
    case Opcode::kBitcast:
      return builder.bitcast(a, type);
    case Opcode::kNarrow:
      return narrow(a, static_cast<DType>(instruction.imm));
    default:
      break;
  }
  throw InternalError("[vulkan] an instruction without a SPIR-V sequence");
}

}  // namespace vkml::vulkan
