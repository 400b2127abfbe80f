// Shapes of vector loops, shared by the loops of all types. Included once for each target.
#if defined(VKML_BACKEND_CPU_TILE_LOOPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef VKML_BACKEND_CPU_TILE_LOOPS_INL_H_
#undef VKML_BACKEND_CPU_TILE_LOOPS_INL_H_
#else
#define VKML_BACKEND_CPU_TILE_LOOPS_INL_H_
#endif

#include <hwy/highway.h>

#include <cmath>

#include "tile/loops.h"

HWY_BEFORE_NAMESPACE();
namespace vkml::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// At most kLaneMultiple lanes, also where vectors are longer.
template <typename T>
using Tag = hn::CappedTag<T, kLaneMultiple>;

// An operand of a vector loop: the elements of a tile, or one vector that stays in a register.
template <typename T, bool kIsTile>
class Source {
 public:
  Source(const Step& step, const Frame& frame, std::size_t index)
      : data_(source_of<T>(step, frame, index)) {}
  template <class D>
  HWY_INLINE hn::Vec<D> at(D d, std::size_t i) const {
    return hn::LoadU(d, data_ + i);
  }

 private:
  const T* data_;
};
template <typename T>
class Source<T, false> {
 public:
  HWY_INLINE Source(const Step& step, const Frame& frame, std::size_t index)
      : vector_(hn::LoadU(Tag<T>(), source_of<T>(step, frame, index))) {}
  HWY_INLINE hn::Vec<Tag<T>> at(Tag<T>, std::size_t) const { return vector_; }

 private:
  hn::Vec<Tag<T>> vector_;
};

// Op::apply(tag, vectors...) for every vector of a tile. The result may be an operand's register.
template <typename T, typename R, class Op>
void map1(const Step& step, const Frame& frame) {
  const Tag<T> d;
  const Tag<R> dr;
  const Source<T, true> a(step, frame, 0);
  R* r = result_of<R>(step, frame);
  const std::size_t count = frame.count;
  const std::size_t lanes = hn::Lanes(d);
  for (std::size_t i = 0; i < count; i += kLaneMultiple) {
    for (std::size_t j = i; j < i + kLaneMultiple; j += lanes) {
      hn::StoreU(Op::apply(d, a.at(d, j)), dr, r + j);
    }
  }
}

template <typename T, typename R, class Op, bool kA, bool kB>
void map2(const Step& step, const Frame& frame) {
  const Tag<T> d;
  const Tag<R> dr;
  const Source<T, kA> a(step, frame, 0);
  const Source<T, kB> b(step, frame, 1);
  R* r = result_of<R>(step, frame);
  const std::size_t count = frame.count;
  const std::size_t lanes = hn::Lanes(d);
  for (std::size_t i = 0; i < count; i += kLaneMultiple) {
    for (std::size_t j = i; j < i + kLaneMultiple; j += lanes) {
      hn::StoreU(Op::apply(d, a.at(d, j), b.at(d, j)), dr, r + j);
    }
  }
}

template <typename T, class Op, bool kA, bool kB, bool kC>
void map3(const Step& step, const Frame& frame) {
  const Tag<T> d;
  const Source<T, kA> a(step, frame, 0);
  const Source<T, kB> b(step, frame, 1);
  const Source<T, kC> c(step, frame, 2);
  T* r = result_of<T>(step, frame);
  const std::size_t count = frame.count;
  const std::size_t lanes = hn::Lanes(d);
  for (std::size_t i = 0; i < count; i += kLaneMultiple) {
    for (std::size_t j = i; j < i + kLaneMultiple; j += lanes) {
      hn::StoreU(Op::apply(d, a.at(d, j), b.at(d, j), c.at(d, j)), d, r + j);
    }
  }
}

// The loop for which operands are tiles. A step none of whose operands is one runs over a single
// vector of copies, which is a tile as well.
template <typename T, typename R, class Op>
Loop pick2(Pattern tiles) {
  if (tiles == 0b01) return map2<T, R, Op, true, false>;
  if (tiles == 0b10) return map2<T, R, Op, false, true>;
  return map2<T, R, Op, true, true>;
}

