// Smaller programs with the same value: constants folded, choices by a constant resolved,
// conversions that change nothing dropped, dead instructions removed.
#pragma once

#include "vkml/ops/scalar_program.h"

namespace vkml::cpu {

ops::ScalarProgram simplify(const ops::ScalarProgram& program);

}  // namespace vkml::cpu
