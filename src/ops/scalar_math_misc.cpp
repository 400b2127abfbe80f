// The error function, comparisons that respect NaN, signs and bits of floats, division with
// rounding, random bits.

#include <limits>

#include "scalar_math_internal.h"
#include "vkml/ops/scalar_math.h"

namespace vkml::ops {
namespace {

/// exp(x^2) erfc(x) for x >= 0: a polynomial in (x - k) / (x + k) over 1 + 2 x.
Expr erfcx(const Expr& x) {
  constexpr double kCentre = 3.75;
  const Expr t = (x - kCentre) / (x + kCentre);
  const Expr p =
      is_f32(x)
          ? horner(t, {0.00002363482006846268514, -0.0002240520495195495321,
                       0.0003253884645535187017, 0.001675734250806428339, -0.0097646904977876311,
                       0.0284094303914791094, -0.05868825204940161157, 0.09229069167207875793,
                       -0.1088045645486098416, 0.08227843390475284386, 0.003585438016476337048,
                       -0.1402406590178899306, 1.237512630837827582})
          : horner(
                t,
                {-7.666209795998097555e-11,  -3.758730803562325542e-11, 9.234867707529155134e-10,
                 5.460657473630791821e-10,   -6.606829477916605107e-9,  -4.390251943140879504e-9,
                 4.107398937332565116e-8,    2.429131177189471249e-8,   -2.612582098890152743e-7,
                 -5.826439766695698605e-8,   1.753524629869782443e-6,   -9.728484952656483292e-7,
                 -0.00001144508983794941005, 0.00002238391153191697539, 0.00005164942174523646538,
                 -0.0002901539791322485877,  0.0002937135915934920113,  0.001755625832389553402,
                 -0.009746579547145437495,   0.02836227742151966918,    -0.05869339859058928991,
                 0.09230432116019804538,     -0.1088039301417055516,    0.08227673849015103356,
                 0.003585415485463655858,    -0.1402405985855470185,    1.237512630837827582});
  return p / fma(x, x.constant(2.0), x.constant(1.0));
}

/// erf's Taylor series for |x| < 1: 2 / sqrt(pi) * sum (-1)^n x^(2n+1) / (n! (2n+1)).
Expr erf_series(const Expr& x) {
  constexpr double kScale = 1.12837916709551257390;
  const Expr z = x * x;
  const Expr series =
      is_f32(x) ? horner(z, {-1.0 / 918086400.0, 1.0 / 76204800.0, -1.0 / 6894720.0, 1.0 / 685440.0,
                             -1.0 / 75600.0, 1.0 / 9360.0, -1.0 / 1320.0, 1.0 / 216.0, -1.0 / 42.0,
                             1.0 / 10.0, -1.0 / 3.0})
                : horner(z, {-1.0 / 4744158915944448000.0, 1.0 / 236887827111936000.0,
                             -1.0 / 12449059983360000.0, 1.0 / 690452066304000.0,
                             -1.0 / 40537905408000.0, 1.0 / 2528170444800.0, -1.0 / 168129561600.0,
                             1.0 / 11975040000.0, -1.0 / 918086400.0, 1.0 / 76204800.0,
                             -1.0 / 6894720.0, 1.0 / 685440.0, -1.0 / 75600.0, 1.0 / 9360.0,
                             -1.0 / 1320.0, 1.0 / 216.0, -1.0 / 42.0, 1.0 / 10.0, -1.0 / 3.0});
  const Expr scaled = x * kScale;
  return fma(series * z, scaled, scaled);
}

/// erfc(x) for x >= 0, relatively accurate into the tail.
Expr erfc_tail(const Expr& x) {
  const Expr square = x * x;
  const Expr error = fma(x, x, -square);
  const Expr e = exp(-square);
  const Expr value = fma(-e, error, e) * erfcx(x);
  const double vanishes = is_f32(x) ? 10.6 : 27.3;
  return select(x > vanishes, x.constant(0.0), value);  // a NaN runs through
}

}  // namespace

Expr erf(const Expr& x) {
  const Expr magnitude = abs(x);
  const Expr outer = x.constant(1.0) - erfc_tail(magnitude);
  return select(magnitude < 1.0, erf_series(x), select(x < 0.0, -outer, outer));
}

Expr erfc(const Expr& x) {
  const Expr tail = erfc_tail(abs(x));
  const Expr outer = select(x < 0.0, x.constant(2.0) - tail, tail);
  return select(abs(x) < 0.5, x.constant(1.0) - erf_series(x), outer);
}

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
  const Expr bits = bitcast(from, integer);
  // Bits count up away from 0.
  const Expr outward = (to > from) ^ (bits < 0);
  const Expr next = bitcast(select(outward, bits + 1, bits - 1), from.type());
  const Expr smallest = copysign(bitcast(from.bits_of(integer, 1), from.type()), to);
  const Expr moved = select(from == 0.0, smallest, next);
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
/// step repairs quotients with more bits than the type; past what two steps reach the remainder is
/// 0.
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
  // One step further, in the direction that gives the remainder its sign.
  const Expr divisor = copysign(b, sign);
  const Expr step = select((b < 0.0) ^ (sign < 0.0), b.constant(1), b.constant(-1));
  const Expr quotient = first + select(opposite, second + step, second);
  const Expr remainder = select(opposite, last + divisor, last);

  const double reach = is_f32(a) ? 0x1p46 : 0x1p104;
  const Expr a_finite = ~is_inf(a) & ~is_nan(a);
  const Expr huge = a_finite & (b != 0.0) & (abs(first) >= reach);
  const Expr infinite_b = is_inf(b) & a_finite;
  const Expr below = is_opposite(a);
  const Expr zero = a.constant(0);
  const Expr large_quotient = select(huge, first, select(b == 0.0, ratio, quotient));
  return {select(infinite_b, select(below, a.constant(-1), zero), large_quotient),
          select(infinite_b, select(below, b, a), select(huge, zero, remainder))};
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
