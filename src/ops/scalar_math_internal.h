// What the files of scalar_math share: Horner's rule, the split of x into 2^exponent * mantissa,
// angles within a quadrant.
#pragma once

#include <initializer_list>

#include "vkml/ops/expr.h"
#include "vkml/ops/far_functions.h"

namespace vkml::ops {

inline bool is_f32(const Expr& x) { return x.type() == ScalarType::kF32; }
inline ScalarType integer_of(const Expr& x) {
  return is_f32(x) ? ScalarType::kI32 : ScalarType::kI64;
}

/// Coefficients from the highest power down.
inline Expr horner(const Expr& x, std::initializer_list<double> coefficients) {
  const double* next = coefficients.begin();
  Expr result = x.constant(*next++);
  for (; next != coefficients.end(); ++next) result = fma(result, x, x.constant(*next));
  return result;
}

/// Below this, sin(pi x) is pi x.
inline double nearly_linear(const Expr& x) { return is_f32(x) ? 1e-4 : 7e-9; }

/// 2^n for an integer n within the normal exponents.
Expr power_of_two(const Expr& n, const Expr& like);

/// log(x) = exponent * ln 2 + log(mantissa), mantissa in [sqrt(1/2), sqrt(2)); x positive.
struct Split {
  Expr exponent;  // integer, of integer_of(x)
  Expr mantissa;
};
Split split_exponent(const Expr& x);

/// atanh's series past its first term: (atanh(s) - s) / s for z = s * s, |s| <= 0.1716.
Expr atanh_series(const Expr& z);

/// Where b (and c) are past the reach of a formula that gave `near`, the function itself.
inline Expr beyond(FarFunction function, const Expr& near, const Expr& b, const Expr& c) {
  return near.emit(Opcode::kBeyond, near.type(), b, c, static_cast<std::int64_t>(function));
}

/// An angle of quadrant * pi/2 + r radians.
struct Reduced {
  Expr r;         // in [-pi/4, pi/4]
  Expr quadrant;  // integer
};
Expr sin_of(const Reduced& angle);
Expr cos_of(const Reduced& angle);
Expr tan_of(const Reduced& angle);

/// cos(2 pi x) and sin(2 pi x) for |x| below 2^22, without the rounding of a product with pi before
/// the reduction.
Expr cos_of_turns(const Expr& x);
Expr sin_of_turns(const Expr& x);

/// exp(x) - 1 = scale * (1 + p) - 1 with p = expm1(r); two factors reach every exponent.
struct ExpParts {
  Expr scale1, scale2;  // their product is 2^n
  Expr inverse1;        // 1 / scale1
  Expr p;               // expm1 of the reduced argument
};
ExpParts exp_parts(const Expr& clamped);

}  // namespace vkml::ops