template <typename T, class Op>
Loop pick3(Pattern tiles) {
  switch (tiles) {
    case 0b001:
      return map3<T, Op, true, false, false>;
    case 0b010:
      return map3<T, Op, false, true, false>;
    case 0b100:
      return map3<T, Op, false, false, true>;
    case 0b011:
      return map3<T, Op, true, true, false>;
    case 0b101:
      return map3<T, Op, true, false, true>;
    case 0b110:
      return map3<T, Op, false, true, true>;
    default:
      return map3<T, Op, true, true, true>;
  }
}

// The same, one element at a time, for what has no vector instruction.
template <typename T, typename R, class Op>
void each1(const Step& step, const Frame& frame) {
  const T* a = source_of<T>(step, frame, 0);
  R* r = result_of<R>(step, frame);
  for (std::size_t i = 0; i < frame.count; ++i) r[i] = Op::apply(a[i & step.mask[0]]);
}

template <typename T, typename R, class Op>
void each2(const Step& step, const Frame& frame) {
  const T* a = source_of<T>(step, frame, 0);
  const T* b = source_of<T>(step, frame, 1);
  R* r = result_of<R>(step, frame);
  for (std::size_t i = 0; i < frame.count; ++i) {
    r[i] = Op::apply(a[i & step.mask[0]], b[i & step.mask[1]]);
  }
}

// a * b + c rounded once, also where the target has no such instruction.
template <class D, class V>
HWY_INLINE V fused_multiply_add(D d, V a, V b, V c) {
#if HWY_NATIVE_FMA
  (void)d;
  return hn::MulAdd(a, b, c);
#else
  using T = hn::TFromD<D>;
  HWY_ALIGN T x[kLaneMultiple];
  HWY_ALIGN T y[kLaneMultiple];
  HWY_ALIGN T z[kLaneMultiple];
  hn::Store(a, d, x);
  hn::Store(b, d, y);
  hn::Store(c, d, z);
  for (std::size_t i = 0; i < hn::Lanes(d); ++i) z[i] = std::fma(x[i], y[i], z[i]);
  return hn::Load(d, z);
#endif
}

struct Add {
  template <class D, class V>
  static HWY_INLINE V apply(D, V a, V b) {
    return hn::Add(a, b);
  }
};
struct Sub {
  template <class D, class V>
  static HWY_INLINE V apply(D, V a, V b) {
    return hn::Sub(a, b);
  }
};
struct Mul {
  template <class D, class V>
  static HWY_INLINE V apply(D, V a, V b) {
    return hn::Mul(a, b);
  }
};
struct Neg {
  template <class D, class V>
  static HWY_INLINE V apply(D, V a) {
    return hn::Neg(a);
  }
};
struct Abs {
  template <class D, class V>
  static HWY_INLINE V apply(D, V a) {
    return hn::Abs(a);
  }
};
// The second operand where either is NaN, on every target.
struct Min {
  template <class D, class V>
  static HWY_INLINE V apply(D, V a, V b) {
    return hn::IfThenElse(hn::Lt(a, b), a, b);
  }
};
struct Max {
  template <class D, class V>
  static HWY_INLINE V apply(D, V a, V b) {
    return hn::IfThenElse(hn::Gt(a, b), a, b);
  }
};
struct And {
  template <class D, class V>
  static HWY_INLINE V apply(D, V a, V b) {
    return hn::And(a, b);
  }
};
struct Or {
  template <class D, class V>
  static HWY_INLINE V apply(D, V a, V b) {
    return hn::Or(a, b);
  }
};
struct Xor {
  template <class D, class V>
  static HWY_INLINE V apply(D, V a, V b) {
    return hn::Xor(a, b);
  }
};
struct Not {
  template <class D, class V>
  static HWY_INLINE V apply(D, V a) {
    return hn::Not(a);
  }
};

