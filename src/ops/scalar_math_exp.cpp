// exp, log, pow and what is made of them: tanh, sigmoid, hyperbolic functions.

#include <limits>

#include "scalar_math_internal.h"
#include "vkml/ops/scalar_math.h"

namespace vkml::ops {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kLog2E = 1.4426950408889634074;
constexpr double kLn2 = 0.69314718055994530942;

/// ln 2 in two parts; the first has so few bits that a product with an exponent is exact.
struct Ln2Parts {
  double high, low;
};
Ln2Parts ln2_parts(const Expr& x) {
  if (is_f32(x)) return {0.693359375, -2.12194440054690583e-4};
  return {6.93147180369123816490e-01, 1.90821492927058770002e-10};
}

/// Limits x to where 2^n stays reachable by two factors; NaN passes.
Expr clamp_exponent(const Expr& x) {
  const double high = is_f32(x) ? 90.0 : 711.0;
  const double low = is_f32(x) ? -105.0 : -746.0;
  return max_number(x.constant(low), min_number(x.constant(high), x));
}

}  // namespace

Expr power_of_two(const Expr& n, const Expr& like) {
  if (is_f32(like)) return bitcast((n + 127) << 23, ScalarType::kF32);
  return bitcast((n + 1023) << 52, ScalarType::kF64);
}

namespace {

/// The nearest integer, as a float and as an integer.
struct Nearest {
  Expr value, integer;
};

/// That of x * factor, for products below 2^21. Beside 1.5 * 2^23 (2^52 of f64) a float has no room
/// for a fraction, and its low bits count: cheaper on GPUs, whose rounding and conversions run at a
/// fraction of the speed of additions. NaN gives NaN and any integer.
Nearest nearest_of_product(const Expr& x, double factor) {
  const Expr large = x.constant(is_f32(x) ? 0x1.8p23 : 0x1.8p52);
  const Expr sum = x * factor + large;
  const ScalarType integer = integer_of(x);
  return {sum - large, bitcast(sum, integer) - bitcast(large, integer)};
}

/// exp(x) = 2^n (1 + p).
struct ExpCore {
  Expr n;  // integer
  Expr p;
};
ExpCore exp_core(const Expr& x) {
  const auto [n, integer] = nearest_of_product(x, kLog2E);
  const Ln2Parts ln2 = ln2_parts(x);
  const Expr r = fma(n, x.constant(-ln2.low), fma(n, x.constant(-ln2.high), x));
  const Expr series = is_f32(x)
                          ? horner(r, {1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3,
                                       4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1})
                          : horner(r, {1.0 / 6227020800.0, 1.0 / 479001600.0, 1.0 / 39916800.0,
                                       1.0 / 3628800.0, 1.0 / 362880.0, 1.0 / 40320.0, 1.0 / 5040.0,
                                       1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5});
  return {integer, fma(series, r * r, r)};
}

}  // namespace

ExpParts exp_parts(const Expr& x) {
  const ExpCore core = exp_core(x);
  const Expr half = core.n >> 1;
  return {power_of_two(half, x), power_of_two(core.n - half, x), power_of_two(-half, x), core.p};
}

Expr exp(const Expr& x) { return x.emit(Opcode::kExp, x.type()); }

const ScalarProgram& exp_program(ScalarType type) {
  const auto record = [](ScalarType of) {
    ProgramBuilder builder;
    const Expr x{&builder, builder.emit({Opcode::kArgument, of, 0, 0, 0, 0})};
    const ExpParts parts = exp_parts(clamp_exponent(x));
    const Expr y = (parts.p + 1.0) * parts.scale1 * parts.scale2;
    return ScalarProgram{builder.code(), {y.reg()}};
  };
  static const ScalarProgram f32 = record(ScalarType::kF32);
  static const ScalarProgram f64 = record(ScalarType::kF64);
  return type == ScalarType::kF32 ? f32 : f64;
}

