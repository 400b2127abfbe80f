// What kBeyond gives where a formula's reach ends: functions of operands that are rarely met, so
// that a program need not compute them at every element.
#pragma once

#include "vkml/ops/scalar_program.h"

namespace vkml::ops {

/// As imm of kBeyond.
enum class FarFunction : std::uint8_t {
  kSin,   // of b radians
  kCos,   // of b radians
  kTan,   // of b radians
  kFmod,  // of b and c: exact, with the sign of b; NaN for an infinite b and for c = 0
};

/// kBeyond gives its first operand where |b| is smaller (kFmod: smaller than this times |c|), and
/// the function elsewhere.
constexpr double reach_of(FarFunction function, ScalarType type) {
  const bool is_f32 = type == ScalarType::kF32;
  if (function == FarFunction::kFmod) return is_f32 ? 0x1p46 : 0x1p104;
  return is_f32 ? 0x1p20 : 0x1p47;
}

/// The function past its reach, in the instructions of scalar programs, for devices that have no
/// library of their own for it. `begin` takes b and c to a state; where the state's last value is
/// above 0, `step` takes the state to the next one; `end` takes b, c and the state to the value.
struct FarProgram {
  ScalarProgram begin, step, end;
};
FarProgram far_program(FarFunction function, ScalarType type);

}  // namespace vkml::ops
