// Comparisons that respect NaN, signs and bits of floats, division with rounding, common divisors,
// random bits.

#include <limits>

#include "scalar_math_internal.h"
#include "vkml/ops/scalar_math.h"

namespace vkml::ops {
Expr is_nan(const Expr& x) {
  return is_floating(x.type()) ? x != x : x.constant_of(ScalarType::kBool, 0);
}

Expr is_inf(const Expr& x) {
  if (!is_floating(x.type())) return x.constant_of(ScalarType::kBool, 0);
  return abs(x) == std::numeric_limits<double>::infinity();
}

Expr maximum(const Expr& a, const Expr& b) {
  // max_number gives b when either is NaN: right for a NaN in b, wrong for one in a.
  const Expr larger = max_number(a, b);
  return is_floating(a.type()) ? select(a != a, a, larger) : larger;
}

Expr minimum(const Expr& a, const Expr& b) {
  const Expr smaller = min_number(a, b);
  return is_floating(a.type()) ? select(a != a, a, smaller) : smaller;
}

Expr fmax(const Expr& a, const Expr& b) {
  // max_number gives b when either is NaN: right for a NaN in a, wrong for one in b.
  const Expr larger = max_number(a, b);
  return is_floating(a.type()) ? select(b != b, a, larger) : larger;
}

Expr fmin(const Expr& a, const Expr& b) {
  const Expr smaller = min_number(a, b);
  return is_floating(a.type()) ? select(b != b, a, smaller) : smaller;
}

Expr signbit(const Expr& x) {
  if (x.type() == ScalarType::kBool) return x.constant_of(ScalarType::kBool, 0);
  if (!is_floating(x.type())) return x < 0;
  const Expr bits = bitcast(x, integer_of(x));
  return bits < 0;
}

Expr copysign(const Expr& magnitude, const Expr& sign) {
  const ScalarType integer = integer_of(sign);
  const std::int64_t mask = is_f32(sign) ? std::numeric_limits<std::int32_t>::min()
                                         : std::numeric_limits<std::int64_t>::min();
  const Expr sign_bit = sign.bits_of(integer, mask);
  const Expr bits = bitcast(abs(magnitude), integer) | (bitcast(sign, integer) & sign_bit);
  return bitcast(bits, sign.type());
}

Expr nextafter(const Expr& from, const Expr& to) {
  const ScalarType integer = integer_of(from);
  const DType dtype = from.builder().operands();
  // Bits count up away from 0, those of halves within an f32 in steps of what they lack.
  const int lacking = dtype == DType::kF16 ? 13 : (dtype == DType::kBF16 ? 16 : 0);
  const Expr unit = from.bits_of(integer, std::int64_t{1} << lacking);
  const Expr bits = bitcast(from, integer);
  const Expr upward = to > from;
  const Expr outward = upward ^ (bits < 0);
  const Expr next = bitcast(select(outward, bits + unit, bits - unit), from.type());
  const Expr smallest = copysign(bitcast(unit, from.type()), to);
  Expr moved = select(from == 0.0, smallest, next);
  if (dtype == DType::kF16) {
    // Subnormal halves are normal f32, equally far from each other; f32 has numbers before infinity
    // that are none of f16.
    const Expr step = select(upward, from.constant(0x1p-24), from.constant(-0x1p-24));
    const Expr small = from + step;
    moved = select(abs(from) <= 0x1p-14, select(small == 0.0, copysign(small, from), small), moved);
    moved = select(is_inf(from), copysign(from.constant(65504), from), moved);
  }
  const Expr value = select(from == to, to, moved);
  return select(is_nan(from), from, select(is_nan(to), to, value));
}

Expr hypot(const Expr& a, const Expr& b) {
  const Expr larger = max_number(abs(a), abs(b));
  const ScalarType integer = integer_of(a);
  // Both are scaled by a power of two, so that squares neither overflow nor vanish.
  const int mantissa_bits = is_f32(a) ? 23 : 52;
  const int bias = is_f32(a) ? 127 : 1023;
  const Expr exponent = bitcast(larger, integer) >> mantissa_bits;
  const Expr n =
      max_number(exponent.constant(2), min_number(exponent.constant(2 * bias - 2), exponent));
  const Expr scale = bitcast(n << mantissa_bits, a.type());
  const Expr inverse = bitcast((2 * bias - n) << mantissa_bits, a.type());
  const Expr x = a * inverse;
  const Expr y = b * inverse;
  const Expr value = sqrt(fma(x, x, y * y)) * scale;
  const Expr infinite = is_inf(a) | is_inf(b);
  return select(infinite, a.constant(std::numeric_limits<double>::infinity()), value);
}

Expr sign(const Expr& x) {
  if (x.type() == ScalarType::kBool) return x;
  const Expr value = select(x > 0, x.constant(1), select(x < 0, x.constant(-1), x.constant(0)));
  return is_floating(x.type()) ? select(x != x, x, value) : value;
}

namespace {

/// Quotient and remainder of floats, the remainder with the sign of `sign`: b's for Python's
/// division, a's for C's. The remainder of a quotient rounded to the nearest integer is at most
/// half of b, so one fma gives it exactly even where division is not correctly rounded. A second
/// step repairs quotients with more bits than the type; what two steps do not reach is kFmod's.
struct FloatDivision {
  Expr quotient, remainder;
};
FloatDivision divide_floats(const Expr& a, const Expr& b, const Expr& sign) {
  const Expr ratio = a / b;
  const Expr first = round_even(ratio);
  const Expr rest = fma(-first, b, a);
  const Expr second = round_even(rest / b);
  const Expr last = fma(-second, b, rest);
  const auto is_opposite = [&](const Expr& x) { return (x != 0.0) & ((x < 0.0) ^ (sign < 0.0)); };
  const Expr opposite = is_opposite(last);
  const Expr rest_of_all = beyond(FarFunction::kFmod, last, a, b);
  // One step further, in the direction that gives the remainder its sign.
  const Expr divisor = copysign(b, sign);
  const Expr step = select((b < 0.0) ^ (sign < 0.0), b.constant(1), b.constant(-1));
  const Expr quotient = first + select(opposite, second + step, second);
  const Expr remainder = select(is_opposite(rest_of_all), rest_of_all + divisor, rest_of_all);

  const double reach = reach_of(FarFunction::kFmod, a.type());
  const Expr a_finite = ~is_inf(a) & ~is_nan(a);
  const Expr huge = a_finite & (b != 0.0) & (abs(first) >= reach);
  const Expr infinite_b = is_inf(b) & a_finite;
  const Expr below = is_opposite(a);
  const Expr zero = a.constant(0);
  const Expr large_quotient = select(huge, first, select(b == 0.0, ratio, quotient));
  return {select(infinite_b, select(below, a.constant(-1), zero), large_quotient),
          select(infinite_b, select(below, b, a), remainder)};
}

}  // namespace

Expr trunc_divide(const Expr& a, const Expr& b) {
  if (!is_floating(a.type())) return a / b;
  const Expr ratio = a / b;
  return select(is_inf(a), ratio, copysign(divide_floats(a, b, a).quotient, ratio));
}

Expr fmod(const Expr& a, const Expr& b) {
  if (!is_floating(a.type())) return remainder_truncated(a, b);
  return copysign(divide_floats(a, b, a).remainder, a);
}

Expr floor_divide(const Expr& a, const Expr& b) {
  if (is_floating(a.type())) return divide_floats(a, b, b).quotient;
  const Expr quotient = a / b;
  const Expr rest = remainder_truncated(a, b);
  const Expr adjust = (rest != 0) & ((rest < 0) ^ (b < 0));
  return select(adjust, quotient - 1, quotient);
}

Expr remainder(const Expr& a, const Expr& b) {
  if (is_floating(a.type())) return divide_floats(a, b, b).remainder;
  const Expr rest = remainder_truncated(a, b);
  const Expr adjust = (rest != 0) & ((rest < 0) ^ (b < 0));
  return select(adjust, rest + b, rest);
}

Expr gcd(const Expr& a, const Expr& b) {
  // Euclid's algorithm; neighbours in Fibonacci's sequence take it longest.
  const int steps = a.type() == ScalarType::kI64 ? 91 : 46;
  Expr larger = a;
  Expr smaller = b;
  for (int step = 0; step < steps; ++step) {
    const Expr rest = remainder_truncated(larger, smaller);
    larger = select(smaller == 0, larger, smaller);
    smaller = rest;
  }
  return abs(larger);
}

Expr lcm(const Expr& a, const Expr& b) {
  const Expr product = a / gcd(a, b) * b;
  return select((a < 0) ^ (b < 0), -product, product);
}

RandomWords philox(const Expr& index, const Expr& key0, const Expr& key1) {
  const auto word = [&](std::uint32_t bits) {
    return index.bits_of(ScalarType::kI32, static_cast<std::int32_t>(bits));
  };
  const Expr multiplier0 = word(0xD2511F53u);
  const Expr multiplier1 = word(0xCD9E8D57u);
  const Expr weyl0 = word(0x9E3779B9u);
  const Expr weyl1 = word(0xBB67AE85u);
  Expr c0 = index;
  Expr c1 = word(0);
  Expr c2 = word(0);
  Expr c3 = word(0);
  Expr k0 = key0;
  Expr k1 = key1;
  constexpr int kRounds = 10;
  for (int round = 0; round < kRounds; ++round) {
    const Expr high0 = mul_high_u32(multiplier0, c0);
    const Expr high1 = mul_high_u32(multiplier1, c2);
    const Expr low0 = multiplier0 * c0;
    const Expr low1 = multiplier1 * c2;
    c0 = high1 ^ c1 ^ k0;
    c1 = low1;
    c2 = high0 ^ c3 ^ k1;
    c3 = low0;
    k0 = k0 + weyl0;
    k1 = k1 + weyl1;
  }
  return {c0, c1};
}

namespace {
/// The high 24 bits as a float in [0, 1).
Expr unit_interval(const Expr& word) {
  return convert(shift_right_logical(word, 8), ScalarType::kF32) * 0x1p-24;
}
}  // namespace

Expr random_uniform(const Expr& index, const Expr& key0, const Expr& key1) {
  return unit_interval(philox(index, key0, key1).first);
}

Expr random_normal(const Expr& index, const Expr& key0, const Expr& key1) {
  const RandomWords words = philox(index, key0, key1);
  // 1 - u lies in (0, 1], where the logarithm is finite.
  const Expr radius = sqrt(log(1.0 - unit_interval(words.first)) * -2.0);
  return radius * cos_of_turns(unit_interval(words.second));
}

}  // namespace vkml::ops
