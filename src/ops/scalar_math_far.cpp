// Sine, cosine and tangent of angles too large for a reduction by a product with 2/pi, and the
// remainder of quotients that have more bits than two divisions give.
//
// Angles: Payne and Hanek (SIGNUM Newsletter 18, 1983). x is an integer m times a power of two, and
// of m * 2/pi only the bits from 4's place down count: a window into the digits of 2/pi, which the
// exponent of x chooses, times m in integers. Remainders: long division, some 20 (f64: 48) bits of
// the quotient in each step.

#include <array>
#include <initializer_list>
#include <limits>
#include <vector>

#include "scalar_math_internal.h"
#include "vkml/ops/scalar_math.h"

namespace vkml::ops {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr std::int64_t kWord = 0xffffffff;

// 2/pi, whose first digit stands in 1/2's place, after eight zeros.
constexpr std::array<std::uint32_t, 38> kTwoOverPi = {
    0x00a2f983, 0x6e4e4415, 0x29fc2757, 0xd1f534dd, 0xc0db6295, 0x993c4390, 0x41fe5163, 0xabdebbc5,
    0x61b7246e, 0x3a424dd2, 0xe006492e, 0xea09d192, 0x1cfe1deb, 0x1cb129a7, 0x3ee88235, 0xf52ebb44,
    0x84e99c70, 0x26b45f7e, 0x413991d6, 0x39835339, 0xf49c845f, 0x8bbdf928, 0x3b1ff897, 0xffde0598,
    0x0fef2f11, 0x8b5a0a6d, 0x1f6d367e, 0xcf27cb09, 0xb74f463f, 0x669e5fea, 0x2d7527ba, 0xc7ebe5f1,
    0x7b3d0739, 0xf78a5292, 0xea6bfb5f, 0xb11f8d5d, 0x08560330, 0x46fc7b6b};

Expr shift_left(const Expr& a, const Expr& count) {
  return a.emit(Opcode::kShiftLeft, a.type(), count);
}
Expr shift_right(const Expr& a, const Expr& count) {
  return a.emit(Opcode::kShiftRightLogical, a.type(), count);
}

/// `count` words of 2/pi from word `index` on; the index has `bits` bits.
std::vector<Expr> words_of_two_over_pi(const Expr& index, int bits, std::size_t count) {
  std::vector<Expr> words;
  for (const std::uint32_t word : kTwoOverPi) {
    const bool is_narrow = index.type() == ScalarType::kI32;
    words.push_back(index.bits_of(index.type(), is_narrow ? static_cast<std::int32_t>(word)
                                                          : static_cast<std::int64_t>(word)));
  }
  // Each bit of the index moves all that is still in question by its own number of words.
  for (int bit = bits - 1; bit >= 0; --bit) {
    const std::size_t step = std::size_t{1} << bit;
    const Expr is_set = (index & static_cast<std::int64_t>(step)) != 0;
    const std::size_t kept = count + step - 1;
    for (std::size_t i = 0; i < kept; ++i) words[i] = select(is_set, words[i + step], words[i]);
    words.resize(kept, words.front());
  }
  return words;
}

/// The angle a + b + c quadrants, of which each part is below the last place of the one before, or
/// those before are 0; times `scale`.
Expr radians(const Expr& a, const Expr& b, const Expr& c, double scale) {
  Expr sum = a + b;
  Expr rest = b - (sum - a) + c;
  const Expr high = sum + rest;
  rest = rest - (high - sum);
  const bool f32 = is_f32(a);
  // pi/2 in two parts.
  const Expr pi_high = a.constant(scale * (f32 ? 1.57079637050628662109375 : 1.5707963267948966));
  const Expr pi_low = a.constant(scale * (f32 ? -4.37113900018624283e-8 : 6.123233995736766e-17));
  const Expr product = high * pi_high;
  const Expr error = fma(high, pi_high, -product);
  return product + fma(high, pi_low, fma(rest, pi_high, error));
}

/// The angle x for x >= 2^20, in three words of 2/pi.
Reduced reduce_f32(const Expr& x) {
  const Expr bits = bitcast(x, ScalarType::kI32);
  const Expr mantissa = (bits & 0x7fffff) | 0x800000;
  const Expr place = (bits >> 23) - 144;  // of the window's first digit
  const std::vector<Expr> words = words_of_two_over_pi((place >> 5) & 3, 2, 4);
  const Expr shift = place & 31;
  std::vector<Expr> window;
  for (std::size_t i = 0; i < 3; ++i) {
    // In two steps, as a shift by the width is not defined.
    const Expr below = shift_right(shift_right_logical(words[i + 1], 1), 31 - shift);
    window.push_back(shift_left(words[i], shift) | below);
  }
  const Expr below = mul_high_u32(mantissa, window[2]);
  const Expr low = mantissa * window[1] + below;
  const Expr sign_bit = bits.bits_of(ScalarType::kI32, std::numeric_limits<std::int32_t>::min());
  const Expr carries = (low ^ sign_bit) < (below ^ sign_bit);
  const Expr high = mantissa * window[0] + mul_high_u32(mantissa, window[1]) +
                    select(carries, bits.constant(1), bits.constant(0));
  // Two bits of quadrants, thirty of their fraction; a fraction above 1/2 is that of the next one,
  // less 1.
  const Expr is_upper = (high & 0x20000000) != 0;
  const Expr flip = select(is_upper, bits.constant(-1), bits.constant(0));
  const Expr quadrant = shift_right_logical(high, 30) - flip;
  const Expr f0 = (high ^ flip) & 0x3fffffff;
  const Expr f1 = low ^ flip;
  // 30 and 32 bits as 24, 22 and 16, each of which is exact as a float.
  const auto part = [&](const Expr& value, double unit) {
    return convert(value, ScalarType::kF32) * unit;
  };
  const Expr middle = ((f0 & 0x3f) << 16) | shift_right_logical(f1, 16);
  const Expr angle = radians(part(shift_right_logical(f0, 6), 1.0), part(middle, 0x1p-22),
                             part(f1 & 0xffff, 0x1p-38), 0x1p-24);
  return {select(is_upper, -angle, angle), quadrant};
}

/// The angle x for x >= 2^47, in six words of 2/pi.
Reduced reduce_f64(const Expr& x) {
  constexpr std::size_t kWords = 6;
  const Expr bits = bitcast(x, ScalarType::kI64);
  const Expr mantissa = (bits & bits.bits_of(ScalarType::kI64, (std::int64_t{1} << 52) - 1)) |
                        bits.bits_of(ScalarType::kI64, std::int64_t{1} << 52);
  const Expr place = (bits >> 52) - 1069;
  const std::vector<Expr> words = words_of_two_over_pi((place >> 5) & 31, 5, kWords + 1);
  const Expr shift = place & 31;
  const auto low_word = [&](const Expr& value) { return value & kWord; };
  const Expr m0 = low_word(mantissa);
  const Expr m1 = shift_right_logical(mantissa, 32);
  std::vector<Expr> by0;
  std::vector<Expr> by1;
  for (std::size_t k = 0; k < kWords; ++k) {
    const Expr window =
        low_word(shift_left(words[k], shift)) | shift_right(words[k + 1], 32 - shift);
    by0.push_back(m0 * window);
    by1.push_back(m1 * window);
  }
  // Columns of 32 bits, from the last up.
  std::vector<Expr> product(kWords, bits.constant(0));
  Expr carry = bits.constant(0);
  for (std::size_t k = kWords; k-- > 0;) {
    Expr column = low_word(by0[k]) + carry;
    if (k + 1 < kWords) {
      column = column + shift_right_logical(by0[k + 1], 32) + low_word(by1[k + 1]);
    }
    if (k + 2 < kWords) column = column + shift_right_logical(by1[k + 2], 32);
    product[k] = low_word(column);
    carry = shift_right_logical(column, 32);
  }
  const Expr is_upper = (product[0] & 0x20000000) != 0;
  const Expr flip = select(is_upper, bits.constant(kWord), bits.constant(0));
  const Expr quadrant = shift_right_logical(product[0], 30) + (flip & 1);
  const auto digits = [&](std::size_t k) { return product[k] ^ flip; };
  // 30 and 96 bits as 51, 43 and 32, each of which is exact as a float.
  const auto part = [&](const Expr& value, double unit) {
    return convert(value, ScalarType::kF64) * unit;
  };
  const Expr first = ((digits(0) & 0x3fffffff) << 21) | shift_right_logical(digits(1), 11);
  const Expr second = ((digits(1) & 0x7ff) << 32) | digits(2);
  const Expr angle =
      radians(part(first, 1.0), part(second, 0x1p-43), part(digits(3), 0x1p-75), 0x1p-51);
  return {select(is_upper, -angle, angle), quadrant};
}

Expr value_of_angle(FarFunction function, const Expr& x) {
  const Expr magnitude = abs(x);
  const Reduced angle = is_f32(x) ? reduce_f32(magnitude) : reduce_f64(magnitude);
  const Expr value = function == FarFunction::kCos   ? cos_of(angle)
                     : function == FarFunction::kSin ? sin_of(angle)
                                                     : tan_of(angle);
  const Expr with_sign = function == FarFunction::kCos ? value : select(x < 0.0, -value, value);
  return select(is_inf(x), x.constant(kNan), with_sign);
}

/// A float that is not negative, as mantissa * 2^exponent with a mantissa in [1, 2).
struct Scaled {
  Expr mantissa, exponent;
};
Scaled scaled(const Expr& x) {
  const ScalarType integer = integer_of(x);
  const int width = is_f32(x) ? 23 : 52;
  const int bias = is_f32(x) ? 127 : 1023;
  const Expr given = bitcast(x, integer);
  const Expr one = bitcast(x.constant(1.0), integer);
  // The bits of a subnormal number count its units.
  const Expr is_subnormal = given < x.bits_of(integer, std::int64_t{1} << width);
  const Expr bits = select(is_subnormal, bitcast(convert(given, x.type()), integer), given);
  const Expr unit = select(is_subnormal, given.constant(bias + width - 1), given.constant(0));
  const Expr digits = bits & x.bits_of(integer, (std::int64_t{1} << width) - 1);
  return {bitcast(digits | one, x.type()), (bits >> width) - bias - unit};
}

/// A program under construction: its arguments, and what it gives.
class FarBuilder {
 public:
  Expr argument(int index, ScalarType type) {
    return {&builder_, builder_.emit({Opcode::kArgument, type, 0, 0, 0, index})};
  }
  ScalarProgram finish(std::initializer_list<Expr> results) {
    ScalarProgram program{builder_.code(), {}};
    for (const Expr& result : results) program.outputs.push_back(result.reg());
    return program;
  }

