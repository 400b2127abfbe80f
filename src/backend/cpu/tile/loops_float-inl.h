// Loops of f32 and f64: the same code for both. Included once for each target.
#if defined(VKML_BACKEND_CPU_TILE_LOOPS_FLOAT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef VKML_BACKEND_CPU_TILE_LOOPS_FLOAT_INL_H_
#undef VKML_BACKEND_CPU_TILE_LOOPS_FLOAT_INL_H_
#else
#define VKML_BACKEND_CPU_TILE_LOOPS_FLOAT_INL_H_
#endif

#include <iterator>
#include <type_traits>

#include "tile/loops-inl.h"
#include "vkml/ops/far_functions.h"
#include "vkml/ops/scalar_program.h"

HWY_BEFORE_NAMESPACE();
namespace vkml::cpu::HWY_NAMESPACE {

struct Div {
  template <class D, class V>
  static HWY_INLINE V apply(D, V a, V b) {
    return hn::Div(a, b);
  }
};
struct Sqrt {
  template <class D, class V>
  static HWY_INLINE V apply(D, V a) {
    return hn::Sqrt(a);
  }
};
struct Floor {
  template <class D, class V>
  static HWY_INLINE V apply(D, V a) {
    return hn::Floor(a);
  }
};
struct Ceil {
  template <class D, class V>
  static HWY_INLINE V apply(D, V a) {
    return hn::Ceil(a);
  }
};
struct Trunc {
  template <class D, class V>
  static HWY_INLINE V apply(D, V a) {
    return hn::Trunc(a);
  }
};
struct RoundEven {
  template <class D, class V>
  static HWY_INLINE V apply(D, V a) {
    return hn::Round(a);
  }
};
struct Fma {
  template <class D, class V>
  static HWY_INLINE V apply(D d, V a, V b, V c) {
    return fused_multiply_add(d, a, b, c);
  }
};

// ops::exp_program() in registers: its instructions one by one would spend their time on loading
// and storing tiles.
template <typename T>
struct ExpConstants;
template <>
struct ExpConstants<float> {
  static constexpr float kHighest = 90.0F, kLowest = -105.0F, kLarge = 0x1.8p23F;
  static constexpr float kLn2High = 0.693359375F, kLn2Low = -2.12194440054690583e-4F;
  static constexpr int kBias = 127, kMantissaBits = 23;
  static constexpr float kSeries[] = {1.9875691500e-4F, 1.3981999507e-3F, 8.3334519073e-3F,
                                      4.1665795894e-2F, 1.6666665459e-1F, 5.0000001201e-1F};
};
template <>
struct ExpConstants<double> {
  static constexpr double kHighest = 711.0, kLowest = -746.0, kLarge = 0x1.8p52;
  static constexpr double kLn2High = 6.93147180369123816490e-01,
                          kLn2Low = 1.90821492927058770002e-10;
  static constexpr int kBias = 1023, kMantissaBits = 52;
  static constexpr double kSeries[] = {1.0 / 6227020800.0, 1.0 / 479001600.0, 1.0 / 39916800.0,
                                       1.0 / 3628800.0,    1.0 / 362880.0,    1.0 / 40320.0,
                                       1.0 / 5040.0,       1.0 / 720.0,       1.0 / 120.0,
                                       1.0 / 24.0,         1.0 / 6.0,         0.5};
};
struct Exp {
  template <class D, class V>
  static HWY_INLINE V apply(D d, V given) {
    using T = hn::TFromD<D>;
    using Constants = ExpConstants<T>;
    const hn::RebindToSigned<D> di;
    // NaN passes: a comparison with it is false.
    const V lowest = hn::Set(d, Constants::kLowest), highest = hn::Set(d, Constants::kHighest);
    V x = hn::IfThenElse(hn::Lt(highest, given), highest, given);
    x = hn::IfThenElse(hn::Lt(x, lowest), lowest, x);
    const V large = hn::Set(d, Constants::kLarge);
    const V sum = hn::Add(hn::Mul(x, hn::Set(d, static_cast<T>(1.4426950408889634074))), large);
    const V n = hn::Sub(sum, large);
    const auto integer = hn::Sub(hn::BitCast(di, sum), hn::BitCast(di, large));
    V r = fused_multiply_add(d, n, hn::Set(d, -Constants::kLn2High), x);
    r = fused_multiply_add(d, n, hn::Set(d, -Constants::kLn2Low), r);
    V series = hn::Set(d, Constants::kSeries[0]);
    for (std::size_t k = 1; k < std::size(Constants::kSeries); ++k) {
      series = fused_multiply_add(d, series, r, hn::Set(d, Constants::kSeries[k]));
    }
    const V p = fused_multiply_add(d, series, hn::Mul(r, r), r);
    const auto bias = hn::Set(di, Constants::kBias);
    const auto half = hn::ShiftRight<1>(integer);
    const auto scale1 = hn::ShiftLeft<Constants::kMantissaBits>(hn::Add(half, bias));
    const auto scale2 =
        hn::ShiftLeft<Constants::kMantissaBits>(hn::Add(hn::Sub(integer, half), bias));
    return hn::Mul(hn::Mul(hn::Add(p, hn::Set(d, T{1})), hn::BitCast(d, scale1)),
                   hn::BitCast(d, scale2));
  }
};

// Vectors of the tile advance through the whole Horner chain in registers, several at a time to
// cover the latency of the fused multiply-add.
template <typename T, bool kStartIsTile>
void polynomial(const Step& step, const Frame& frame) {
  const Tag<T> d;
  const std::size_t lanes = hn::Lanes(d);
  const Source<T, true> x(step, frame, 0);
  const Source<T, kStartIsTile> start(step, frame, 1);
  const T* coefficients = source_of<T>(step, frame, 2);
  T* r = result_of<T>(step, frame);
  const auto terms = static_cast<std::size_t>(step.immediate);
  const std::size_t count = frame.count;
  std::size_t i = 0;
  for (; i + 4 * lanes <= count; i += 4 * lanes) {
    const auto x0 = x.at(d, i);
    const auto x1 = x.at(d, i + lanes);
    const auto x2 = x.at(d, i + 2 * lanes);
    const auto x3 = x.at(d, i + 3 * lanes);
    auto y0 = start.at(d, i);
    auto y1 = start.at(d, i + lanes);
    auto y2 = start.at(d, i + 2 * lanes);
    auto y3 = start.at(d, i + 3 * lanes);
    for (std::size_t k = 0; k < terms; ++k) {
      const auto c = hn::Set(d, coefficients[k]);
      y0 = fused_multiply_add(d, y0, x0, c);
      y1 = fused_multiply_add(d, y1, x1, c);
      y2 = fused_multiply_add(d, y2, x2, c);
      y3 = fused_multiply_add(d, y3, x3, c);
    }
    hn::StoreU(y0, d, r + i);
    hn::StoreU(y1, d, r + i + lanes);
    hn::StoreU(y2, d, r + i + 2 * lanes);
    hn::StoreU(y3, d, r + i + 3 * lanes);
  }
  for (; i < count; i += lanes) {
    const auto x0 = x.at(d, i);
    auto y0 = start.at(d, i);
    for (std::size_t k = 0; k < terms; ++k) {
      y0 = fused_multiply_add(d, y0, x0, hn::Set(d, coefficients[k]));
    }
    hn::StoreU(y0, d, r + i);
  }
}

// What a far function gives one element: the library's value. It is computed in the next wider
// type, since libraries' own reduction is a few units off next to multiples of pi/2.
template <ops::FarFunction kFunction, typename T>
T far_value(T b, T c) {
  switch (kFunction) {
    case ops::FarFunction::kSin:
      return std::sin(b);
    case ops::FarFunction::kCos:
      return std::cos(b);
    case ops::FarFunction::kTan:
      return std::tan(b);
    case ops::FarFunction::kFmod:
      break;
  }
  return std::fmod(b, c);
}

// Vectors all of whose elements are within reach pass through; of the others each element is
// computed by itself.
template <typename T, ops::FarFunction kFunction>
void beyond(const Step& step, const Frame& frame) {
  const Tag<T> d;
  constexpr ops::ScalarType kType = sizeof(T) == 4 ? ops::ScalarType::kF32 : ops::ScalarType::kF64;
  constexpr auto kReach = static_cast<T>(ops::reach_of(kFunction, kType));
  using Wide = std::conditional_t<sizeof(T) == 4, double, long double>;
  constexpr bool kDivides = kFunction == ops::FarFunction::kFmod;
  const T* near = source_of<T>(step, frame, 0);
  const T* b = source_of<T>(step, frame, 1);
  const T* c = source_of<T>(step, frame, 2);
  T* r = result_of<T>(step, frame);
  const std::size_t lanes = hn::Lanes(d);
  const auto reach = hn::Set(d, kReach);
  for (std::size_t i = 0; i < frame.count; i += lanes) {
    const auto value = hn::LoadU(d, near + (i & step.mask[0]));
    const auto vb = hn::LoadU(d, b + (i & step.mask[1]));
    const auto vc = hn::LoadU(d, c + (i & step.mask[2]));
    const auto limit = kDivides ? hn::Mul(hn::Abs(vc), reach) : reach;
    const auto is_far = hn::Ge(hn::Abs(vb), limit);
    if (hn::AllFalse(d, is_far)) {
      hn::StoreU(value, d, r + i);
      continue;
    }
    HWY_ALIGN T x[kLaneMultiple];
    HWY_ALIGN T y[kLaneMultiple];
    HWY_ALIGN T z[kLaneMultiple];
    hn::Store(value, d, x);
    hn::Store(vb, d, y);
    hn::Store(vc, d, z);
    for (std::size_t k = 0; k < lanes; ++k) {
      if (std::abs(y[k]) >= (kDivides ? std::abs(z[k]) * kReach : kReach)) {
        x[k] = static_cast<T>(far_value<kFunction, Wide>(y[k], z[k]));
      }
    }
    hn::StoreU(hn::Load(d, x), d, r + i);
  }
}

template <typename T>
Loop pick_beyond(ops::FarFunction function) {
  using ops::FarFunction;
  switch (function) {
    case FarFunction::kSin:
      return beyond<T, FarFunction::kSin>;
    case FarFunction::kCos:
      return beyond<T, FarFunction::kCos>;
    case FarFunction::kTan:
      return beyond<T, FarFunction::kTan>;
    case FarFunction::kFmod:
      return beyond<T, FarFunction::kFmod>;
  }
  return nullptr;
}

template <typename T>
Loop pick_polynomial(Pattern tiles) {
  return tiles == 0b01 ? polynomial<T, false> : polynomial<T, true>;
}

template <typename T>
Loop float_loop(ops::Opcode op, Pattern tiles) {
  using ops::Opcode;
  switch (op) {
    case Opcode::kAdd:
      return pick2<T, T, Add>(tiles);
    case Opcode::kSub:
      return pick2<T, T, Sub>(tiles);
    case Opcode::kMul:
      return pick2<T, T, Mul>(tiles);
    case Opcode::kDiv:
      return pick2<T, T, Div>(tiles);
    case Opcode::kNeg:
      return map1<T, T, Neg>;
    case Opcode::kAbs:
      return map1<T, T, Abs>;
    case Opcode::kMin:
      return pick2<T, T, Min>(tiles);
    case Opcode::kMax:
      return pick2<T, T, Max>(tiles);
    case Opcode::kFma:
      return pick3<T, Fma>(tiles);
    case Opcode::kSqrt:
      return map1<T, T, Sqrt>;
    case Opcode::kFloor:
      return map1<T, T, Floor>;
    case Opcode::kCeil:
      return map1<T, T, Ceil>;
    case Opcode::kTrunc:
      return map1<T, T, Trunc>;
    case Opcode::kRoundEven:
      return map1<T, T, RoundEven>;
    case Opcode::kExp:
      return map1<T, T, Exp>;
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

#endif
