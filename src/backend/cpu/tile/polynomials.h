// Horner chains in a scalar program: fma(fma(fma(c0, x, c1), x, c2), x, c3) with constant addends
// becomes one step that keeps the value in vector registers.
#pragma once

#include <cstdint>
#include <vector>

#include "vkml/ops/scalar_program.h"

namespace vkml::cpu {

struct Polynomial {
  std::uint16_t x = 0;
  std::uint16_t start = 0;                  // the register that enters the first fma beside x
  std::vector<std::uint64_t> coefficients;  // bits of the addends, in the order they are added
};

struct Polynomials {
  /// By register: the chain that ends there; no coefficients where there is none.
  std::vector<Polynomial> ending_at;
  /// By register: whether it is computed inside a chain only.
  std::vector<bool> absorbed;
};

Polynomials find_polynomials(const ops::ScalarProgram& program);

}  // namespace vkml::cpu
