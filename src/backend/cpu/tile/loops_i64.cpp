// The tile loops of i64. Where the common instruction sets lack a 64-bit operation (products, most
// shifts), one element at a time.
#include "tile/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tile/loops_i64.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "tile/loops-inl.h"
#include "tile/loops.h"

HWY_BEFORE_NAMESPACE();
namespace vkml::cpu::HWY_NAMESPACE {
namespace {

using I64 = std::int64_t;
using U64 = std::uint64_t;

struct Multiply {
  static HWY_INLINE I64 apply(I64 a, I64 b) {
    return static_cast<I64>(static_cast<U64>(a) * static_cast<U64>(b));
  }
};
// The program never divides by 0 or -1, but the padding of a tile holds anything.
struct Divide {
  static HWY_INLINE I64 apply(I64 a, I64 b) { return b == 0 || b == -1 ? 0 : a / b; }
};
struct Remainder {
  static HWY_INLINE I64 apply(I64 a, I64 b) { return b == 0 || b == -1 ? 0 : a % b; }
};
struct ShiftLeft {
  static HWY_INLINE I64 apply(I64 a, I64 b) {
    return static_cast<I64>(static_cast<U64>(a) << (b & 63));
  }
};
struct ShiftRight {
  static HWY_INLINE I64 apply(I64 a, I64 b) { return a >> (b & 63); }
};
struct ShiftRightLogical {
  static HWY_INLINE I64 apply(I64 a, I64 b) {
    return static_cast<I64>(static_cast<U64>(a) >> (b & 63));
  }
};
struct MulHighU32 {
  static HWY_INLINE I64 apply(I64 a, I64 b) {
    return static_cast<I64>(
        ((static_cast<U64>(a) & 0xffffffffu) * (static_cast<U64>(b) & 0xffffffffu)) >> 32);
  }
};
struct Magnitude {
  static HWY_INLINE I64 apply(I64 a) {
    return a < 0 ? static_cast<I64>(U64{0} - static_cast<U64>(a)) : a;
  }
};

}  // namespace

Loop i64_loop_here(ops::Opcode op, Pattern tiles) {
  using ops::Opcode;
  switch (op) {
    case Opcode::kAdd:
      return pick2<I64, I64, Add>(tiles);
    case Opcode::kSub:
      return pick2<I64, I64, Sub>(tiles);
    case Opcode::kMul:
      return each2<I64, I64, Multiply>;
    case Opcode::kDiv:
      return each2<I64, I64, Divide>;
    case Opcode::kRem:
      return each2<I64, I64, Remainder>;
    case Opcode::kNeg:
      return map1<I64, I64, Neg>;
    case Opcode::kAbs:
      return each1<I64, I64, Magnitude>;
    case Opcode::kMin:
      return pick2<I64, I64, Min>(tiles);
    case Opcode::kMax:
      return pick2<I64, I64, Max>(tiles);
    case Opcode::kMulHighU32:
      return each2<I64, I64, MulHighU32>;
    case Opcode::kAnd:
      return pick2<I64, I64, And>(tiles);
    case Opcode::kOr:
      return pick2<I64, I64, Or>(tiles);
    case Opcode::kXor:
      return pick2<I64, I64, Xor>(tiles);
    case Opcode::kNot:
      return map1<I64, I64, Not>;
    case Opcode::kShiftLeft:
      return each2<I64, I64, ShiftLeft>;
    case Opcode::kShiftRight:
      return each2<I64, I64, ShiftRight>;
    case Opcode::kShiftRightLogical:
      return each2<I64, I64, ShiftRightLogical>;
    case Opcode::kEqual:
      return pick_compare<I64, Equal>(tiles);
    case Opcode::kNotEqual:
      return pick_compare<I64, NotEqual>(tiles);
    case Opcode::kLess:
      return pick_compare<I64, Less>(tiles);
    case Opcode::kLessEqual:
      return pick_compare<I64, LessEqual>(tiles);
    case Opcode::kSelect:
      return pick_select<I64>(tiles);
    default:
      return nullptr;
  }
}

}  // namespace vkml::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vkml::cpu {

HWY_EXPORT(i64_loop_here);
Loop i64_loop(ops::Opcode op, Pattern tiles) {
  return HWY_DYNAMIC_DISPATCH(i64_loop_here)(op, tiles);
}

}  // namespace vkml::cpu
#endif
