// Tile loops between types: conversion and rounding of registers, and loads and stores of
// contiguous memory in the narrow storage types.
#include "tile/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tile/loops_convert.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <cstring>

#include "tile/loops-inl.h"
#include "tile/loops.h"
#include "vkml/core/half.h"

HWY_BEFORE_NAMESPACE();
namespace vkml::cpu::HWY_NAMESPACE {

using ops::ScalarType;
using F32 = float;
using F64 = double;
using I32 = std::int32_t;
using I64 = std::int64_t;
using U16 = std::uint16_t;
using U32 = std::uint32_t;
using U8 = std::uint8_t;

template <typename To>
struct Cast {
  template <typename From>
  static HWY_INLINE To apply(From a) {
    return static_cast<To>(a);
  }
};
// Booleans are masks: 0 or -1.
template <typename To>
struct FromMask {
  static HWY_INLINE To apply(I32 a) { return static_cast<To>(-a); }
};
struct ToMask {
  template <typename From>
  static HWY_INLINE I32 apply(From a) {
    return a != From{0} ? -1 : 0;
  }
};
struct Copy {
  template <class D, class V>
  static HWY_INLINE V apply(D, V a) {
    return a;
  }
};
struct I32ToF32 {
  template <class D, class V>
  static HWY_INLINE hn::Vec<hn::Rebind<F32, D>> apply(D, V a) {
    return hn::ConvertTo(hn::Rebind<F32, D>(), a);
  }
};
struct F32ToI32 {
  template <class D, class V>
  static HWY_INLINE hn::Vec<hn::Rebind<I32, D>> apply(D, V a) {
    return hn::ConvertTo(hn::Rebind<I32, D>(), a);
  }
};
struct MaskToF32 {
  template <class D, class V>
  static HWY_INLINE hn::Vec<hn::Rebind<F32, D>> apply(D d, V a) {
    const hn::Rebind<F32, D> df;
    return hn::BitCast(df, hn::And(a, hn::BitCast(d, hn::Set(df, 1.0F))));
  }
};
struct MaskToI32 {
  template <class D, class V>
  static HWY_INLINE V apply(D, V a) {
    return hn::Neg(a);
  }
};
struct NonZero {
  template <class D, class V>
  static HWY_INLINE hn::Vec<hn::Rebind<I32, D>> apply(D d, V a) {
    return mask_vector(d, hn::Not(hn::Eq(a, hn::Zero(d))));
  }
};

Loop from_bool(ScalarType to) {
  switch (to) {
    case ScalarType::kBool:
      return map1<I32, I32, Copy>;
    case ScalarType::kI32:
      return map1<I32, I32, MaskToI32>;
    case ScalarType::kI64:
      return each1<I32, I64, FromMask<I64>>;
    case ScalarType::kF32:
      return map1<I32, F32, MaskToF32>;
    case ScalarType::kF64:
      return each1<I32, F64, FromMask<F64>>;
  }
  return nullptr;
}
Loop from_i32(ScalarType to) {
  switch (to) {
    case ScalarType::kBool:
      return map1<I32, I32, NonZero>;
    case ScalarType::kI32:
      return map1<I32, I32, Copy>;
    case ScalarType::kI64:
      return each1<I32, I64, Cast<I64>>;
    case ScalarType::kF32:
      return map1<I32, F32, I32ToF32>;
    case ScalarType::kF64:
      return each1<I32, F64, Cast<F64>>;
  }
  return nullptr;
}
Loop from_i64(ScalarType to) {
  switch (to) {
    case ScalarType::kBool:
      return each1<I64, I32, ToMask>;
    case ScalarType::kI32:
      return each1<I64, I32, Cast<I32>>;
    case ScalarType::kI64:
      return map1<I64, I64, Copy>;
    case ScalarType::kF32:
      return each1<I64, F32, Cast<F32>>;
    case ScalarType::kF64:
      return each1<I64, F64, Cast<F64>>;
  }
  return nullptr;
}
Loop from_f32(ScalarType to) {
  switch (to) {
    case ScalarType::kBool:
      return map1<F32, I32, NonZero>;
    case ScalarType::kI32:
      return map1<F32, I32, F32ToI32>;
    case ScalarType::kI64:
      return each1<F32, I64, Cast<I64>>;
    case ScalarType::kF32:
      return map1<F32, F32, Copy>;
    case ScalarType::kF64:
      return each1<F32, F64, Cast<F64>>;
  }
  return nullptr;
}
Loop from_f64(ScalarType to) {
  switch (to) {
    case ScalarType::kBool:
      return each1<F64, I32, ToMask>;
    case ScalarType::kI32:
      return each1<F64, I32, Cast<I32>>;
    case ScalarType::kI64:
      return each1<F64, I64, Cast<I64>>;
    case ScalarType::kF32:
      return each1<F64, F32, Cast<F32>>;
    case ScalarType::kF64:
      return map1<F64, F64, Copy>;
  }
  return nullptr;
}

Loop convert_loop_here(ScalarType to, ScalarType from) {
  switch (from) {
    case ScalarType::kBool:
      return from_bool(to);
    case ScalarType::kI32:
      return from_i32(to);
    case ScalarType::kI64:
      return from_i64(to);
    case ScalarType::kF32:
      return from_f32(to);
    case ScalarType::kF64:
      return from_f64(to);
  }
  return nullptr;
}

// bf16 in the high half of each lane, rounded to nearest even; NaN stays NaN.
template <class D, class V>
HWY_INLINE hn::Vec<hn::Rebind<U32, D>> bf16_bits(D, V a) {
  const hn::Rebind<U32, D> u;
  const auto bits = hn::BitCast(u, a);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(u, 1u));
  const auto rounded = hn::Add(bits, hn::Add(odd, hn::Set(u, 0x7fffu)));
  const auto nan = hn::Or(bits, hn::Set(u, 0x400000u));
  const auto is_nan = hn::RebindMask(u, hn::IsNaN(a));
  return hn::And(hn::IfThenElse(is_nan, nan, rounded), hn::Set(u, 0xffff0000u));
}

