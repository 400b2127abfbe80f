#include "kernels/matrix_parts.h"

#include "kernels/shader.h"

namespace vkml::vulkan {

using spirv::MatrixScalar;
using spirv::MatrixUse;
using spirv::Value;

namespace {

Value splat(spirv::Builder& b, std::uint32_t bits) { return b.constant(kWord4, bits); }

/// The upper halves of eight words, as one vector.
Value upper_halves(const Value& low, const Value& high) {
  spirv::Builder& b = *low.builder;
  const auto pair = [&](const Value& words, int first) {
    return (b.component(words, first) >> 16) | (b.component(words, first + 1) & 0xffff0000u);
  };
  const std::array<Value, 4> halves{pair(low, 0), pair(low, 2), pair(high, 0), pair(high, 2)};
  return b.compose(halves);
}

Value only_finite(Value values) {
  return values.builder->select(is_finite(values), values,
                                values.builder->constant(values.type, 0));
}

/// The elements of f32 that are not finite, as bf16 in the upper half.
Value special_bits(Value bits) {
  spirv::Builder& b = *bits.builder;
  const Value magnitude = bits & splat(b, 0x7fffffffu);
  const Value quiet =
      b.select(less(splat(b, 0x7f800000u), magnitude), bits | splat(b, 0x400000u), bits);
  return b.select(less(magnitude, splat(b, 0x7f800000u)), splat(b, 0), quiet);
}

/// -1, 0 or 1, as bf16 in the upper half.
Value sign_bits(Value bits) {
  spirv::Builder& b = *bits.builder;
  const Value sign = (bits & splat(b, 0x80000000u)) | splat(b, 0x3f800000u);
  return b.select(equal(bits & splat(b, 0x7fffffffu), splat(b, 0)), splat(b, 0), sign);
}

}  // namespace

MatrixFormat matrix_format(DType dtype, std::uint32_t parts) {
  if (dtype == DType::kF32) return {MatrixScalar::kBF16, parts, dtype};
  return {dtype == DType::kF16 ? MatrixScalar::kF16 : MatrixScalar::kBF16, 1, dtype};
}

std::array<Value, 2> lower_halves(const Value& words) {
  spirv::Builder& b = *words.builder;
  return {b.component(words, 0) | (b.component(words, 1) << 16),
          b.component(words, 2) | (b.component(words, 3) << 16)};
}

MatrixWords cut(EightFloats& values, std::uint32_t parts) {
  spirv::Builder& b = *values[0].builder;
  MatrixWords words;
  for (std::uint32_t part = 0; part < parts; ++part) {
    std::array<Value, 2> bits;
    for (std::size_t half = 0; half < 2; ++half) {
      bits[half] = b.bitcast(values[half], kWord4);
      const bool is_last = part + 1 == parts;
      if (is_last && parts < 3) bits[half] = bits[half] + splat(b, 0x8000u);
      if (is_last) continue;
      bits[half] = bits[half] & splat(b, 0xffff0000u);
      values[half] = values[half] - b.bitcast(bits[half], kFloat4);
    }
    words.push_back(upper_halves(bits[0], bits[1]));
  }
  return words;
}

MatrixWords cut_finite(const EightFloats& values, std::uint32_t parts) {
  EightFloats finite{only_finite(values[0]), only_finite(values[1])};
  return cut(finite, parts);
}

/// What a cut leaves of an element that is not finite is NaN, which sums of such rests keep.
Value is_special(const EightFloats& rests) {
  spirv::Builder& b = *rests[0].builder;
  const Value sum = rests[0] + rests[1];
  return is_nan((b.component(sum, 0) + b.component(sum, 1)) +
                (b.component(sum, 2) + b.component(sum, 3)));
}

MatrixWords special_parts(MatrixUse use, const EightFloats& values) {
  spirv::Builder& b = *values[0].builder;
  const Value low = b.bitcast(values[0], kWord4), high = b.bitcast(values[1], kWord4);
  const Value special = upper_halves(special_bits(low), special_bits(high));
  const Value signs = upper_halves(sign_bits(low), sign_bits(high));
  return use == MatrixUse::kA ? MatrixWords{special, signs} : MatrixWords{signs, special};
}

std::vector<spirv::Matrix> products_of_parts(const std::vector<std::vector<spirv::Matrix>>& left,
                                             const std::vector<spirv::Matrix>& right) {
  std::vector<spirv::Matrix> sums(left[0].size(), zero_matrix(*right[0].builder, kMatrixSums));
  for (std::size_t order = left.size(); order-- > 0;) {
    for (std::size_t part = 0; part <= order; ++part) {
      for (std::size_t row = 0; row < sums.size(); ++row) {
        sums[row] = multiply_add(left[part][row], right[order - part], sums[row]);
      }
    }
  }
  return sums;
}

}  // namespace vkml::vulkan