Expr exp2(const Expr& x) {
  const double high = is_f32(x) ? 129.0 : 1025.0;
  const double low = is_f32(x) ? -151.0 : -1076.0;
  const Expr clamped = max_number(x.constant(low), min_number(x.constant(high), x));
  const auto [n, integer] = nearest_of_product(clamped, 1.0);
  const Expr fraction = clamped - n;
  // |fraction| <= 1/2, so exp of it needs no further reduction.
  const Expr e = exp_parts(fraction * kLn2).p + 1.0;
  const Expr half = integer >> 1;
  return e * power_of_two(half, x) * power_of_two(integer - half, x);
}

Expr ldexp(const Expr& x, const Expr& exponent) {
  // In two factors: each is finite wherever the result is.
  const Expr half = floor(exponent * 0.5);
  const Expr limit = x.constant(2048.0);
  const Expr first = max_number(-limit, min_number(limit, half));
  return x * exp2(first) * exp2(exponent - first);
}

Expr cbrt(const Expr& x) {
  // x = 2^(3 third) t with t in [2^-1.5, 2^1.5): Halley's steps from a parabola, which is 2 % off.
  const double small = is_f32(x) ? 0x1p-100 : 0x1p-900;
  const double up = is_f32(x) ? 0x1p24 : 0x1p54;
  const double down = is_f32(x) ? 0x1p-8 : 0x1p-18;
  const Expr a = abs(x);
  const Expr is_small = a < small;
  const Split split = split_exponent(select(is_small, a * up, a));
  // floor((exponent + 1) / 3): n / 3 is n * 21846 / 2^16 for n in [0, 2^15). A division of 64 bits
  // by 3 costs more, and an NVIDIA driver (580.159) gets it wrong under the shift that follows.
  constexpr int kPositive = 400;
  const Expr third = (((split.exponent + (3 * kPositive + 1)) * 21846) >> 16) - kPositive;
  const Expr t = split.mantissa * power_of_two(split.exponent - third * 3, x);
  Expr y = horner(t, {-0.09154, 0.5770, 0.5145});
  const int steps = is_f32(x) ? 2 : 3;
  for (int step = 0; step < steps; ++step) {
    const Expr cube = y * y * y;
    y = y - y * ((cube - t) / (cube + cube + t));
  }
  const Expr root = y * power_of_two(third, x) * select(is_small, x.constant(down), x.constant(1));
  const Expr is_itself = (x == 0.0) | is_inf(x) | is_nan(x);
  return select(is_itself, x, copysign(root, x));
}

Expr expm1(const Expr& x) {
  const ExpParts parts = exp_parts(clamp_exponent(x));
  // scale1 * (scale2 * p + (scale2 - 1 / scale1)): exact where n = 0, no overflow before the
  // result.
  const Expr value = fma(parts.scale2, parts.p, parts.scale2 - parts.inverse1) * parts.scale1;
  return select(x == 0.0, x, value);
}

Split split_exponent(const Expr& x) {
  const bool f32 = is_f32(x);
  const ScalarType integer = integer_of(x);
  const Expr bits = bitcast(x, integer);
  const std::int64_t sqrt_half = f32 ? 0x3f3504f3 : 0x3fe6a09e667f3bcd;
  const int mantissa_bits = f32 ? 23 : 52;
  const Expr exponent = (bits - x.bits_of(integer, sqrt_half)) >> mantissa_bits;
  return {exponent, bitcast(bits - (exponent << mantissa_bits), x.type())};
}

Expr atanh_series(const Expr& z) {
  if (is_f32(z)) return z * horner(z, {1.0 / 9, 1.0 / 7, 1.0 / 5, 1.0 / 3});
  return z * horner(z, {1.0 / 23, 1.0 / 21, 1.0 / 19, 1.0 / 17, 1.0 / 15, 1.0 / 13, 1.0 / 11,
                        1.0 / 9, 1.0 / 7, 1.0 / 5, 1.0 / 3});
}