struct NarrowBF16 {
  template <class D, class V>
  static HWY_INLINE V apply(D d, V a) {
    return hn::BitCast(d, bf16_bits(d, a));
  }
};
struct NarrowF16 {
  static HWY_INLINE F32 apply(F32 a) { return f16_to_f32(f32_to_f16(a)); }
};
struct NarrowU8 {
  template <class D, class V>
  static HWY_INLINE V apply(D d, V a) {
    return hn::And(a, hn::Set(d, 255));
  }
};

Loop narrow_loop_here(DType dtype) {
  switch (dtype) {
    case DType::kBool:
    case DType::kI32:
      return map1<I32, I32, Copy>;
    case DType::kU8:
      return map1<I32, I32, NarrowU8>;
    case DType::kI64:
      return map1<I64, I64, Copy>;
    case DType::kF16:
      return each1<F32, F32, NarrowF16>;
    case DType::kBF16:
      return map1<F32, F32, NarrowBF16>;
    case DType::kF32:
      return map1<F32, F32, Copy>;
    case DType::kF64:
      return map1<F64, F64, Copy>;
  }
  return nullptr;
}

template <std::size_t kBytes>
void copy_row(void* target, const void* source, std::size_t n) {
  std::memcpy(target, source, n * kBytes);
}

void load_bool(void* target, const void* source, std::size_t n) {
  auto* r = static_cast<I32*>(target);
  const auto* a = static_cast<const U8*>(source);
  for (std::size_t i = 0; i < n; ++i) r[i] = a[i] != 0 ? -1 : 0;
}
void store_bool(void* target, const void* source, std::size_t n) {
  auto* r = static_cast<U8*>(target);
  const auto* a = static_cast<const I32*>(source);
  for (std::size_t i = 0; i < n; ++i) r[i] = static_cast<U8>(a[i] & 1);
}
void load_u8(void* target, const void* source, std::size_t n) {
  auto* r = static_cast<I32*>(target);
  const auto* a = static_cast<const U8*>(source);
  for (std::size_t i = 0; i < n; ++i) r[i] = a[i];
}
void store_u8(void* target, const void* source, std::size_t n) {
  auto* r = static_cast<U8*>(target);
  const auto* a = static_cast<const I32*>(source);
  for (std::size_t i = 0; i < n; ++i) r[i] = static_cast<U8>(a[i]);
}

