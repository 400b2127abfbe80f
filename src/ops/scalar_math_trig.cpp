// sin, cos, tan and their inverses.

#include "scalar_math_internal.h"
#include "vkml/ops/scalar_math.h"

namespace vkml::ops {
namespace {

/// x = quadrant * pi/2 + r, with pi/2 in three parts, of which the first product cancels exactly.
/// Past the functions' reach, x * 2/pi is rounded to so few binary places that the quadrant may be
/// the next one, and r too large for the polynomials; farther out no digit of r is right.
Reduced reduce_quadrant(const Expr& x) {
  const Expr n = round_even(x * 0.63661977236758134308);
  const bool f32 = is_f32(x);
  const double part1 = f32 ? 1.57079637050628662109375 : 1.57079632679489655800e+00;
  const double part2 = f32 ? -4.37113900018624283e-8 : 6.12323399573676603587e-17;
  const double part3 = f32 ? 1.7151245100058819e-15 : -1.4973849048591833e-33;
  Expr r = fma(n, x.constant(-part1), x);
  r = fma(n, x.constant(-part2), r);
  r = fma(n, x.constant(-part3), r);
  return {r, convert(n, integer_of(x))};
}

Expr sin_polynomial(const Expr& r) {
  const Expr z = r * r;
  const Expr series =
      is_f32(r)
          ? horner(z, {-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1})
          : horner(z, {1.0 / 355687428096000.0, -1.0 / 1307674368000.0, 1.0 / 6227020800.0,
                       -1.0 / 39916800.0, 1.0 / 362880.0, -1.0 / 5040.0, 1.0 / 120.0, -1.0 / 6.0});
  return fma(series * z, r, r);
}

Expr cos_polynomial(const Expr& r) {
  const Expr z = r * r;
  const Expr series =
      is_f32(r) ? horner(z, {2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2})
                : horner(z, {-1.0 / 6402373705728000.0, 1.0 / 20922789888000.0,
                             -1.0 / 87178291200.0, 1.0 / 479001600.0, -1.0 / 3628800.0,
                             1.0 / 40320.0, -1.0 / 720.0, 1.0 / 24.0});
  return fma(series * z, z, fma(z, r.constant(-0.5), r.constant(1.0)));
}

}  // namespace

Expr sin_of(const Reduced& angle) {
  const auto& [r, quadrant] = angle;
  const Expr value = select((quadrant & 1) != 0, cos_polynomial(r), sin_polynomial(r));
  return select((quadrant & 2) != 0, -value, value);
}

Expr cos_of(const Reduced& angle) { return sin_of({angle.r, angle.quadrant + 1}); }

Expr tan_of(const Reduced& angle) {
  const Expr s = sin_polynomial(angle.r);
  const Expr c = cos_polynomial(angle.r);
  const Expr odd = (angle.quadrant & 1) != 0;
  return select(odd, -c, s) / select(odd, s, c);
}

Expr sin(const Expr& x) {
  const Expr near = select(x == 0.0, x, sin_of(reduce_quadrant(x)));
  return beyond(FarFunction::kSin, near, x, x);
}

Expr cos(const Expr& x) { return beyond(FarFunction::kCos, cos_of(reduce_quadrant(x)), x, x); }

Expr tan(const Expr& x) {
  const Expr near = select(x == 0.0, x, tan_of(reduce_quadrant(x)));
  return beyond(FarFunction::kTan, near, x, x);
}

namespace {
/// x turns as a quadrant and an angle in [-pi/4, pi/4].
Reduced reduce_turns(const Expr& x) {
  constexpr double kTwoPi = 6.28318530717958647692;
  const Expr quarters = round_even(x * 4.0);
  const Expr fraction = fma(quarters, x.constant(-0.25), x);
  return {fraction * kTwoPi, convert(quarters, integer_of(x))};
}
}  // namespace

Expr cos_of_turns(const Expr& x) { return cos_of(reduce_turns(x)); }

Expr sin_of_turns(const Expr& x) { return sin_of(reduce_turns(x)); }

Expr atan(const Expr& x) {
  constexpr double kHalfPi = 1.57079632679489661923;
  constexpr double kTanPiOver8 = 0.41421356237309504880;
  const Expr magnitude = abs(x);
  const Expr large = magnitude > 1.0;
  const Expr t = select(large, x.constant(1.0) / magnitude, magnitude);  // in [0, 1]
  const Expr upper = t > kTanPiOver8;
  const Expr z = select(upper, (t - 1.0) / (t + 1.0), t);
  const Expr z2 = z * z;
  const Expr series =
      is_f32(x)
          ? horner(z2,
                   {1.0 / 17, -1.0 / 15, 1.0 / 13, -1.0 / 11, 1.0 / 9, -1.0 / 7, 1.0 / 5, -1.0 / 3})
          : horner(z2,
                   {-1.0 / 43, 1.0 / 41,  -1.0 / 39, 1.0 / 37,  -1.0 / 35, 1.0 / 33,  -1.0 / 31,
                    1.0 / 29,  -1.0 / 27, 1.0 / 25,  -1.0 / 23, 1.0 / 21,  -1.0 / 19, 1.0 / 17,
                    -1.0 / 15, 1.0 / 13,  -1.0 / 11, 1.0 / 9,   -1.0 / 7,  1.0 / 5,   -1.0 / 3});
  const Expr reduced = fma(series * z2, z, z);
  const Expr angle = select(upper, reduced + kHalfPi / 2, reduced);
  const Expr value = select(large, x.constant(kHalfPi) - angle, angle);
  return select(x < 0.0, -value, select(x == 0.0, x, value));
}

namespace {
/// asin(s) for |s| <= 1/2.
Expr asin_series(const Expr& x) {
  const Expr z = x * x;
  const Expr series =
      is_f32(x)
          ? horner(z, {0.0336908472, 0.01714923836, 0.03110066274, 0.04459940153, 0.07500094543,
                       0.1666666634})
          : horner(z, {0.02961201126495512036, -0.01924167174674304065, 0.01955451333612337895,
                       0.003044879909455677396, 0.009319560794767446296, 0.009621842970100281018,
                       0.01156645961212166857, 0.01396378001220356964, 0.01735281654032549499,
                       0.02237215744350722242, 0.03038194447553233999, 0.0446428571425518929,
                       0.07500000000000117751, 0.1666666666666666659});
  return fma(series * z, x, x);
}
}  // namespace

Expr asin(const Expr& x) {
  constexpr double kHalfPi = 1.57079632679489661923;
  const Expr a = abs(x);
  const Expr outer = a > 0.5;
  // asin(a) = pi/2 - 2 asin(sqrt((1 - a) / 2)); past 1 the root is NaN.
  const Expr inner = asin_series(select(outer, sqrt((1.0 - a) * 0.5), a));
  return copysign(select(outer, fma(inner, x.constant(-2.0), x.constant(kHalfPi)), inner), x);
}

Expr acos(const Expr& x) {
  constexpr double kPi = 3.14159265358979323846;
  const Expr a = abs(x);
  const Expr outer = a > 0.5;
  const Expr inner = asin_series(select(outer, sqrt((1.0 - a) * 0.5), x));
  const Expr twice = inner + inner;
  const Expr end = select(x < 0.0, kPi - twice, twice);
  // pi/2 in two parts: what the first lacks counts where the angle is small.
  const double low = is_f32(x) ? -4.37113900018624283e-8 : 6.12323399573676603587e-17;
  const double high = is_f32(x) ? 1.57079637050628662109375 : 1.57079632679489655800e+00;
  return select(outer, end, high - (inner - low));
}

Expr atan2(const Expr& y, const Expr& x) {
  constexpr double kPi = 3.14159265358979323846;
  const Expr both_infinite = is_inf(y) & is_inf(x);
  const Expr ratio = select(both_infinite, x.constant(1.0), abs(y) / abs(x));
  // 0 / 0: the angle of (0, 0) is that of (1, 0).
  const Expr angle = select(y == 0.0, x.constant(0.0), atan(ratio));
  const double low = is_f32(x) ? -8.74227800037248566e-8 : 1.22464679914735317636e-16;
  const double high = is_f32(x) ? 3.1415927410125732421875 : kPi;
  const Expr turned = select(signbit(x), high - (angle - low), angle);
  return select(is_nan(y), y, select(is_nan(x), x, copysign(turned, y)));
}

}  // namespace vkml::ops
