#include "tile/loops.h"

namespace vkml::cpu {

using ops::Opcode;
using ops::ScalarType;

Loop arithmetic_loop(Opcode op, ScalarType type, ScalarType source, std::int64_t immediate) {
  if (op == Opcode::kConvert) return convert_loop(type, source);
  if (op == Opcode::kBitcast) return convert_loop(type, type);  // the same bits: a copy
  if (op == Opcode::kNarrow) {
    if (static_cast<DType>(immediate) == DType::kBool && type != ScalarType::kBool) return nullptr;
    return narrow_loop(static_cast<DType>(immediate));
  }
  // A comparison's loop is that of what it compares; a choice's, that of what it chooses.
  const bool compares = op >= Opcode::kEqual && op <= Opcode::kLessEqual;
  switch (compares ? source : type) {
    case ScalarType::kBool:
    case ScalarType::kI32:
      return i32_loop(op);
    case ScalarType::kI64:
      return i64_loop(op);
    case ScalarType::kF32:
      return f32_loop(op);
    case ScalarType::kF64:
      return f64_loop(op);
  }
  return nullptr;
}

Loop polynomial_loop(ScalarType type) {
  switch (type) {
    case ScalarType::kF32:
      return f32_polynomial_loop();
    case ScalarType::kF64:
      return f64_polynomial_loop();
    default:
      return nullptr;
  }
}

}  // namespace vkml::cpu
