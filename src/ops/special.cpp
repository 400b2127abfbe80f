// Special functions of any order, and what their derivatives need, as expressions of elementwise
// operators. Bound: arithmetic, some hundred operations for an element of a polygamma.

#include <array>
#include <cmath>
#include <numbers>
#include <vector>

#include "record.h"
#include "vkml/ops/composites.h"

namespace vkml::graph {
namespace {

/// x to the power of a positive integer, by repeated squaring.
Value power(Value x, std::int64_t exponent) {
  Value result;
  for (; exponent > 0; exponent /= 2) {
    if (exponent % 2 == 1) result = result ? result * x : x;
    if (exponent > 1) x = x * x;
  }
  return result;
}

/// c_0 + c_1 x + ..., of two coefficients or more.
Value polynomial(const Value& x, std::span<const double> coefficients) {
  std::size_t i = coefficients.size() - 2;
  Value result = x * coefficients[i + 1] + coefficients[i];
  while (i-- > 0) result = result * x + coefficients[i];
  return result;
}

/// n! times the sum of 1 / (x + k)^(n + 1) over k from 0, for positive x: by its terms, then by the
/// series of Euler and Maclaurin (NIST Handbook of Mathematical Functions, 25.11.43).
Value reciprocal_powers(const Value& x, std::int64_t order) {
  constexpr std::array<double, 9> kBernoulli = {1.0 / 6,   -1.0 / 30,     1.0 / 42,
                                                -1.0 / 30, 5.0 / 66,      -691.0 / 2730,
                                                7.0 / 6,   -3617.0 / 510, 43867.0 / 798};
  const auto n = static_cast<double>(order);
  // n! (1 / z)^(n + 1), and (n - 1)! (1 / z)^n: inside the power it does not overflow.
  const double scale = std::exp(std::lgamma(n + 1) / (n + 1));
  const double scale_of_integral = std::exp(std::lgamma(n) / n);
  const auto term = [&](const Value& base) { return power(scale / base, order + 1); };
  const std::int64_t steps = order + (x.dtype() == DType::kF64 ? 10 : 4);
  const Value end = x + static_cast<double>(steps);
  std::vector<double> coefficients;
  double factor = 1;  // (n + 1) ... (n + 2k - 1) / (2k)!
  for (std::size_t k = 0; k < kBernoulli.size(); ++k) {
    const double twice = 2.0 * static_cast<double>(k);
    factor *= k == 0 ? (n + 1) / 2 : (n + twice) * (n + twice + 1) / ((twice + 1) * (twice + 2));
    coefficients.push_back(kBernoulli[k] * factor);
  }
  const Value inverse = 1.0 / end;
  const Value series = polynomial(inverse * inverse, coefficients) * inverse + 0.5;
  Value sum = term(end) * series + power(scale_of_integral / end, order);
  for (std::int64_t k = steps; k-- > 0;) sum = sum + term(x + static_cast<double>(k));
  return sum;
}

/// The n-th derivative of pi / tan(pi x): a polynomial of the cotangent c, since c' = -(1 + c^2).
Value cotangent_derivative(const Value& x, std::int64_t order) {
  std::vector<double> p = {0, 1};
  for (std::int64_t i = 0; i < order; ++i) {
    std::vector<double> next(p.size() + 1);
    for (std::size_t k = 1; k < p.size(); ++k) {
      next[k - 1] -= static_cast<double>(k) * p[k];
      next[k + 1] -= static_cast<double>(k) * p[k];
    }
    p = std::move(next);
  }
  const double scale = std::pow(std::numbers::pi, static_cast<double>(order + 1));
  for (double& coefficient : p) coefficient *= scale;
  return polynomial(1.0 / tan((x - round(x)) * std::numbers::pi), p);
}

void polygamma_rule(const Value& output, const Value& gradient, std::span<Value> gradients) {
  const Value x(output->source(1));
  gradients[1] = unless_zero(gradient, gradient * polygamma(output->attributes()[0] + 1, x));
}
// attributes: order.
constexpr OpInfo kPolygamma{"polygamma", Family::kCustom, 0, &polygamma_rule, {.operands = 0b10}};

/// 1/2 the sum of (x/2)^2k / (k! (k + 1)!), which is i1(x) / x, for |x| below 1; else 0.
Value bessel_ratio_near_zero(const Value& near) {
  std::vector<double> coefficients = {0.5};
  for (int k = 1; k < 10; ++k) coefficients.push_back(coefficients.back() / (4.0 * k * (k + 1)));
  return polynomial(near * near, coefficients);
}

}  // namespace

Value polygamma(std::int64_t order, const Value& x) {
  constexpr std::int64_t kHighest = 100;
  if (order < 0 || order > kHighest) {
    throw ArgumentError(fmt::format("[polygamma] the order {} is not in [0, {}]", order, kHighest));
  }
  if (order == 0) return digamma(x);
  if (order == 1) return trigamma(x);
  if (order == 2) return tetragamma(x);
  if (order == 3) return pentagamma(x);
  Value y;
  {
    const GradientMode without_gradients(false);
    const DType dtype = is_floating(x.dtype()) ? x.dtype() : DType::kF32;
    const Value wide = cast(x, size_of(dtype) == 2 ? DType::kF32 : dtype);
    const Value is_below = wide <= 0.0;
    const Value quarter = weak_scalar(0.25, x.device());
    const Value at_start = reciprocal_powers(where(is_below, 1.0 - wide, wide), order);
    const Value reflected = cotangent_derivative(where(is_below, wide, quarter), order);
    // (-1)^(n + 1) times the sum; below 0, (-1)^n polygamma(1 - x) - the derivative of pi cot(pi
    // x).
    const bool is_odd = order % 2 != 0;
    const Value above = is_odd ? at_start : -at_start;
    const Value below = -(at_start + reflected);
    const Value infinity = weak_scalar(is_odd ? HUGE_VAL : -HUGE_VAL, x.device());
    const Value is_pole = logical_and(is_below, eq(trunc(wide), wide));
    y = cast(where(is_pole, infinity, where(is_below, below, above)), dtype);
  }
  return with_gradient(kPolygamma, y, std::span(&x, 1), {order});
}

Value bessel_ratio(const Value& x, const Value& y) {
  const Value is_near = abs(x) < 1.0;
  const Value one = weak_scalar(1.0, x.device());
  const Value series = bessel_ratio_near_zero(where_else_zero(is_near, x));
  return where(is_near, series, y / where(is_near, one, x));
}

Value scaled_bessel_ratio(const Value& x, const Value& y) {
  const Value is_near = abs(x) < 1.0;
  const Value one = weak_scalar(1.0, x.device());
  const Value near = where_else_zero(is_near, x);
  const Value series = bessel_ratio_near_zero(near) * exp(-abs(near));
  return where(is_near, series, y / where(is_near, one, x));
}

}  // namespace vkml::graph