 private:
  ProgramBuilder builder_;
};

FarProgram far_angle(FarFunction function, ScalarType type) {
  FarProgram program;
  FarBuilder begin;
  const Expr x = begin.argument(0, type);
  program.begin = begin.finish({value_of_angle(function, x), x.constant_of(ScalarType::kI32, 0)});
  FarBuilder end;
  program.end = end.finish({end.argument(2, type)});
  return program;
}

// The state is what is left of the dividend, the divisor's mantissa, and how many places of the
// quotient are missing.
FarProgram far_fmod(ScalarType type) {
  const ScalarType integer = type == ScalarType::kF32 ? ScalarType::kI32 : ScalarType::kI64;
  FarProgram program;
  FarBuilder begin;
  const Scaled dividend = scaled(abs(begin.argument(0, type)));
  const Scaled divisor = scaled(abs(begin.argument(1, type)));
  program.begin =
      begin.finish({dividend.mantissa, divisor.mantissa, dividend.exponent - divisor.exponent});

  FarBuilder step;
  Expr rest = step.argument(0, type);
  const Expr mantissa = step.argument(1, type);
  Expr missing = step.argument(2, integer);
  // So many places of a quotient are near enough to its value for what is left to lie within 1.2
  // divisors: the difference is exact.
  const Expr most = missing.constant(type == ScalarType::kF32 ? 19 : 48);
  constexpr int kDivisions = 4;
  for (int k = 0; k < kDivisions; ++k) {
    const Expr places = min_number(most, missing);
    const Expr wide = rest * power_of_two(places, rest);
    rest = fma(-round_even(quotient(wide, mantissa)), mantissa, wide);
    missing = missing - places;
  }
  program.step = step.finish({rest, mantissa, missing});

  FarBuilder end;
  const Expr a = end.argument(0, type);
  const Expr b = end.argument(1, type);
  const Expr left = end.argument(2, type);
  const Expr whole = select(left < 0.0, left + end.argument(3, type), left);
  // Two factors, so that both powers are normal numbers.
  const Expr exponent = scaled(abs(b)).exponent;
  const Expr half = exponent >> 1;
  const Expr value = whole * power_of_two(half, a) * power_of_two(exponent - half, a);
  program.end = end.finish({select(is_inf(a) | (b == 0.0), a.constant(kNan), copysign(value, a))});
  return program;
}

}  // namespace

FarProgram far_program(FarFunction function, ScalarType type) {
  return function == FarFunction::kFmod ? far_fmod(type) : far_angle(function, type);
}

}  // namespace vkml::ops
