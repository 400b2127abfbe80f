// Mathematical functions written in the scalar instruction set, in f32 and f64.
//
// Each is a range reduction and a polynomial, so that every device computes the same thing within
// the bound that its row states. Sources: the reductions are Cody and Waite's (Software Manual for
// the Elementary Functions, 1980); f32 polynomials for exp, sin and cos are Cephes' (Moshier);
// f64 ones are Taylor series carried past the last place; erfc uses the variable of Shepherd and
// Laframboise (Math. Comp. 36, 1981) with coefficients interpolated at Chebyshev nodes, as are
// those of the inverse functions, the gamma family and the Bessel functions.
#pragma once

#include "vkml/ops/expr.h"

namespace vkml::ops {

Expr exp(const Expr& x);
Expr exp2(const Expr& x);
Expr expm1(const Expr& x);
Expr log(const Expr& x);
Expr log2(const Expr& x);
Expr log10(const Expr& x);
Expr log1p(const Expr& x);
Expr pow(const Expr& x,
         const Expr& y);  // integers: by squaring, wrapping; negative powers truncate
Expr sin(const Expr& x);
Expr cos(const Expr& x);
Expr tan(const Expr& x);
Expr asin(const Expr& x);
Expr acos(const Expr& x);
Expr atan(const Expr& x);
Expr atan2(const Expr& y, const Expr& x);
Expr sinh(const Expr& x);
Expr cosh(const Expr& x);
Expr tanh(const Expr& x);
Expr asinh(const Expr& x);
Expr acosh(const Expr& x);
Expr atanh(const Expr& x);
Expr sigmoid(const Expr& x);
Expr logit(const Expr& x);
Expr logaddexp(const Expr& a, const Expr& b);
Expr logaddexp2(const Expr& a, const Expr& b);
/// log(1 + exp(beta x)) / beta, and x where beta x > threshold.
Expr softplus(const Expr& x, const Expr& beta, const Expr& threshold);
Expr mish(const Expr& x);
Expr tanhshrink(const Expr& x);  // x - tanh(x), without the cancellation
Expr erf(const Expr& x);
Expr erfc(const Expr& x);
Expr erfcx(const Expr& x);  // exp(x^2) erfc(x)
Expr erfinv(const Expr& x);
/// The normal distribution function, its logarithm and its inverse.
Expr ndtr(const Expr& x);
Expr log_ndtr(const Expr& x);
Expr ndtri(const Expr& p);
Expr lgamma(const Expr& x);
Expr digamma(const Expr& x);
/// The first, second and third derivative of digamma.
Expr trigamma(const Expr& x);
Expr tetragamma(const Expr& x);
Expr pentagamma(const Expr& x);
/// Modified Bessel functions of the first kind, orders 0 and 1.
Expr i0(const Expr& x);
Expr i1(const Expr& x);
/// exp(-|x|) times them.
Expr i0e(const Expr& x);
Expr i1e(const Expr& x);
Expr sinc(const Expr& x);  // sin(pi x) / (pi x)
Expr hypot(const Expr& a, const Expr& b);
Expr cbrt(const Expr& x);
Expr ldexp(const Expr& x, const Expr& exponent);  // x 2^exponent

Expr is_nan(const Expr& x);
Expr is_inf(const Expr& x);
/// The larger / smaller, NaN if either is NaN.
Expr maximum(const Expr& a, const Expr& b);
Expr minimum(const Expr& a, const Expr& b);
/// The same, but the other one if one is NaN.
Expr fmax(const Expr& a, const Expr& b);
Expr fmin(const Expr& a, const Expr& b);
Expr signbit(const Expr& x);
Expr copysign(const Expr& magnitude, const Expr& sign);
Expr nextafter(const Expr& from, const Expr& to);
Expr sign(const Expr& x);  // -1, 0, 1; NaN stays
/// Python's division: rounds toward minus infinity; the remainder has the divisor's sign.
/// Integers: x // 0 = 0 and x % 0 = 0.
Expr floor_divide(const Expr& a, const Expr& b);
Expr remainder(const Expr& a, const Expr& b);
/// C's division: rounds toward zero; the remainder has the dividend's sign.
Expr trunc_divide(const Expr& a, const Expr& b);
Expr fmod(const Expr& a, const Expr& b);

/// Of integers, not negative; gcd(0, 0) = 0, and what leaves the type wraps.
Expr gcd(const Expr& a, const Expr& b);
Expr lcm(const Expr& a, const Expr& b);

/// The first two words of Philox-4x32-10 (Salmon et al., SC 2011) for counter (index, 0, 0, 0).
struct RandomWords {
  Expr first, second;  // i32
};
RandomWords philox(const Expr& index, const Expr& key0, const Expr& key1);
/// Uniform in [0, 1) with 24 bits, f32.
Expr random_uniform(const Expr& index, const Expr& key0, const Expr& key1);
/// Standard normal by Box and Muller, f32.
Expr random_normal(const Expr& index, const Expr& key0, const Expr& key1);

}  // namespace vkml::ops
