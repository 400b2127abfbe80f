#include "kernels/conversions.h"

#include <algorithm>
#include <array>
#include <bit>
#include <vector>

#include "vkml/core/error.h"

namespace vkml::vulkan {

using spirv::Scalar;
using spirv::Type;
using spirv::Value;

Type value_type(ops::ScalarType type, int components) {
  constexpr Scalar kScalars[] = {Scalar::kBool, Scalar::kInt32, Scalar::kInt64, Scalar::kFloat32,
                                 Scalar::kFloat64};
  return {kScalars[static_cast<int>(type)], static_cast<std::uint8_t>(components)};
}

namespace {

Type float_like(Value value) { return {Scalar::kFloat32, value.type.components}; }
Type int_like(Value value) { return {Scalar::kInt32, value.type.components}; }

Value as_float(Value bits) { return bits.builder->bitcast(bits, float_like(bits)); }
Value as_int(Value value) { return value.builder->bitcast(value, int_like(value)); }

Value float_constant(Value like, float value) {
  return like.builder->constant(float_like(like), std::bit_cast<std::uint32_t>(value));
}

/// Each pair of words, 16 bits in each, as one word.
Value paired(Value bits) {
  spirv::Builder& b = *bits.builder;
  std::vector<Value> pairs;
  for (int k = 0; k < bits.type.components; k += 2) {
    pairs.push_back(b.component(bits, k) | (b.component(bits, k + 1) << 16));
  }
  return b.compose(pairs);
}

/// Each word as two, 16 bits in each.
Value unpaired(Value words) {
  spirv::Builder& b = *words.builder;
  std::vector<Value> halves;
  for (int k = 0; k < words.type.components; ++k) {
    const Value word = b.component(words, k);
    halves.push_back(word & 0xffffu);
    halves.push_back(word >> 16);
  }
  return b.compose(halves);
}

/// By the device. Halves go in pairs, since arithmetic on 16-bit integers may be missing.
Value f16_to_f32_by_device(Value bits) {
  spirv::Builder& b = *bits.builder;
  b.use_half_conversions();
  const int count = std::max<int>(bits.type.components, 2);
  const Value words = count == bits.type.components ? paired(bits) : bits;
  const Value halves = b.bitcast(words, with_components(spirv::kFloat16, count));
  const Value picked = count == bits.type.components ? halves : b.component(halves, 0);
  return b.op(spv::Op::OpFConvert, float_like(bits), {picked});
}

Value f32_to_f16_by_device(Value value) {
  spirv::Builder& b = *value.builder;
  b.use_half_conversions();
  const int count = value.type.components;
  const Value half = b.op(spv::Op::OpFConvert, with_components(spirv::kFloat16, count), {value});
  if (count == 1) {
    const std::array<Value, 2> pair{half, b.constant(spirv::kFloat16, 0)};
    return b.bitcast(b.compose(pair), spirv::kInt32);
  }
  return unpaired(b.bitcast(half, with_components(spirv::kInt32, count / 2)));
}

}  // namespace

Value f16_to_f32(Value bits) {
  spirv::Builder& b = *bits.builder;
  if (b.has_half_conversions()) return f16_to_f32_by_device(bits);
  const Value sign = (bits & 0x8000u) << 16;
  const Value magnitude = bits & 0x7fffu;
  const Value subnormal = as_int(b.op(spv::Op::OpConvertUToF, float_like(bits), {magnitude}) *
                                 float_constant(bits, 0x1p-24F));
  const Value normal = (magnitude << 13) + 0x38000000u;
  const Value special = (magnitude << 13) | 0x7f800000u;
  const Value finite = b.select(less(magnitude, 0x400u), subnormal, normal);
  return as_float(sign | b.select(less(magnitude, 0x7c00u), finite, special));
}

Value f32_to_f16(Value value) {
  spirv::Builder& b = *value.builder;
  if (b.has_half_conversions()) return f32_to_f16_by_device(value);
  const Value bits = as_int(value);
  const Value sign = (bits >> 16) & 0x8000u;
  const Value magnitude = bits & 0x7fffffffu;
  // Adding 0.5 puts the subnormal's units in the last place of the sum, which rounds to even.
  const Value subnormal = as_int(as_float(magnitude) + float_constant(value, 0.5F)) - 0x3f000000u;
  const Value rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
  const Value normal = (rounded - 0x38000000u) >> 13;
  const Value infinity = b.constant(bits.type, 0x7c00u);
  const Value nan = b.constant(bits.type, 0x7e00u);
  const Value finite = b.select(less(magnitude, 0x38800000u), subnormal, normal);
  const Value number = b.select(less(magnitude, 0x477ff000u), finite, infinity);
  return sign | b.select(less(magnitude, 0x7f800001u), number, nan);
}

Value bf16_to_f32(Value bits) { return as_float(bits << 16); }

Value f32_to_bf16(Value value) {
  spirv::Builder& b = *value.builder;
  const Value bits = as_int(value);
  const Value rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const Value nan = (bits >> 16) | 0x40u;
  return b.select(less(bits & 0x7fffffffu, 0x7f800001u), rounded, nan);
}

Value value_of_bits(DType dtype, Value bits) {
  switch (dtype) {
    case DType::kBool:
      return not_equal(bits, 0);
    case DType::kU8:
    case DType::kI32:
      return bits;
    case DType::kF16:
      return f16_to_f32(bits);
    case DType::kBF16:
      return bf16_to_f32(bits);
    case DType::kF32:
      return as_float(bits);
    case DType::kI64:
    case DType::kF64:
      break;
  }
  throw InternalError("[vulkan] 64-bit elements do not fit one word");
}

Value bits_of_value(DType dtype, Value value) {
  spirv::Builder& b = *value.builder;
  switch (dtype) {
    case DType::kBool: {
      const Type type = int_like(value);
      return b.select(value, b.constant(type, 1), b.constant(type, 0));
    }
    case DType::kU8:
      return value & 0xffu;
    case DType::kI32:
      return value;
    case DType::kF16:
      return f32_to_f16(value);
    case DType::kBF16:
      return f32_to_bf16(value);
    case DType::kF32:
      return as_int(value);
    case DType::kI64:
    case DType::kF64:
      break;
  }
  throw InternalError("[vulkan] 64-bit elements do not fit one word");
}

}  // namespace vkml::vulkan
