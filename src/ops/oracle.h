// Reference formulas of the elementwise table that are not a single call of the C++ library. In
// double, and in i64 (wrapping) where integers have a meaning of their own; no code is shared with
// the scalar programs they check.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>

#include "vkml/core/dtype.h"
#include "vkml/core/half.h"

namespace vkml::ops::oracle {

inline std::uint64_t u(std::int64_t x) { return static_cast<std::uint64_t>(x); }
inline std::int64_t i(std::uint64_t x) { return static_cast<std::int64_t>(x); }

inline double add(double a, double b) { return a + b; }
inline std::int64_t add(std::int64_t a, std::int64_t b) { return i(u(a) + u(b)); }
inline double sub(double a, double b) { return a - b; }
inline std::int64_t sub(std::int64_t a, std::int64_t b) { return i(u(a) - u(b)); }
inline double mul(double a, double b) { return a * b; }
inline std::int64_t mul(std::int64_t a, std::int64_t b) { return i(u(a) * u(b)); }
inline double neg(double x) { return -x; }
inline std::int64_t neg(std::int64_t x) { return i(0 - u(x)); }
inline double abs(double x) { return std::fabs(x); }
inline std::int64_t abs(std::int64_t x) { return x < 0 ? neg(x) : x; }

/// A number of a half-precision type: its bits.
template <DType kType>
struct Half {
  Half() = default;
  explicit Half(double value)
      : bits(kType == DType::kF16 ? f32_to_f16(static_cast<float>(value))
                                  : f32_to_bf16(static_cast<float>(value))) {}
  explicit operator double() const {
    return double{kType == DType::kF16 ? f16_to_f32(bits) : bf16_to_f32(bits)};
  }
  std::uint16_t bits = 0;
};

inline double nextafter(double a, double b) { return std::nextafter(a, b); }
inline float nextafter(float a, float b) { return std::nextafter(a, b); }
/// In the order of the numbers, by their place in which halves are 0, 1, 2, ... away from 0.
template <DType kType>
Half<kType> nextafter(Half<kType> a, Half<kType> b) {
  const auto from = static_cast<double>(a);
  const auto to = static_cast<double>(b);
  if (std::isnan(from)) return a;
  if (std::isnan(to) || from == to) return b;
  const int place = a.bits & 0x7fff;
  const int signed_place = (std::signbit(from) ? -place : place) + (to > from ? 1 : -1);
  const bool is_negative = signed_place < 0 || (signed_place == 0 && std::signbit(from));
  Half<kType> result;
  result.bits = static_cast<std::uint16_t>(std::abs(signed_place) | (is_negative ? 0x8000 : 0));
  return result;
}

template <typename T>
T sign(T x) {
  if (x != x) return x;
  return static_cast<T>((x > 0) - (x < 0));
}
template <typename T>
T relu(T x) {
  return x < 0 ? T(0) : x;
}

inline double remainder(double a, double b) {
  const double rest = std::fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
inline double floor_divide(double a, double b) {
  if (b == 0) return std::floor(a / b);
  const double rest = std::fmod(a, b);
  const double quotient = std::nearbyint((a - rest) / b);
  return rest != 0 && (rest < 0) != (b < 0) ? quotient - 1 : quotient;
}
inline std::int64_t floor_divide(std::int64_t a, std::int64_t b) {
  if (b == 0) return 0;
  if (b == -1) return neg(a);
  return a / b - static_cast<std::int64_t>(a % b != 0 && (a % b < 0) != (b < 0));
}
inline std::int64_t remainder(std::int64_t a, std::int64_t b) {
  if (b == 0 || b == -1) return 0;
  const std::int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

inline double trunc_divide(double a, double b) {
  if (b == 0 || std::isinf(a)) return a / b;
  return (a - std::fmod(a, b)) / b;
}
inline std::int64_t trunc_divide(std::int64_t a, std::int64_t b) {
  if (b == 0) return 0;
  return b == -1 ? neg(a) : a / b;
}
inline double fmod(double a, double b) { return std::fmod(a, b); }
inline std::int64_t fmod(std::int64_t a, std::int64_t b) { return b == 0 || b == -1 ? 0 : a % b; }

inline double pow(double a, double b) { return std::pow(a, b); }
inline std::int64_t pow(std::int64_t a, std::int64_t b) {
  if (b < 0) return a == 1 ? 1 : (a == -1 ? (b % 2 != 0 ? -1 : 1) : 0);
  std::int64_t result = 1;
  for (; b > 0; b >>= 1, a = mul(a, a)) {
    if ((b & 1) != 0) result = mul(result, a);
  }
  return result;
}

template <typename T>
T maximum(T a, T b) {
  if (a != a || b != b) return a != a ? a : b;
  return a > b ? a : b;
}
template <typename T>
T minimum(T a, T b) {
  if (a != a || b != b) return a != a ? a : b;
  return a < b ? a : b;
}

inline double floor(double x) { return std::floor(x); }
inline double ceil(double x) { return std::ceil(x); }
inline double trunc(double x) { return std::trunc(x); }
inline double round(double x) { return std::nearbyint(x); }
inline std::int64_t floor(std::int64_t x) { return x; }
inline std::int64_t ceil(std::int64_t x) { return x; }
inline std::int64_t trunc(std::int64_t x) { return x; }
inline std::int64_t round(std::int64_t x) { return x; }

/// A truth value in the operand's kind of number.
template <typename T>
T truth(T, bool value) {
  return value ? T(1) : T(0);
}

template <typename Operation>
std::int64_t bits(std::int64_t a, std::int64_t b, Operation operation) {
  return operation(a, b);
}
template <typename Operation>
double bits(double a, double b, Operation operation) {
  return static_cast<double>(operation(static_cast<std::int64_t>(a), static_cast<std::int64_t>(b)));
}

/// Counts are those of i32 and i64 alike: past 31, nothing of an i32 is left in its low half.
inline std::int64_t shift_left(std::int64_t a, std::int64_t b) {
  return b < 0 || b > 63 ? 0 : i(u(a) << b);
}
inline double shift_left(double a, double b) { return std::ldexp(a, static_cast<int>(b)); }
inline std::int64_t shift_right(std::int64_t a, std::int64_t b) {
  return a >> (b < 0 || b > 63 ? 63 : b);
}
inline double shift_right(double a, double b) {
  return std::floor(std::ldexp(a, -static_cast<int>(b)));
}

inline double logaddexp(double a, double b) {
  const double larger = maximum(a, b);
  if (std::isinf(larger)) return larger;
  const long double rest = std::fabs(static_cast<long double>(a) - b);
  return static_cast<double>(larger + std::log1p(std::exp(-rest)));
}

/// Newton's steps from Winitzki's approximation, on erf near 0 and on erfc in the tail.
inline double erfinv(double x) {
  if (!(std::fabs(x) < 1)) {
    const double infinity = std::numeric_limits<double>::infinity();
    return std::fabs(x) == 1 ? std::copysign(infinity, x)
                             : std::numeric_limits<double>::quiet_NaN();
  }
  const long double a = std::fabs(static_cast<long double>(x));
  const long double w = std::log1p(-a * a);
  const long double t = 2 / (3.14159265358979323846L * 0.147L) + w / 2;
  long double y = std::sqrt(std::sqrt(t * t - w / 0.147L) - t);
  if (a < 1e-3L) y = a * 0.88622692545275801365L;
  for (int step = 0; step < 5; ++step) {
    const long double residual = a < 0.5L ? std::erf(y) - a : (1 - a) - std::erfc(y);
    y -= residual * 0.88622692545275801364908L * std::exp(y * y);
  }
  return static_cast<double>(std::copysign(y, static_cast<long double>(x)));
}

// Libraries reduce angles in double a few units off next to multiples of pi/2: in the next wider
// type that is far below a double's last place.
inline double sin(double x) { return static_cast<double>(std::sin(static_cast<long double>(x))); }
inline double cos(double x) { return static_cast<double>(std::cos(static_cast<long double>(x))); }
inline double tan(double x) { return static_cast<double>(std::tan(static_cast<long double>(x))); }

/// By the continued fraction (Abramowitz and Stegun 7.1.14) where the product would overflow.
inline double erfcx(double x) {
  const long double wide = x;
  if (std::isinf(x)) return x > 0 ? 0 : -x;
  if (x < 10) return static_cast<double>(std::exp(wide * wide) * std::erfc(wide));
  long double fraction = wide;
  for (int k = 60; k > 0; --k) fraction = wide + k / 2.0L / fraction;
  return static_cast<double>(0.56418958354775628694807945L / fraction);
}

inline double log_ndtr(double x) {
  const long double t = static_cast<long double>(x) / -std::sqrt(2.0L);
  if (x > 0) return static_cast<double>(std::log1p(-std::erfc(-t) / 2));
  if (x > -20) return static_cast<double>(std::log(std::erfc(t) / 2));
  return static_cast<double>(std::log(static_cast<long double>(erfcx(static_cast<double>(t))) / 2) -
                             t * t);
}

/// Newton's method on the logarithm of the upper tail, which is concave, from above.
inline double ndtri(double p) {
  const double infinity = std::numeric_limits<double>::infinity();
  if (!(p > 0 && p < 1)) {
    if (p == 0 || p == 1) return p == 0 ? -infinity : infinity;
    return std::numeric_limits<double>::quiet_NaN();
  }
  if (p == 0.5) return 0;
  const long double share = p < 0.5 ? p : 1 - static_cast<long double>(p);
  long double y = std::sqrt(-2 * std::log(share));
  for (int step = 0; step < 40; ++step) {
    const long double tail = std::erfc(y / std::sqrt(2.0L)) / 2;
    const long double density = 0.39894228040143267793994606L * std::exp(-y * y / 2);
    y += std::log(tail / share) * tail / density;
  }
  return static_cast<double>(p < 0.5 ? -y : y);
}

/// The n-th derivative of digamma (n > 0) by the recurrence up to 40 and the asymptotic series
/// there (Abramowitz and Stegun 6.4.6 and 6.4.11); poles are infinite.
inline double polygamma(int n, double x) {
  long double factorial = 1;  // n!
  for (int j = 2; j <= n; ++j) factorial *= j;
  const long double sign = n % 2 != 0 ? 1 : -1;
  if (x <= 0 && x == std::floor(x)) {
    return static_cast<double>(sign * std::numeric_limits<long double>::infinity());
  }
  long double z = x;
  long double sum = 0;
  while (z < 40) {
    sum += factorial / std::pow(z, static_cast<long double>(n + 1));
    z += 1;
  }
  constexpr long double kBernoulli[] = {1 / 6.0L, -1 / 30.0L, 1 / 42.0L, -1 / 30.0L, 5 / 66.0L};
  long double tail = factorial / n / std::pow(z, static_cast<long double>(n)) +
                     factorial / 2 / std::pow(z, static_cast<long double>(n + 1));
  for (int k = 1; k <= 5; ++k) {
    long double rising = 1;
    for (int j = 1; j < n; ++j) rising *= 2 * k + j;
    tail += kBernoulli[k - 1] * rising / std::pow(z, static_cast<long double>(2 * k + n));
  }
  return static_cast<double>(sign * (sum + tail));
}
inline double digamma(double x) {
  if (x == 0) return -1 / x;
  if (x < 0 && x == std::floor(x)) return std::numeric_limits<double>::quiet_NaN();
  long double z = x;
  long double sum = 0;
  for (; z < 40; z += 1) sum -= 1 / z;
  const long double w = 1 / (z * z);
  const long double series =
      w * (1 / 12.0L - w * (1 / 120.0L - w * (1 / 252.0L - w * (1 / 240.0L - w / 132))));
  return static_cast<double>(sum + (std::log(z) - 1 / (2 * z) - series));
}

/// x - tanh(x), near 0 as (x cosh(x) - sinh(x)) / cosh(x), whose series has positive terms.
inline double tanhshrink(double x) {
  const long double wide = x;
  if (std::fabs(x) >= 1) return static_cast<double>(wide - std::tanh(wide));
  long double term = wide;  // x^(2k + 1) / (2k + 1)!
  long double sum = 0;
  for (int k = 1; k < 15; ++k) {
    term *= wide * wide / (2 * k * (2 * k + 1));
    sum += 2 * k * term;
  }
  return static_cast<double>(sum / std::cosh(wide));
}

inline double sinc(double x) {
  if (x == 0) return 1;
  constexpr long double kPi = 3.14159265358979323846264L;
  const long double a = std::fabs(static_cast<long double>(x));
  const long double nearest = std::nearbyint(a);
  const long double sine = std::sin(kPi * (a - nearest)) / (kPi * a);
  return static_cast<double>(std::fmod(nearest, 2.0L) == 0 ? sine : -sine);
}

/// The power series of the modified Bessel functions, whose terms are all positive.
inline double bessel_i(int order, double x) {
  if (std::fabs(x) > 720) return order == 0 ? std::fabs(x) * INFINITY : x * INFINITY;
  const long double square = static_cast<long double>(x) * x / 4;
  long double term = order == 0 ? 1 : x / 2.0L;
  long double sum = 0;
  for (int k = 1; k < 1000 && std::fabs(term) > std::fabs(sum) * 1e-22L; ++k) {
    sum += term;
    term *= square / (static_cast<long double>(k) * (k + order));
  }
  return x != x ? x : static_cast<double>(sum);
}

/// exp(-|x|) times it: from 40 on by the asymptotic series (Abramowitz and Stegun 9.7.1).
inline double bessel_i_scaled(int order, double x) {
  const long double a = std::fabs(static_cast<long double>(x));
  const bool is_negative = order == 1 && x < 0;
  long double value = 0;
  if (a < 40) {
    long double term = order == 0 ? 1 : a / 2;
    for (int k = 1; k < 400; ++k) {
      value += term;
      term *= a * a / 4 / (static_cast<long double>(k) * (k + order));
    }
    value *= std::exp(-a);
  } else {
    long double term = 1;
    for (int k = 1; k < 30; ++k) {
      value += term;
      const int odd = 2 * k - 1;
      term *= -(4.0L * order * order - odd * odd) / (k * 8 * a);
    }
    value /= std::sqrt(2 * 3.14159265358979323846264L * a);
  }
  return static_cast<double>(is_negative ? -value : value);
}

template <typename T>
bool is_close(T a, T b, T rtol, T atol) {
  if (a == b) return true;
  if (a != a || b != b || std::isinf(static_cast<double>(b))) return false;
  const auto wide = [](T x) { return std::fabs(static_cast<long double>(x)); };
  const long double difference =
      std::fabs(static_cast<long double>(a) - static_cast<long double>(b));
  return difference <= static_cast<long double>(atol) + static_cast<long double>(rtol) * wide(b);
}

inline std::int64_t gcd(std::int64_t a, std::int64_t b) {
  std::uint64_t x = u(abs(a)), y = u(abs(b));
  while (y != 0) {
    const std::uint64_t rest = x % y;
    x = y;
    y = rest;
  }
  return i(x);
}
inline std::int64_t lcm(std::int64_t a, std::int64_t b) {
  const std::uint64_t divisor = u(gcd(a, b));
  return divisor == 0 ? 0 : i(u(abs(a)) / divisor * u(abs(b)));
}
inline double gcd(double a, double b) {
  return static_cast<double>(gcd(static_cast<std::int64_t>(a), static_cast<std::int64_t>(b)));
}
inline double lcm(double a, double b) {
  return static_cast<double>(lcm(static_cast<std::int64_t>(a), static_cast<std::int64_t>(b)));
}

/// Philox-4x32-10 as published, with the counter (index, 0, 0, 0).
inline std::array<std::uint32_t, 4> philox(std::uint32_t index, std::uint32_t key0,
                                           std::uint32_t key1) {
  std::array<std::uint32_t, 4> c{index, 0, 0, 0};
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53u} * c[0];
    const std::uint64_t p1 = std::uint64_t{0xCD9E8D57u} * c[2];
    c = {static_cast<std::uint32_t>(p1 >> 32) ^ c[1] ^ key0, static_cast<std::uint32_t>(p1),
         static_cast<std::uint32_t>(p0 >> 32) ^ c[3] ^ key1, static_cast<std::uint32_t>(p0)};
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return c;
}
inline std::array<std::uint32_t, 4> philox_of(double index, double key0, double key1) {
  const auto word = [](double x) {
    return static_cast<std::uint32_t>(static_cast<std::int64_t>(x));
  };
  return philox(word(index), word(key0), word(key1));
}
inline double random_uniform(double index, double key0, double key1) {
  return (philox_of(index, key0, key1)[0] >> 8) * 0x1p-24;
}
inline double random_normal(double index, double key0, double key1) {
  const auto words = philox_of(index, key0, key1);
  const double radius = std::sqrt(-2 * std::log(1 - (words[0] >> 8) * 0x1p-24));
  return radius * std::cos(6.28318530717958647692 * ((words[1] >> 8) * 0x1p-24));
}

}  // namespace vkml::ops::oracle