namespace {

/// Brings subnormals into the normal range.
struct Scaled {
  Expr value, exponent_shift;
};
Scaled scale_subnormals(const Expr& x) {
  const double least = is_f32(x) ? 0x1p-126 : 0x1p-1022;
  const double factor = is_f32(x) ? 0x1p24 : 0x1p54;
  const Expr small = x < least;
  return {select(small, x * factor, x),
          select(small, x.constant(is_f32(x) ? -24 : -54), x.constant(0))};
}

/// log's values outside the positive finite numbers. Infinity and NaN pass through. What decides
/// is not `x >= 0`, which a driver's compiler takes to hold for every abs(y), NaN or not.
Expr log_edges(const Expr& x, const Expr& value) {
  const Expr finite = select(x < kInfinity, value, x);
  const Expr nonzero = select(x == 0.0, x.constant(-kInfinity), finite);
  return select(x < 0.0, x.constant(kNan), nonzero);
}

/// log(mantissa) of 1 + f, with f exact.
Expr log_of_one_plus(const Expr& f) {
  const Expr s = f / (f + 2.0);
  const Expr twice = s + s;
  return fma(twice, atanh_series(s * s), twice);
}

}  // namespace

Expr log(const Expr& x) {
  const Scaled scaled = scale_subnormals(x);
  const Split split = split_exponent(scaled.value);
  const Expr e = convert(split.exponent, x.type()) + scaled.exponent_shift;
  const Ln2Parts ln2 = ln2_parts(x);
  const Expr m = log_of_one_plus(split.mantissa - 1.0);
  return log_edges(x, fma(e, x.constant(ln2.high), fma(e, x.constant(ln2.low), m)));
}

Expr log2(const Expr& x) {
  const Scaled scaled = scale_subnormals(x);
  const Split split = split_exponent(scaled.value);
  const Expr e = convert(split.exponent, x.type()) + scaled.exponent_shift;
  const Expr m = log_of_one_plus(split.mantissa - 1.0);
  // log2(e) = 1 + rest: the product with 1 is exact.
  return log_edges(x, e + fma(m, x.constant(kLog2E - 1.0), m));
}

Expr log10(const Expr& x) {
  constexpr double kLog10Of2 = 0.30102999566398119521;
  constexpr double kLog10OfE = 0.43429448190325182765;
  const Scaled scaled = scale_subnormals(x);
  const Split split = split_exponent(scaled.value);
  const Expr e = convert(split.exponent, x.type()) + scaled.exponent_shift;
  const double high = is_f32(x) ? 0.301025390625 : 0.30102999566406261147;
  const Expr m = log_of_one_plus(split.mantissa - 1.0) * kLog10OfE;
  return log_edges(x, fma(e, x.constant(high), fma(e, x.constant(kLog10Of2 - high), m)));
}

Expr log1p(const Expr& x) {
  const Expr u = x + 1.0;
  const Expr lost = x - (u - 1.0);  // what rounding took from u
  const Split split = split_exponent(u);
  const Expr e = convert(split.exponent, x.type());
  const Expr near_one = split.exponent == 0;
  // Nothing is lost from a large u: the limit keeps the power of two a normal number.
  const Expr scale = power_of_two(-min_number(split.exponent.constant(64), split.exponent), x);
  const Expr f = select(near_one, x, fma(lost, scale, split.mantissa - 1.0));
  const Ln2Parts ln2 = ln2_parts(x);
  const Expr m = log_of_one_plus(f);
  const Expr value = fma(e, x.constant(ln2.high), fma(e, x.constant(ln2.low), m));
  const double tiny = is_f32(x) ? 1e-8 : 1e-17;
  // As in log_edges, NaN takes the branch of infinity.
  const Expr finite = select(abs(x) < tiny, x, select(x < kInfinity, value, x));
  const Expr above = select(x == -1.0, x.constant(-kInfinity), finite);
  return select(x < -1.0, x.constant(kNan), above);
}

