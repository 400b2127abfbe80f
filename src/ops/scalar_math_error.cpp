// The error function and the normal distribution.

#include <limits>

#include "scalar_math_internal.h"
#include "vkml/ops/scalar_math.h"

namespace vkml::ops {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kHalfRoot = 0.70710678118654752440;

/// exp(x^2) erfc(x) for x >= 0: a polynomial in (x - k) / (x + k) over 1 + 2 x.
Expr erfcx_of_positive(const Expr& x) {
  constexpr double kCentre = 3.75;
  const Expr t = (x - kCentre) / (x + kCentre);
  const Expr p =
      is_f32(x)
          ? horner(t, {0.00002363482006846268514, -0.0002240520495195495321,
                       0.0003253884645535187017, 0.001675734250806428339, -0.0097646904977876311,
                       0.0284094303914791094, -0.05868825204940161157, 0.09229069167207875793,
                       -0.1088045645486098416, 0.08227843390475284386, 0.003585438016476337048,
                       -0.1402406590178899306, 1.237512630837827582})
          : horner(
                t,
                {-7.666209795998097555e-11,  -3.758730803562325542e-11, 9.234867707529155134e-10,
                 5.460657473630791821e-10,   -6.606829477916605107e-9,  -4.390251943140879504e-9,
                 4.107398937332565116e-8,    2.429131177189471249e-8,   -2.612582098890152743e-7,
                 -5.826439766695698605e-8,   1.753524629869782443e-6,   -9.728484952656483292e-7,
                 -0.00001144508983794941005, 0.00002238391153191697539, 0.00005164942174523646538,
                 -0.0002901539791322485877,  0.0002937135915934920113,  0.001755625832389553402,
                 -0.009746579547145437495,   0.02836227742151966918,    -0.05869339859058928991,
                 0.09230432116019804538,     -0.1088039301417055516,    0.08227673849015103356,
                 0.003585415485463655858,    -0.1402405985855470185,    1.237512630837827582});
  return p * 0.5 / (x + 0.5);  // 1 + 2 x would overflow
}

/// erf's Taylor series for |x| < 1: 2 / sqrt(pi) * sum (-1)^n x^(2n+1) / (n! (2n+1)).
Expr erf_series(const Expr& x) {
  constexpr double kScale = 1.12837916709551257390;
  const Expr z = x * x;
  const Expr series =
      is_f32(x) ? horner(z, {-1.0 / 918086400.0, 1.0 / 76204800.0, -1.0 / 6894720.0, 1.0 / 685440.0,
                             -1.0 / 75600.0, 1.0 / 9360.0, -1.0 / 1320.0, 1.0 / 216.0, -1.0 / 42.0,
                             1.0 / 10.0, -1.0 / 3.0})
                : horner(z, {-1.0 / 4744158915944448000.0, 1.0 / 236887827111936000.0,
                             -1.0 / 12449059983360000.0, 1.0 / 690452066304000.0,
                             -1.0 / 40537905408000.0, 1.0 / 2528170444800.0, -1.0 / 168129561600.0,
                             1.0 / 11975040000.0, -1.0 / 918086400.0, 1.0 / 76204800.0,
                             -1.0 / 6894720.0, 1.0 / 685440.0, -1.0 / 75600.0, 1.0 / 9360.0,
                             -1.0 / 1320.0, 1.0 / 216.0, -1.0 / 42.0, 1.0 / 10.0, -1.0 / 3.0});
  const Expr scaled = x * kScale;
  return fma(series * z, scaled, scaled);
}

/// erfc(x) for x >= 0, relatively accurate into the tail.
Expr erfc_tail(const Expr& x) {
  const Expr square = x * x;
  const Expr error = fma(x, x, -square);
  const Expr e = exp(-square);
  const Expr value = fma(-e, error, e) * erfcx_of_positive(x);
  const double vanishes = is_f32(x) ? 10.6 : 27.3;
  return select(x > vanishes, x.constant(0.0), value);  // a NaN runs through
}

}  // namespace

Expr erf(const Expr& x) {
  const Expr magnitude = abs(x);
  const Expr outer = x.constant(1.0) - erfc_tail(magnitude);
  return select(magnitude < 1.0, erf_series(x), select(x < 0.0, -outer, outer));
}

Expr erfc(const Expr& x) {
  const Expr tail = erfc_tail(abs(x));
  const Expr outer = select(x < 0.0, x.constant(2.0) - tail, tail);
  return select(abs(x) < 0.5, x.constant(1.0) - erf_series(x), outer);
}

Expr erfcx(const Expr& x) {
  const Expr tail = select(is_inf(x), x.constant(0), erfcx_of_positive(abs(x)));
  // Below 0 it grows as 2 exp(x^2), whose argument must not lose its last bits.
  const Expr square = x * x;
  const Expr error = fma(x, x, -square);
  const Expr growth = exp(square) * 2.0 * (error + 1.0);
  const double overflows = is_f32(x) ? -9.5 : -27.0;
  const Expr below = select(x < overflows, x.constant(kInfinity), growth - tail);
  return select(x < 0.0, below, tail);
}

Expr ndtr(const Expr& x) { return erfc(x * -kHalfRoot) * 0.5; }

Expr log_ndtr(const Expr& x) {
  const Expr t = x * -kHalfRoot;
  const Expr below = log(erfcx(max_number(t.constant(0.5), t)) * 0.5) - x * x * 0.5;
  const Expr above = log1p(erfc(-t) * -0.5);
  return select(x < -1.0, below, above);
}

Expr ndtri(const Expr& p) {
  constexpr double kRoot = 1.41421356237309504880;
  constexpr double kRootHalfPi = 1.25331413731550025121;
  const Expr offset = fma(p, p.constant(2.0), p.constant(-1.0));
  const Expr centre = erfinv(offset) * kRoot;
  // Towards the ends from a start that is 4.5e-4 off (Abramowitz and Stegun 26.2.23), by Newton's
  // steps on the logarithm of the upper tail, whose curvature is small.
  const Expr share = select(p < 0.5, p, 1.0 - p);
  const Expr logarithm = log(share);
  const Expr t = sqrt(logarithm * -2.0);
  Expr y = t - horner(t, {0.010328, 0.802853, 2.515517}) /
                   horner(t, {0.001308, 0.189269, 1.432788, 1.0});
  const int steps = is_f32(p) ? 2 : 3;
  for (int step = 0; step < steps; ++step) {
    const Expr scaled = erfcx_of_positive(y * kHalfRoot);
    const Expr excess = log(scaled * 0.5) - y * y * 0.5 - logarithm;
    y = fma(excess, scaled * kRootHalfPi, y);
  }
  const Expr tail = select(share == 0.0, p.constant(kInfinity), y);
  return select(abs(offset) < 0.5, centre, select(p < 0.5, -tail, tail));
}

}  // namespace vkml::ops
