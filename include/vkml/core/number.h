// A C++ or Python number on its way into a tensor: an integer keeps all its 64 bits.
#pragma once

#include <concepts>
#include <cstdint>

#include "vkml/core/dtype.h"

namespace vkml {

class Number {
 public:
  template <std::floating_point T>
  constexpr Number(T value)  // NOLINT(google-explicit-constructor)
      : floating_(static_cast<double>(value)) {}
  template <std::integral T>
  constexpr Number(T value)  // NOLINT(google-explicit-constructor)
      : floating_(static_cast<double>(value)),
        integer_(static_cast<std::int64_t>(value)),
        is_integer_(true) {}

  bool is_integer() const { return is_integer_; }
  /// The number itself when is_integer(), else 0.
  std::int64_t integer() const { return integer_; }
  /// The nearest double.
  double floating() const { return floating_; }

 private:
  double floating_;
  std::int64_t integer_ = 0;
  bool is_integer_ = false;
};

/// Whether an integer dtype holds the integer; true for every other dtype.
bool fits(std::int64_t value, DType dtype);
/// Throws ArgumentError in the name of `op` when it does not.
void check_fits(const char* op, std::int64_t value, DType dtype);

}  // namespace vkml