void load_f16(void* target, const void* source, std::size_t n) {
  auto* r = static_cast<F32*>(target);
  const auto* a = static_cast<const U16*>(source);
  std::size_t i = 0;
#if HWY_TARGET <= HWY_SSE4 && !defined(HWY_DISABLE_F16C)
  const Tag<F32> d;
  const hn::Rebind<hwy::float16_t, Tag<F32>> half;
  const hn::Rebind<U16, Tag<F32>> bits;
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d)) {
    hn::StoreU(hn::PromoteTo(d, hn::BitCast(half, hn::LoadU(bits, a + i))), d, r + i);
  }
#endif
  for (; i < n; ++i) r[i] = f16_to_f32(a[i]);
}
void store_f16(void* target, const void* source, std::size_t n) {
  auto* r = static_cast<U16*>(target);
  const auto* a = static_cast<const F32*>(source);
  std::size_t i = 0;
#if HWY_TARGET <= HWY_SSE4 && !defined(HWY_DISABLE_F16C)
  const Tag<F32> d;
  const hn::Rebind<hwy::float16_t, Tag<F32>> half;
  const hn::Rebind<U16, Tag<F32>> bits;
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d)) {
    hn::StoreU(hn::BitCast(bits, hn::DemoteTo(half, hn::LoadU(d, a + i))), bits, r + i);
  }
#endif
  for (; i < n; ++i) r[i] = f32_to_f16(a[i]);
}
void load_bf16(void* target, const void* source, std::size_t n) {
  auto* r = static_cast<U32*>(target);
  const auto* a = static_cast<const U16*>(source);
  const Tag<U32> d;
  const hn::Rebind<U16, Tag<U32>> half;
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d)) {
    hn::StoreU(hn::ShiftLeft<16>(hn::PromoteTo(d, hn::LoadU(half, a + i))), d, r + i);
  }
  for (; i < n; ++i) r[i] = static_cast<U32>(a[i]) << 16;
}
void store_bf16(void* target, const void* source, std::size_t n) {
  auto* r = static_cast<U16*>(target);
  const auto* a = static_cast<const F32*>(source);
  const Tag<F32> d;
  const hn::Rebind<I32, Tag<F32>> wide;
  const hn::Rebind<U16, Tag<F32>> half;
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d)) {
    const auto bits = hn::ShiftRight<16>(bf16_bits(d, hn::LoadU(d, a + i)));
    hn::StoreU(hn::DemoteTo(half, hn::BitCast(wide, bits)), half, r + i);
  }
  for (; i < n; ++i) r[i] = f32_to_bf16(a[i]);
}

ConvertRow load_row_here(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return load_bool;
    case DType::kU8:
      return load_u8;
    case DType::kF16:
      return load_f16;
    case DType::kBF16:
      return load_bf16;
    case DType::kI32:
    case DType::kF32:
      return copy_row<4>;
    case DType::kI64:
    case DType::kF64:
      return copy_row<8>;
  }
  return nullptr;
}
ConvertRow store_row_here(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return store_bool;
    case DType::kU8:
      return store_u8;
    case DType::kF16:
      return store_f16;
    case DType::kBF16:
      return store_bf16;
    case DType::kI32:
    case DType::kF32:
      return copy_row<4>;
    case DType::kI64:
    case DType::kF64:
      return copy_row<8>;
  }
  return nullptr;
}

}  // namespace vkml::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vkml::cpu {

HWY_EXPORT(convert_loop_here);
HWY_EXPORT(narrow_loop_here);
HWY_EXPORT(load_row_here);
HWY_EXPORT(store_row_here);

Loop convert_loop(ops::ScalarType to, ops::ScalarType from) {
  return HWY_DYNAMIC_DISPATCH(convert_loop_here)(to, from);
}
Loop narrow_loop(DType dtype) { return HWY_DYNAMIC_DISPATCH(narrow_loop_here)(dtype); }
ConvertRow load_row(DType dtype) { return HWY_DYNAMIC_DISPATCH(load_row_here)(dtype); }
ConvertRow store_row(DType dtype) { return HWY_DYNAMIC_DISPATCH(store_row_here)(dtype); }

}  // namespace vkml::cpu
#endif
