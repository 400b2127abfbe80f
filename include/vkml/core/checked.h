// Arithmetic of sizes that a caller states, and that may be anything.
#pragma once

#include <cstdint>
#include <string>

#include "vkml/core/error.h"

namespace vkml {

/// a + b. Throws ShapeError in the name of `op` where 64 bits do not hold it.
inline std::int64_t add_or_throw(const char* op, std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  throw ShapeError("[" + std::string(op) + "] a size of " + std::to_string(a) + " + " +
                   std::to_string(b) + " does not fit 64 bits");
}

/// a * b. Throws ShapeError in the name of `op` where 64 bits do not hold it.
inline std::int64_t multiply_or_throw(const char* op, std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  if (!__builtin_mul_overflow(a, b, &product)) return product;
  throw ShapeError("[" + std::string(op) + "] a size of " + std::to_string(a) + " * " +
                   std::to_string(b) + " does not fit 64 bits");
}

}  // namespace vkml
