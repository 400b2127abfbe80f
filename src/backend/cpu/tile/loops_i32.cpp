// The tile loops of i32, and of booleans, which are 32-bit masks.
#include "tile/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tile/loops_i32.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "tile/loops-inl.h"
#include "tile/loops.h"

HWY_BEFORE_NAMESPACE();
namespace vkml::cpu::HWY_NAMESPACE {
namespace {

// The program never divides by 0 or -1, but the padding of a tile holds anything.
struct Divide {
  static HWY_INLINE std::int32_t apply(std::int32_t a, std::int32_t b) {
    return b == 0 || b == -1 ? 0 : a / b;
  }
};
struct Remainder {
  static HWY_INLINE std::int32_t apply(std::int32_t a, std::int32_t b) {
    return b == 0 || b == -1 ? 0 : a % b;
  }
};
struct MulHighU32 {
  static HWY_INLINE std::int32_t apply(std::int32_t a, std::int32_t b) {
    const std::uint64_t product =
        std::uint64_t{static_cast<std::uint32_t>(a)} * std::uint64_t{static_cast<std::uint32_t>(b)};
    return static_cast<std::int32_t>(product >> 32);
  }
};
struct ShiftLeft {
  template <class D, class V>
  static HWY_INLINE V apply(D, V a, V b) {
    return a << b;
  }
};
struct ShiftRight {
  template <class D, class V>
  static HWY_INLINE V apply(D, V a, V b) {
    return a >> b;
  }
};
struct ShiftRightLogical {
  template <class D, class V>
  static HWY_INLINE V apply(D d, V a, V b) {
    const hn::RebindToUnsigned<D> u;
    return hn::BitCast(d, hn::BitCast(u, a) >> hn::BitCast(u, b));
  }
};

}  // namespace

Loop i32_loop_here(ops::Opcode op, Pattern tiles) {
  using ops::Opcode;
  using T = std::int32_t;
  switch (op) {
    case Opcode::kAdd:
      return pick2<T, T, Add>(tiles);
    case Opcode::kSub:
      return pick2<T, T, Sub>(tiles);
    case Opcode::kMul:
      return pick2<T, T, Mul>(tiles);
    case Opcode::kDiv:
      return each2<T, T, Divide>;
    case Opcode::kRem:
      return each2<T, T, Remainder>;
    case Opcode::kNeg:
      return map1<T, T, Neg>;
    case Opcode::kAbs:
      return map1<T, T, Abs>;
    case Opcode::kMin:
      return pick2<T, T, Min>(tiles);
    case Opcode::kMax:
      return pick2<T, T, Max>(tiles);
    case Opcode::kMulHighU32:
      return each2<T, T, MulHighU32>;
    case Opcode::kAnd:
      return pick2<T, T, And>(tiles);
    case Opcode::kOr:
      return pick2<T, T, Or>(tiles);
    case Opcode::kXor:
      return pick2<T, T, Xor>(tiles);
    case Opcode::kNot:
      return map1<T, T, Not>;
    case Opcode::kShiftLeft:
      return pick2<T, T, ShiftLeft>(tiles);
    case Opcode::kShiftRight:
      return pick2<T, T, ShiftRight>(tiles);
    case Opcode::kShiftRightLogical:
      return pick2<T, T, ShiftRightLogical>(tiles);
    case Opcode::kEqual:
      return pick_compare<T, Equal>(tiles);
    case Opcode::kNotEqual:
      return pick_compare<T, NotEqual>(tiles);
    case Opcode::kLess:
      return pick_compare<T, Less>(tiles);
    case Opcode::kLessEqual:
      return pick_compare<T, LessEqual>(tiles);
    case Opcode::kSelect:
      return pick_select<T>(tiles);
    default:
      return nullptr;
  }
}

}  // namespace vkml::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vkml::cpu {

HWY_EXPORT(i32_loop_here);
Loop i32_loop(ops::Opcode op, Pattern tiles) {
  return HWY_DYNAMIC_DISPATCH(i32_loop_here)(op, tiles);
}

}  // namespace vkml::cpu
#endif