namespace {

/// |x|^y for positive finite |x| and finite y, with log|x| carried in two parts.
Expr pow_positive(const Expr& ax, const Expr& y) {
  const Scaled scaled = scale_subnormals(ax);
  const Split split = split_exponent(scaled.value);
  const Expr e = convert(split.exponent, ax.type()) + scaled.exponent_shift;
  const Ln2Parts ln2 = ln2_parts(ax);
  const Expr f = split.mantissa - 1.0;
  const Expr d = f + 2.0;
  const Expr d_low = f - (d - 2.0);
  const Expr s = f / d;
  const Expr s_low = (fma(-s, d, f) - s * d_low) / d;
  const Expr twice = s + s;
  const Expr tail = fma(twice, atanh_series(s * s), s_low + s_low);
  // e * ln2.high is exact; the larger of it and 2 s leads, by a two-sum.
  const Expr lead = e * ln2.high;
  const Expr sum = lead + twice;
  const Expr part = sum - lead;
  const Expr error = (lead - (sum - part)) + (twice - part);
  const Expr low = fma(e, ax.constant(ln2.low), tail + error);
  const Expr high = sum + low;
  const Expr rest = low - (high - sum);
  const Expr product = y * high;
  const Expr product_low = fma(y, high, -product) + y * rest;
  const Expr clamped = clamp_exponent(product);
  const ExpParts parts = exp_parts(clamped);
  const Expr value = parts.p + 1.0;
  const Expr corrected = fma(value, select(clamped == product, product_low, y.constant(0)), value);
  return corrected * parts.scale1 * parts.scale2;
}

Expr pow_integer(const Expr& x, const Expr& y) {
  const int bits = x.type() == ScalarType::kI32 ? 31 : 63;
  Expr result = x.constant(1);
  Expr factor = x;
  for (int bit = 0; bit < bits; ++bit) {
    result = select((shift_right_logical(y, bit) & 1) != 0, result * factor, result);
    if (bit + 1 < bits) factor = factor * factor;
  }
  // A negative power of an integer truncates: only 1 and -1 are not 0.
  const Expr odd = (y & 1) != 0;
  const Expr minus_one = select(odd, x.constant(-1), x.constant(1));
  const Expr inverse = select(x == 1, x.constant(1), select(x == -1, minus_one, x.constant(0)));
  return select(y < 0, inverse, result);
}

}  // namespace

Expr pow(const Expr& x, const Expr& y) {
  if (x.type() == ScalarType::kBool) return x | ~y;
  if (!is_floating(x.type())) return pow_integer(x, y);
  const Expr ax = abs(x);
  const Expr zero = x.constant(0);
  const Expr one = x.constant(1);
  const Expr infinity = x.constant(kInfinity);
  const Expr y_infinite = abs(y) == kInfinity;
  const Expr rising = y > 0.0;
  const Expr grows = select(rising, infinity, zero);
  const Expr shrinks = select(rising, zero, infinity);
  Expr value = pow_positive(ax, y);
  value = select(ax == 0.0, shrinks, select(ax == kInfinity, grows, value));
  const Expr at_infinite_power = select(ax > 1.0, grows, select(ax < 1.0, shrinks, one));
  value = select(y_infinite, at_infinite_power, value);
  const Expr whole = trunc(y) == y;
  const Expr half = y * 0.5;
  const Expr odd = whole & (trunc(half) != half);
  const Expr negative = bitcast(x, integer_of(x)) < 0;
  value = select(negative & odd, -value, value);
  value = select((x < 0.0) & ~whole & (ax != kInfinity), x.constant(kNan), value);
  value = select(is_nan(x) | is_nan(y), x.constant(kNan), value);
  return select((y == 0.0) | (x == 1.0), one, value);
}

Expr tanh(const Expr& x) {
  const double saturated = is_f32(x) ? 10.0 : 20.0;
  const Expr magnitude = min_number(x.constant(saturated), abs(x));
  // expm1(2 |x|), whose exponent is small and not negative.
  const ExpCore core = exp_core(magnitude + magnitude);
  const Expr scale = power_of_two(core.n, x);
  const Expr e = fma(scale, core.p, scale - 1.0);
  return copysign(quotient(e, e + 2.0), x);
}

Expr sinh(const Expr& x) {
  const Expr magnitude = abs(x);
  const Expr e = expm1(magnitude);
  const Expr middle = (e + e / (e + 1.0)) * 0.5;
  // Past the middle, exp(|x| / 2) twice avoids overflow before the result.
  const Expr h = exp(magnitude * 0.5);
  const Expr value = select(magnitude < 20.0, middle, h * 0.5 * h);
  return select(x < 0.0, -value, select(x == 0.0, x, value));
}

