// Shapes of vector loops, shared by the loops of all types. Included once for each target.
#if defined(VKML_BACKEND_CPU_TILE_LOOPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef VKML_BACKEND_CPU_TILE_LOOPS_INL_H_
#undef VKML_BACKEND_CPU_TILE_LOOPS_INL_H_
#else
#define VKML_BACKEND_CPU_TILE_LOOPS_INL_H_
#endif

#include <hwy/highway.h>

#include <cmath>

#include "tile/program.h"

HWY_BEFORE_NAMESPACE();
namespace vkml::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// At most kLaneMultiple lanes, also where vectors are longer.
template <typename T>
using Tag = hn::CappedTag<T, kLaneMultiple>;

// Op::apply(tag, vectors...) for every vector of a tile. The result may be an operand's register.
template <typename T, typename R, class Op>
void map1(const Step& step, const Frame& frame) {
  const Tag<T> d;
  const Tag<R> dr;
  const T* a = source_of<T>(step, frame, 0);
  R* r = result_of<R>(step, frame);
  for (std::size_t i = 0; i < frame.count; i += kLaneMultiple) {
    for (std::size_t j = i; j < i + kLaneMultiple; j += hn::Lanes(d)) {
      hn::StoreU(Op::apply(d, hn::LoadU(d, a + (j & step.mask[0]))), dr, r + j);
    }
  }
}

template <typename T, typename R, class Op>
void map2(const Step& step, const Frame& frame) {
  const Tag<T> d;
  const Tag<R> dr;
  const T* a = source_of<T>(step, frame, 0);
  const T* b = source_of<T>(step, frame, 1);
  R* r = result_of<R>(step, frame);
  const std::size_t mask_a = step.mask[0];
  const std::size_t mask_b = step.mask[1];
  for (std::size_t i = 0; i < frame.count; i += kLaneMultiple) {
    for (std::size_t j = i; j < i + kLaneMultiple; j += hn::Lanes(d)) {
      hn::StoreU(Op::apply(d, hn::LoadU(d, a + (j & mask_a)), hn::LoadU(d, b + (j & mask_b))), dr,
                 r + j);
    }
  }
}

template <typename T, class Op>
void map3(const Step& step, const Frame& frame) {
  const Tag<T> d;
  const T* a = source_of<T>(step, frame, 0);
  const T* b = source_of<T>(step, frame, 1);
  const T* c = source_of<T>(step, frame, 2);
  T* r = result_of<T>(step, frame);
  const std::size_t mask_a = step.mask[0];
  const std::size_t mask_b = step.mask[1];
  const std::size_t mask_c = step.mask[2];
  for (std::size_t i = 0; i < frame.count; i += kLaneMultiple) {
    for (std::size_t j = i; j < i + kLaneMultiple; j += hn::Lanes(d)) {
      hn::StoreU(Op::apply(d, hn::LoadU(d, a + (j & mask_a)), hn::LoadU(d, b + (j & mask_b)),
                           hn::LoadU(d, c + (j & mask_c))),
                 d, r + j);
    }
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

template <typename T, class Op>
void compare(const Step& step, const Frame& frame) {
  const Tag<T> d;
  const hn::Rebind<std::int32_t, Tag<T>> dr;
  const T* a = source_of<T>(step, frame, 0);
  const T* b = source_of<T>(step, frame, 1);
  std::int32_t* r = result_of<std::int32_t>(step, frame);
  for (std::size_t i = 0; i < frame.count; i += kLaneMultiple) {
    for (std::size_t j = i; j < i + kLaneMultiple; j += hn::Lanes(d)) {
      hn::StoreU(
          Op::apply(d, hn::LoadU(d, a + (j & step.mask[0])), hn::LoadU(d, b + (j & step.mask[1]))),
          dr, r + j);
    }
  }
}

// The condition is a 32-bit mask.
template <typename T>
void select(const Step& step, const Frame& frame) {
  const Tag<T> d;
  const hn::Rebind<std::int32_t, Tag<T>> dm;
  const hn::RebindToSigned<Tag<T>> wide;
  const std::int32_t* condition = source_of<std::int32_t>(step, frame, 0);
  const T* b = source_of<T>(step, frame, 1);
  const T* c = source_of<T>(step, frame, 2);
  T* r = result_of<T>(step, frame);
  for (std::size_t i = 0; i < frame.count; i += kLaneMultiple) {
    for (std::size_t j = i; j < i + kLaneMultiple; j += hn::Lanes(d)) {
      const auto lanes = hn::LoadU(dm, condition + (j & step.mask[0]));
      const auto yes = hn::LoadU(d, b + (j & step.mask[1]));
      const auto no = hn::LoadU(d, c + (j & step.mask[2]));
      if constexpr (sizeof(T) == 4) {
        hn::StoreU(hn::IfThenElse(hn::MaskFromVec(hn::BitCast(d, lanes)), yes, no), d, r + j);
      } else {
        const auto mask = hn::MaskFromVec(hn::BitCast(d, hn::PromoteTo(wide, lanes)));
        hn::StoreU(hn::IfThenElse(mask, yes, no), d, r + j);
      }
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace vkml::cpu
HWY_AFTER_NAMESPACE();

#endif
