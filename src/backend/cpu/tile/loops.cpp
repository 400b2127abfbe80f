#include "tile/loops.h"

#include <algorithm>

namespace vkml::cpu {

using ops::Opcode;
using ops::ScalarType;

Loop arithmetic_loop(Opcode op, ScalarType type, ScalarType source, std::int64_t immediate,
                     Pattern tiles) {
  if (op == Opcode::kConvert) return convert_loop(type, source);
  if (op == Opcode::kBitcast) return convert_loop(type, type);  // the same bits: a copy
  if (op == Opcode::kNarrow) {
    if (static_cast<DType>(immediate) == DType::kBool && type != ScalarType::kBool) return nullptr;
    return narrow_loop(static_cast<DType>(immediate));
  }
  if (op == Opcode::kBeyond) {
    const auto function = static_cast<ops::FarFunction>(immediate);
    return type == ScalarType::kF32 ? f32_beyond_loop(function) : f64_beyond_loop(function);
  }
  // A comparison's loop is that of what it compares; a choice's, that of what it chooses.
  const bool compares = op >= Opcode::kEqual && op <= Opcode::kLessEqual;
  switch (compares ? source : type) {
    case ScalarType::kBool:
    case ScalarType::kI32:
      return i32_loop(op, tiles);
    case ScalarType::kI64:
      return i64_loop(op, tiles);
    case ScalarType::kF32:
      return f32_loop(op, tiles);
    case ScalarType::kF64:
      return f64_loop(op, tiles);
  }
  return nullptr;
}

Loop polynomial_loop(ScalarType type, Pattern tiles) {
  switch (type) {
    case ScalarType::kF32:
      return f32_polynomial_loop(tiles);
    case ScalarType::kF64:
      return f64_polynomial_loop(tiles);
    default:
      return nullptr;
  }
}

Loop copy_loop(ScalarType type) { return convert_loop(type, type); }

namespace {

template <typename T>
void fill(const Step& step, const Frame& frame) {
  std::fill_n(result_of<T>(step, frame), frame.count, *source_of<T>(step, frame, 0));
}

}  // namespace

Loop fill_loop(ScalarType type) {
  return register_bytes(type) == 4 ? fill<std::uint32_t> : fill<std::uint64_t>;
}

}  // namespace vkml::cpu