Expr cosh(const Expr& x) {
  const Expr h = exp(abs(x) * 0.5);
  const Expr e = h * h;
  return select(abs(x) < 20.0, (e + x.constant(1.0) / e) * 0.5, h * 0.5 * h);
}

Expr sigmoid(const Expr& x) { return quotient(x.constant(1.0), exp(-x) + 1.0); }

Expr asinh(const Expr& x) {
  const Expr a = abs(x);
  const Expr square = a * a;
  const Expr middle = log1p(a + square / (sqrt(square + 1.0) + 1.0));
  // Past the square root of what the type resolves, 1 does not count beside x^2.
  const double large = is_f32(x) ? 1e6 : 1e10;
  return copysign(select(a < large, middle, log(a) + kLn2), x);
}

Expr acosh(const Expr& x) {
  const Expr t = x - 1.0;
  const Expr middle = log1p(t + sqrt(fma(t, t, t + t)));
  const double large = is_f32(x) ? 1e6 : 1e10;
  const Expr value = select(x < large, middle, log(x) + kLn2);
  return select(x >= 1.0, value, x.constant(kNan));
}

Expr atanh(const Expr& x) {
  const Expr a = abs(x);
  return copysign(log1p((a + a) / (1.0 - a)) * 0.5, x);
}

Expr logaddexp(const Expr& a, const Expr& b) {
  const Expr larger = maximum(a, b);
  const Expr correction = log1p(exp(-abs(a - b)));
  // Equal infinities have no difference.
  return larger + select(is_inf(larger), larger.constant(0.0), correction);
}

Expr logaddexp2(const Expr& a, const Expr& b) {
  const Expr larger = maximum(a, b);
  const Expr correction = log1p(exp2(-abs(a - b))) * kLog2E;
  return larger + select(is_inf(larger), larger.constant(0.0), correction);
}

Expr logit(const Expr& x) {
  // Around 1/2, 2 x - 1 is exact: log(x / (1 - x)) = 2 atanh(2 x - 1).
  const Expr s = fma(x, x.constant(2.0), x.constant(-1.0));
  const Expr series = fma(s + s, atanh_series(s * s), s + s);
  const double reach = 0.17;
  return select(abs(s) < reach, series, log(x / (1.0 - x)));
}

Expr tanhshrink(const Expr& x) {
  const Expr z = x * x;
  const Expr series =
      is_f32(x)
          ? horner(z, {-1.42793188e-4, 9.235008463e-4, -0.003206803387, 0.008697847593,
                       -0.02182954884, 0.05396341475, -0.1333331066, 0.3333333316})
          : horner(z, {-2.515502365938210575e-8, 2.633077223295933462e-7, -1.37918144990833416e-6,
                       4.98776031752034667e-6, -1.460613167671537848e-5, 3.838960789314733313e-5,
                       -9.646277743313181427e-5, 2.389570522873822522e-4, -5.899792946300051656e-4,
                       0.001455824692096494197, -0.003592126679366341199, 0.008863235404578282485,
                       -0.02186948852912909013, 0.05396825396804637585, -0.1333333333333309007,
                       0.3333333333333333286});
  return select(abs(x) < 1.0, series * z * x, x - tanh(x));
}

Expr softplus(const Expr& x, const Expr& beta, const Expr& threshold) {
  const Expr scaled = x * beta;
  const Expr e = exp(-abs(scaled));
  // What rounding took from the product counts in the exponential.
  const Expr lost = fma(x, beta, -scaled);
  const Expr corrected = select(e == 0.0, e, fma(e, select(scaled < 0.0, lost, -lost), e));
  const Expr value = (max_number(x.constant(0), scaled) + log1p(corrected)) / beta;
  return select(scaled > threshold, x, value);
}

Expr mish(const Expr& x) {
  // tanh(log(1 + e)) = e (e + 2) / (e (e + 2) + 2), which is 1 from where e^2 hides the 2.
  const double saturated = is_f32(x) ? 20.0 : 40.0;
  const Expr e = exp(min_number(x.constant(saturated), x));
  const Expr n = e * (e + 2.0);
  const Expr vanishes = x == -kInfinity;
  return select(vanishes, x.constant(-0.0), x * (n / (n + 2.0)));
}

}  // namespace vkml::ops
