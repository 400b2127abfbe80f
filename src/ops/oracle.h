// Reference formulas of the elementwise table that are not a single call of the C++ library. In
// double, and in i64 (wrapping) where integers have a meaning of their own; no code is shared with
// the scalar programs they check.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

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
