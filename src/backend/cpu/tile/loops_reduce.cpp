// Steps that add a tile to the running values of its rows.
//
// Horizontal tiles hold rows one after the other: each row is reduced over vector lanes. Vertical
// tiles hold neighbouring rows side by side: every lane is a row of its own.
#include "tile/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tile/loops_reduce.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "tile/loops-inl.h"
#include "tile/reduction.h"

HWY_BEFORE_NAMESPACE();
namespace vkml::cpu::HWY_NAMESPACE {

using ops::ReduceKind;
using ops::ScalarType;

template <typename T>
using Running = std::conditional_t<std::is_floating_point_v<T>, double, std::int64_t>;

template <typename T>
Running<T>& running(ReductionValue& value) {
  if constexpr (std::is_floating_point_v<T>) {
    return value.real;
  } else {
    return value.integer;
  }
}

// Each kind: the type in which a tile's elements combine, how they do, in vectors and one by one,
// and what nothing combines to. Sums of f32 are in double: what is lost there lies so far below f32
// that the same numbers have the same sum however a plan cuts them into tiles.
template <typename T>
struct SumOf {
  using Sum = std::conditional_t<std::is_same_v<T, float>, double, T>;
  static constexpr Sum kIdentity = 0;
  template <class V>
  static HWY_INLINE V combine(V a, V b) {
    return hn::Add(a, b);
  }
  template <typename S>
  static HWY_INLINE S combine_one(S a, S b) {
    if constexpr (std::is_floating_point_v<S>) {
      return a + b;
    } else {
      using U = std::make_unsigned_t<S>;
      return static_cast<S>(static_cast<U>(a) + static_cast<U>(b));
    }
  }
};
template <typename T>
struct ProductOf {
  static constexpr T kIdentity = 1;
  template <typename S>
  static HWY_INLINE S combine_one(S a, S b) {
    if constexpr (std::is_floating_point_v<S>) {
      return a * b;
    } else {
      using U = std::make_unsigned_t<S>;
      return static_cast<S>(static_cast<U>(a) * static_cast<U>(b));
    }
  }
};
// NaN wins: a NaN already there stays, since no comparison with it holds; a new one replaces.
template <typename T>
struct GreatestOf {
  using Sum = T;
  static constexpr T kIdentity = std::is_floating_point_v<T> ? -std::numeric_limits<T>::infinity()
                                                             : std::numeric_limits<T>::lowest();
  template <class V>
  static HWY_INLINE V combine(V a, V b) {
    if constexpr (std::is_floating_point_v<T>) {
      return hn::IfThenElse(hn::Or(hn::Gt(b, a), hn::IsNaN(b)), b, a);
    } else {
      return hn::Max(a, b);
    }
  }
  template <typename S>
  static HWY_INLINE S combine_one(S a, S b) {
    return b > a || b != b ? b : a;
  }
};
template <typename T>
struct LeastOf {
  using Sum = T;
  static constexpr T kIdentity = std::is_floating_point_v<T> ? std::numeric_limits<T>::infinity()
                                                             : std::numeric_limits<T>::max();
  template <class V>
  static HWY_INLINE V combine(V a, V b) {
    if constexpr (std::is_floating_point_v<T>) {
      return hn::IfThenElse(hn::Or(hn::Lt(b, a), hn::IsNaN(b)), b, a);
    } else {
      return hn::Min(a, b);
    }
  }
  template <typename S>
  static HWY_INLINE S combine_one(S a, S b) {
    return b < a || b != b ? b : a;
  }
};
template <typename T>
struct AnyOf {
  using Sum = T;
  static constexpr T kIdentity = 0;
  template <class V>
  static HWY_INLINE V combine(V a, V b) {
    return hn::Or(a, b);
  }
  template <typename S>
  static HWY_INLINE S combine_one(S a, S b) {
    return a | b;
  }
};
template <typename T>
struct AllOf {
  using Sum = T;
  static constexpr T kIdentity = -1;
  template <class V>
  static HWY_INLINE V combine(V a, V b) {
    return hn::And(a, b);
  }
  template <typename S>
  static HWY_INLINE S combine_one(S a, S b) {
    return a & b;
  }
};

template <class D, typename T>
HWY_INLINE hn::Vec<D> load_as(D d, const T* x) {
  if constexpr (std::is_same_v<hn::TFromD<D>, T>) {
    return hn::LoadU(d, x);
  } else {
    return hn::PromoteTo(d, hn::LoadU(hn::Rebind<T, D>(), x));
  }
}

// Four vectors of partial results, combined pairwise at the end: a fixed order.
template <typename T, class Op>
typename Op::Sum reduce_row(const T* x, std::size_t n) {
  using Sum = typename Op::Sum;
  const Tag<Sum> d;
  const std::size_t lanes = hn::Lanes(d);
  Sum result = Op::kIdentity;
  std::size_t i = 0;
  if (n >= 4 * lanes) {
    auto r0 = load_as(d, x);
    auto r1 = load_as(d, x + lanes);
    auto r2 = load_as(d, x + 2 * lanes);
    auto r3 = load_as(d, x + 3 * lanes);
    for (i = 4 * lanes; i + 4 * lanes <= n; i += 4 * lanes) {
      r0 = Op::combine(r0, load_as(d, x + i));
      r1 = Op::combine(r1, load_as(d, x + i + lanes));
      r2 = Op::combine(r2, load_as(d, x + i + 2 * lanes));
      r3 = Op::combine(r3, load_as(d, x + i + 3 * lanes));
    }
    alignas(64) Sum partial[kLaneMultiple];
    hn::StoreU(Op::combine(Op::combine(r0, r1), Op::combine(r2, r3)), d, partial);
    for (std::size_t k = lanes / 2; k > 0; k /= 2) {
      for (std::size_t j = 0; j < k; ++j) {
        partial[j] = Op::combine_one(partial[j], partial[j + k]);
      }
    }
    result = partial[0];
  }
  for (; i < n; ++i) result = Op::combine_one(result, static_cast<Sum>(x[i]));
  return result;
}

template <typename T, class Op>
void horizontal(const Step& step, const Frame& frame) {
  const T* x = source_of<T>(step, frame, 0);
  ReductionValue* values = frame.states[step.immediate].value;
  const auto length = static_cast<std::size_t>(frame.length);
  for (std::int64_t row = 0; row < frame.rows; ++row, x += length) {
    Running<T>& value = running<T>(values[row]);
    value = Op::combine_one(value, static_cast<Running<T>>(reduce_row<T, Op>(x, length)));
  }
}

template <typename T, class Op>
void vertical(const Step& step, const Frame& frame) {
  using Sum = typename Op::Sum;
  const Tag<Sum> d;
  const T* x = source_of<T>(step, frame, 0);
  ReductionValue* values = frame.states[step.immediate].value;
  const auto rows = static_cast<std::size_t>(frame.rows);
  const auto length = static_cast<std::size_t>(frame.length);
  alignas(64) Sum partial[kLaneMultiple];
  std::size_t i = 0;
  for (; i + kLaneMultiple <= rows; i += kLaneMultiple) {
    for (std::size_t j = 0; j < kLaneMultiple; j += hn::Lanes(d)) {
      auto sum = load_as(d, x + i + j);
      for (std::size_t k = 1; k < length; ++k) {
        sum = Op::combine(sum, load_as(d, x + k * rows + i + j));
      }
      hn::StoreU(sum, d, partial + j);
    }
    for (std::size_t j = 0; j < kLaneMultiple; ++j) {
      Running<T>& value = running<T>(values[i + j]);
      value = Op::combine_one(value, static_cast<Running<T>>(partial[j]));
    }
  }
  for (; i < rows; ++i) {
    Sum sum = x[i];
    for (std::size_t k = 1; k < length; ++k)
      sum = Op::combine_one(sum, static_cast<Sum>(x[k * rows + i]));
    Running<T>& value = running<T>(values[i]);
    value = Op::combine_one(value, static_cast<Running<T>>(sum));
  }
}

// Products and argument reductions are rare: one element at a time.
template <typename T>
void product(const Step& step, const Frame& frame, std::int64_t row_stride,
             std::int64_t element_stride) {
  const T* x = source_of<T>(step, frame, 0);
  ReductionValue* values = frame.states[step.immediate].value;
  for (std::int64_t row = 0; row < frame.rows; ++row) {
    Running<T>& value = running<T>(values[row]);
    for (std::int64_t i = 0; i < frame.length; ++i) {
      value = ProductOf<T>::combine_one(
          value, static_cast<Running<T>>(x[row * row_stride + i * element_stride]));
    }
  }
}

template <typename T, bool kGreatest>
void argument(const Step& step, const Frame& frame, std::int64_t row_stride,
              std::int64_t element_stride) {
  const T* x = source_of<T>(step, frame, 0);
  const ReductionState& state = frame.states[step.immediate];
  for (std::int64_t row = 0; row < frame.rows; ++row) {
    Running<T>& stored = running<T>(state.value[row]);
    std::int64_t index = state.index[row];
    auto best = static_cast<T>(stored);
    for (std::int64_t i = 0; i < frame.length; ++i) {
      const T value = x[row * row_stride + i * element_stride];
      const bool better = kGreatest ? value > best : value < best;
      const bool first_nan = value != value && best == best;
      if (index < 0 || better || first_nan) {
        best = value;
        index = frame.row_offset + i;
      }
    }
    stored = static_cast<Running<T>>(best);
    state.index[row] = index;
  }
}

template <typename T, bool kVertical>
void product_step(const Step& step, const Frame& frame) {
  product<T>(step, frame, kVertical ? 1 : frame.length, kVertical ? frame.rows : 1);
}
template <typename T, bool kGreatest, bool kVertical>
void argument_step(const Step& step, const Frame& frame) {
  argument<T, kGreatest>(step, frame, kVertical ? 1 : frame.length, kVertical ? frame.rows : 1);
}

template <typename T, bool kVertical>
Loop number_loop(ReduceKind kind) {
  switch (kind) {
    case ReduceKind::kSum:
      return kVertical ? vertical<T, SumOf<T>> : horizontal<T, SumOf<T>>;
    case ReduceKind::kMax:
      return kVertical ? vertical<T, GreatestOf<T>> : horizontal<T, GreatestOf<T>>;
    case ReduceKind::kMin:
      return kVertical ? vertical<T, LeastOf<T>> : horizontal<T, LeastOf<T>>;
    case ReduceKind::kProd:
      return product_step<T, kVertical>;
    case ReduceKind::kArgMax:
      return argument_step<T, true, kVertical>;
    case ReduceKind::kArgMin:
      return argument_step<T, false, kVertical>;
    default:
      return nullptr;
  }
}

template <bool kVertical>
Loop mask_loop(ReduceKind kind) {
  using T = std::int32_t;
  switch (kind) {
    case ReduceKind::kAny:
      return kVertical ? vertical<T, AnyOf<T>> : horizontal<T, AnyOf<T>>;
    case ReduceKind::kAll:
      return kVertical ? vertical<T, AllOf<T>> : horizontal<T, AllOf<T>>;
    default:
      return nullptr;
  }
}

template <bool kVertical>
Loop loop_of(ReduceKind kind, ScalarType type) {
  switch (type) {
    case ScalarType::kBool:
      return mask_loop<kVertical>(kind);
    case ScalarType::kI32:
      return number_loop<std::int32_t, kVertical>(kind);
    case ScalarType::kI64:
      return number_loop<std::int64_t, kVertical>(kind);
    case ScalarType::kF32:
      return number_loop<float, kVertical>(kind);
    case ScalarType::kF64:
      return number_loop<double, kVertical>(kind);
  }
  return nullptr;
}

Loop reduce_loop_here(ReduceKind kind, ScalarType type, bool is_vertical) {
  return is_vertical ? loop_of<true>(kind, type) : loop_of<false>(kind, type);
}

}  // namespace vkml::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vkml::cpu {

HWY_EXPORT(reduce_loop_here);
Loop reduce_loop(const Reduction& reduction, bool vertical) {
  return HWY_DYNAMIC_DISPATCH(reduce_loop_here)(reduction.kind, reduction.type, vertical);
}

}  // namespace vkml::cpu
#endif
