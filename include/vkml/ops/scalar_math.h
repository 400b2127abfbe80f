// Mathematical functions written in the scalar instruction set, in f32 and f64.
//
// Each is a range reduction and a polynomial, so that every device computes the same thing within
// the bound that its row states. Sources: the reductions are Cody and Waite's (Software Manual for
// the Elementary Functions, 1980); f32 polynomials for exp, sin and cos are Cephes' (Moshier);
// f64 ones are Taylor series carried past the last place; erfc uses the variable of Shepherd and
// Laframboise (Math. Comp. 36, 1981) with coefficients interpolated at Chebyshev nodes.
#pragma once

#include "vkml/ops/expr.h"

namespace vkml::ops {

Expr exp(const Expr& x);
Expr exp2(const Expr& x);
Expr expm1(const Expr& x);
/// 1 + exp(x); exp(x) below 2^-125 (f32) or 2^-1021 (f64) counts as 0.
Expr one_plus_exp(const Expr& x);
Expr log(const Expr& x);
Expr log2(const Expr& x);
Expr log10(const Expr& x);
Expr log1p(const Expr& x);
Expr pow(const Expr& x,
         const Expr& y);  // integers: by squaring, wrapping; negative powers truncate
Expr sin(const Expr& x);
Expr cos(const Expr& x);
Expr tan(const Expr& x);
Expr atan(const Expr& x);
Expr sinh(const Expr& x);
Expr cosh(const Expr& x);
Expr tanh(const Expr& x);
Expr sigmoid(const Expr& x);
Expr erf(const Expr& x);
Expr erfc(const Expr& x);

Expr is_nan(const Expr& x);
Expr is_inf(const Expr& x);
/// The larger / smaller, NaN if either is NaN.
Expr maximum(const Expr& a, const Expr& b);
Expr minimum(const Expr& a, const Expr& b);
Expr sign(const Expr& x);  // -1, 0, 1; NaN stays
/// Python's division: rounds toward minus infinity; the remainder has the divisor's sign.
/// Integers: x // 0 = 0 and x % 0 = 0.
Expr floor_divide(const Expr& a, const Expr& b);
Expr remainder(const Expr& a, const Expr& b);

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