// Comparisons give 32-bit masks, whatever the width of what is compared.
template <class D, class M>
HWY_INLINE hn::Vec<hn::Rebind<std::int32_t, D>> mask_vector(D d, M mask) {
  const hn::Rebind<std::int32_t, D> narrow;
  if constexpr (sizeof(hn::TFromD<D>) == 4) {
    return hn::BitCast(narrow, hn::VecFromMask(d, mask));
  } else {
    // Through f64, whose conversion to i32 every target has.
    const hn::RebindToFloat<D> wide;
    return hn::DemoteTo(narrow,
                        hn::IfThenElseZero(hn::RebindMask(wide, mask), hn::Set(wide, -1.0)));
  }
}
struct Equal {
  template <class D, class V>
  static HWY_INLINE auto apply(D d, V a, V b) {
    return mask_vector(d, hn::Eq(a, b));
  }
};
// Highway's Ne is false for NaN on some targets.
struct NotEqual {
  template <class D, class V>
  static HWY_INLINE auto apply(D d, V a, V b) {
    return mask_vector(d, hn::Not(hn::Eq(a, b)));
  }
};
struct Less {
  template <class D, class V>
  static HWY_INLINE auto apply(D d, V a, V b) {
    return mask_vector(d, hn::Lt(a, b));
  }
};
struct LessEqual {
  template <class D, class V>
  static HWY_INLINE auto apply(D d, V a, V b) {
    if constexpr (hwy::IsFloat<hn::TFromD<D>>()) {
      return mask_vector(d, hn::Le(a, b));
    } else {
      return mask_vector(d, hn::Not(hn::Gt(a, b)));
    }
  }
};

template <typename T, class Op, bool kA, bool kB>
void compare(const Step& step, const Frame& frame) {
  const Tag<T> d;
  const hn::Rebind<std::int32_t, Tag<T>> dr;
  const Source<T, kA> a(step, frame, 0);
  const Source<T, kB> b(step, frame, 1);
  std::int32_t* r = result_of<std::int32_t>(step, frame);
  const std::size_t count = frame.count;
  const std::size_t lanes = hn::Lanes(d);
  for (std::size_t i = 0; i < count; i += kLaneMultiple) {
    for (std::size_t j = i; j < i + kLaneMultiple; j += lanes) {
      hn::StoreU(Op::apply(d, a.at(d, j), b.at(d, j)), dr, r + j);
    }
  }
}

template <typename T, class Op>
Loop pick_compare(Pattern tiles) {
  if (tiles == 0b01) return compare<T, Op, true, false>;
  if (tiles == 0b10) return compare<T, Op, false, true>;
  return compare<T, Op, true, true>;
}

// The condition is a 32-bit mask.
template <typename T, bool kB, bool kC>
void select(const Step& step, const Frame& frame) {
  const Tag<T> d;
  const hn::Rebind<std::int32_t, Tag<T>> dm;
  const hn::RebindToSigned<Tag<T>> wide;
  const Source<std::int32_t, true> condition(step, frame, 0);
  const Source<T, kB> b(step, frame, 1);
  const Source<T, kC> c(step, frame, 2);
  T* r = result_of<T>(step, frame);
  const std::size_t count = frame.count;
  const std::size_t lanes = hn::Lanes(d);
  for (std::size_t i = 0; i < count; i += kLaneMultiple) {
    for (std::size_t j = i; j < i + kLaneMultiple; j += lanes) {
      const auto mask = condition.at(dm, j);
      const auto yes = b.at(d, j);
      const auto no = c.at(d, j);
      if constexpr (sizeof(T) == 4) {
        hn::StoreU(hn::IfThenElse(hn::MaskFromVec(hn::BitCast(d, mask)), yes, no), d, r + j);
      } else {
        const auto wide_mask = hn::MaskFromVec(hn::BitCast(d, hn::PromoteTo(wide, mask)));
        hn::StoreU(hn::IfThenElse(wide_mask, yes, no), d, r + j);
      }
    }
  }
}

// The condition must be a tile, or all three operands one vector.
template <typename T>
Loop pick_select(Pattern tiles) {
  if (tiles == 0b001) return select<T, false, false>;
  if (tiles == 0b011) return select<T, true, false>;
  if (tiles == 0b101) return select<T, false, true>;
  return select<T, true, true>;
}

}  // namespace vkml::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
