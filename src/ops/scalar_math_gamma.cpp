// The logarithm of the gamma function and its derivatives.
//
// Between 1 and 3 and between 3 and 8 polynomials interpolated at Chebyshev nodes, with the zeros
// as factors, so that the error stays relative; above, Stirling's series (Abramowitz and
// Stegun 6.1.41, 6.3.18, 6.4.11). Below 1 one step of the recurrence, below 0 the reflection
// formulas (6.1.17, 6.3.7, 6.4.7).

#include <array>
#include <limits>

#include "scalar_math_internal.h"
#include "vkml/ops/scalar_math.h"

namespace vkml::ops {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kPi = 3.14159265358979323846;

/// From here on all numbers are integers.
double all_integers(const Expr& x) { return is_f32(x) ? 0x1p23 : 0x1p52; }

/// lgamma(x) for x in [1, 3) from x - 1 and t = x - 2, its zeros.
Expr lgamma_near_two(const Expr& x_minus_one, const Expr& t) {
  const Expr& x = t;
  const Expr p =
      is_f32(x)
          ? horner(t, {-9.059812985e-6, 1.923082368e-5, -9.279912816e-6, 2.048189497e-5,
                       -8.925200875e-5, 1.955396062e-4, -4.03461198e-4, 9.106399604e-4,
                       -0.002108514189, 0.004999449512, -0.01238416795, 0.0329649495, -0.1003173019,
                       0.4227843356})
          : horner(t,
                   {3.959289936498447365e-10, -8.152852870624973537e-10, -1.190174088799208193e-9,
                    2.444386936885691875e-9,  4.305220604221472684e-9,   -8.877116003704371256e-9,
                    3.821541524639342819e-10, -9.172949166290701858e-10, 2.48769131134549275e-8,
                    -5.188938133519283644e-8, 8.858800463711950728e-8,   -1.862472116441903742e-7,
                    4.049117629185663475e-7,  -8.55419530675200731e-7,   1.807724495251616314e-6,
                    -3.846537456575405536e-6, 8.222272528248185701e-6,   -1.766184954580968616e-5,
                    3.816887721705023564e-5,  -8.309510094797397581e-5,  1.825526401862672489e-4,
                    -4.057073998333552867e-4, 9.153769221939476801e-4,   -0.002108130833835378414,
                    0.004998641164698706252,  -0.01238419219337418378,   0.03296500062115581591,
                    -0.1003173016743539004,   0.4227843350984671394});
  return x_minus_one * t * p;
}

/// lgamma for x in [3, 8).
Expr lgamma_middle(const Expr& x) {
  const Expr t = (x - 5.5) * 0.4;
  return is_f32(x)
             ? horner(t, {1.371978495e-5, -3.354483628e-5, 3.853156423e-5, -1.004163187e-4,
                          3.247110503e-4, -8.83009974e-4, 0.002480105247, -0.007560024589,
                          0.02553828301, -0.1031488018, 0.6229449518, 4.027732889, 3.957813968})
             : horner(
                   t,
                   {1.978245819691220469e-10, -4.515802465186208827e-10, -3.028112063186383065e-10,
                    6.832158012620868427e-10, 2.464125439674435962e-9,   -5.664686095086719222e-9,
                    6.016575118609682469e-9,  -1.41043900688227001e-8,   4.124882322511195745e-8,
                    -9.697154107768809007e-8, 2.229645307658203706e-7,   -5.309470556542876165e-7,
                    1.27724878937088365e-6,   -3.091370999599941782e-6,  7.560947921951792668e-6,
                    -1.873639674736553033e-5, 4.717385949464099369e-5,   -1.211613664368133267e-4,
                    3.192344502507877429e-4,  -8.698740142833822174e-4,  0.002481750739117882804,
                    -0.007563969760418935023, 0.02553807401673450101,    -0.1031483008367198403,
                    0.6229449593425864501,    4.027732871454377774,      3.957813967618716294});
}

/// Stirling's series for x >= 8.
Expr lgamma_large(const Expr& x) {
  constexpr double kHalfLogTwoPi = 0.91893853320467274178;
  const Expr inverse = x.constant(1.0) / x;
  const Expr z = inverse * inverse;
  const Expr series =
      is_f32(x)
          ? horner(z, {7.80034719e-4, -0.002777698545, 0.08333333326})
          : horner(z, {-0.02085582083746311512, 0.006208136766229793359, -0.001914965912162906999,
                       8.417325268022404654e-4, -5.952380234291253412e-4, 7.93650793511728205e-4,
                       -0.002777777777777674757, 0.08333333333333333332});
  // (x - 1/2) (log x - 1) + rest: the two large terms of the usual form never meet.
  const Expr lead = (x - 0.5) * (log(x) - 1.0);
  return lead + fma(series, inverse, x.constant(kHalfLogTwoPi - 0.5));
}

/// digamma for x in [1, 3), with its zero as a factor in two parts.
Expr digamma_near_two(const Expr& x) {
  const double zero_high = is_f32(x) ? 1.46163213253021240234375 : 1.4616321449683622457627052;
  const double zero_low = is_f32(x) ? 1.24381499386893e-8 : 9.549995429965697e-17;
  const Expr t = x - 2.0;
  const Expr p =
      is_f32(x)
          ? horner(t, {-1.103630398e-4, 2.208564017e-4, -5.583611437e-5, 1.124102244e-4,
                       -7.581970007e-4, 0.001523954716, -0.002709205725, 0.005491503689,
                       -0.01134362793, 0.02345770308, -0.04955070391, 0.1089992588, -0.260738958,
                       0.7853075453})
          : horner(t, {9.518171739147028468e-9,  -1.90363572110584594e-8,  -3.093398948520762375e-8,
                       6.186795491568025653e-8,  1.005360839645693511e-7,  -2.010727081967024637e-7,
                       -2.91451192078853317e-8,  5.82859945860652723e-8,   4.290253291489251702e-7,
                       -8.580896982578118897e-7, 1.238910144497478986e-6,  -2.47817190303110235e-6,
                       5.25317289896146903e-6,   -1.050952606372600594e-5, 2.089802780670171876e-5,
                       -4.182492865527940832e-5, 8.377787676220672317e-5,  -1.678197803062956606e-4,
                       3.364327195465597094e-4,  -6.753127085218515056e-4, 0.001358142147687501455,
                       -0.002739572942932942358, 0.005552254174526186449,  -0.01133843255027775262,
                       0.0234473095976013922,    -0.0495510329177458289,   0.1089999170176281441,
                       -0.260738954683000873,    0.7853075386041052683});
  return ((x - zero_high) - zero_low) * p;
}

/// digamma for x in [3, 8).
Expr digamma_middle(const Expr& x) {
  const Expr t = (x - 5.5) * 0.4;
  return is_f32(x)
             ? horner(t, {-3.24986397e-5, 7.297813545e-5, -5.901338744e-5, 1.364060005e-4,
                          -4.511394158e-4, 0.001054928269, -0.002431134295, 0.005946133235,
                          -0.01512851399, 0.04086219997, -0.1237779403, 0.4983559214, 1.611093149})
             : horner(t,
                      {-1.043660097181004031e-9, 2.299030537434921728e-9,  1.979054647495326876e-9,
                       -4.353663891430053114e-9, -1.155682311232819287e-8, 2.548762425320762659e-8,
                       -1.910586829326245046e-8, 4.236025643895336655e-8,  -1.364373433680012366e-7,
                       3.025836777512433933e-7,  -6.391913876730435449e-7, 1.423362887268822107e-6,
                       -3.195244678273920768e-6, 7.154167133622800016e-6,  -1.607204422144800572e-5,
                       3.629209028337144748e-5,  -8.244081000035624416e-5, 1.886955253995569012e-4,
                       -4.361808277458446996e-4, 0.001021550230567106988,  -0.00243564724744578859,
                       0.005956201774550983309,  -0.01512793952052397308,  0.04086091842675508153,
                       -0.1237779610040689709,   0.4983559674740693385,    1.611093148581751124});
}

/// The asymptotic series for x >= 8.
Expr digamma_large(const Expr& x) {
  const Expr inverse = x.constant(1.0) / x;
  const Expr z = inverse * inverse;
  const Expr series =
      is_f32(x)
          ? horner(z, {0.003873588262, -0.008332783541, 0.08333333286})
          : horner(z, {-0.2994253706267350114, 0.08002337465397756689, -0.02105106090804774173,
                       0.007575459920369176074, -0.004166665501516724567, 0.003968253965999700647,
                       -0.008333333333331664172, 0.08333333333333333313});
  return log(x) - fma(series, z, inverse * 0.5);
}

}  // namespace

Expr lgamma(const Expr& x) {
  const Expr magnitude = abs(x);
  const Expr small = magnitude < 1.0;
  const Expr a = select(small, magnitude + 1.0, magnitude);
  // a - 1 and a - 2, without the rounding of a.
  const Expr below = magnitude - 1.0;
  const Expr near_two =
      lgamma_near_two(select(small, magnitude, below), select(small, below, magnitude - 2.0));
  const Expr core = select(a < 3.0, near_two, select(a < 8.0, lgamma_middle(a), lgamma_large(a)));
  // Below 0, with sin(pi x) / pi near x where x is small: its logarithm takes the recurrence's
  // place.
  const Expr sine = select(magnitude < nearly_linear(x), magnitude,
                           abs(sin_of_turns(magnitude * 0.5)) * (1.0 / kPi));
  const Expr reflected = select(small, sine, sine * magnitude);
  const Expr negative = x < 0.0;
  const Expr logarithm = log(select(negative, reflected, magnitude));
  const Expr value = select(negative, -logarithm - core, select(small, core - logarithm, core));
  const Expr pole = negative & (magnitude >= all_integers(x));
  return select(pole | is_inf(x), x.constant(kInfinity), value);
}

Expr digamma(const Expr& x) {
  const Expr magnitude = abs(x);
  const Expr small = magnitude < 1.0;
  const Expr a = select(small, magnitude + 1.0, magnitude);
  const Expr core =
      select(a < 3.0, digamma_near_two(a), select(a < 8.0, digamma_middle(a), digamma_large(a)));
  const Expr inverse = x.constant(1.0) / magnitude;
  const Expr positive = select(small, core - inverse, core);
  const Expr turns = magnitude * 0.5;
  const Expr sine = sin_of_turns(turns);
  const Expr linear = magnitude < nearly_linear(x);
  const Expr cotangent = select(linear, inverse, cos_of_turns(turns) / sine * kPi);
  const Expr reflected = select(small, core, core + inverse) + cotangent;
  const Expr pole = ((sine == 0.0) & ~linear) | (magnitude >= all_integers(x));
  const Expr negative = select(pole, x.constant(kNan), reflected);
  const Expr value = select(x < 0.0, negative, select(x == kInfinity, x, positive));
  return select(x == 0.0, x.constant(-1.0) / x, value);
}

Expr polygamma(int n, const Expr& x) {
  const bool f32 = is_f32(x);
  const Expr negative = x <= 0.0;
  const Expr start = select(negative, 1.0 - x, x);
  const auto power = [](const Expr& base, int exponent) {
    Expr result = base;
    for (int i = 1; i < exponent; ++i) result = result * base;
    return result;
  };
  double factorial = 1;  // n!
  for (int i = 2; i <= n; ++i) factorial *= i;

  // n! times the sum of 1 / (start + k)^(n + 1), smallest terms first, then the asymptotic series.
  const int steps = f32 ? 6 : 12;
  const Expr z = start + steps;
  const Expr inverse = x.constant(1.0) / z;
  const Expr square = inverse * inverse;
  constexpr std::array<double, 9> kBernoulli = {1.0 / 6,   -1.0 / 30,     1.0 / 42,
                                                -1.0 / 30, 5.0 / 66,      -691.0 / 2730,
                                                7.0 / 6,   -3617.0 / 510, 43867.0 / 798};
  const std::size_t terms = f32 ? 4 : kBernoulli.size();
  Expr series = x.constant(0);
  for (std::size_t i = terms; i > 0; --i) {
    // B_2k (2k + n - 1)! / (2k)!
    double coefficient = kBernoulli[i - 1];
    for (int j = 1; j < n; ++j) coefficient *= static_cast<double>(2 * i) + j;
    series = fma(series, square, x.constant(coefficient));
  }
  const Expr head = fma(inverse, x.constant(factorial / 2), x.constant(factorial / n));
  Expr sum = fma(series, square, head) * power(inverse, n);
  for (int k = steps - 1; k >= 0; --k) {
    const Expr term = x.constant(1.0) / (start + k);
    sum = fma(power(term, n + 1), x.constant(factorial), sum);
  }
  const Expr at_start = n % 2 != 0 ? sum : -sum;

  // Below 0, the n-th derivative of digamma(1 - x) - pi / tan(pi x).
  const Expr turns = x * 0.5;
  const Expr sine = sin_of_turns(turns);
  const Expr cosine = cos_of_turns(turns);
  const Expr cosecant = select(abs(x) < nearly_linear(x), 1.0 / x, x.constant(kPi) / sine);
  Expr reflected = power(cosecant, 2);
  if (n == 2) reflected = -2.0 * cosine * power(cosecant, 3);
  if (n == 3) reflected = fma(cosine * 4.0, cosine, x.constant(2.0)) * power(cosecant, 4);
  const Expr below = n % 2 != 0 ? reflected - at_start : reflected + at_start;
  const Expr pole = negative & (trunc(x) == x);
  return select(pole, x.constant(n % 2 != 0 ? kInfinity : -kInfinity),
                select(negative, below, at_start));
}

Expr trigamma(const Expr& x) { return polygamma(1, x); }
Expr tetragamma(const Expr& x) { return polygamma(2, x); }
Expr pentagamma(const Expr& x) { return polygamma(3, x); }

}  // namespace vkml::ops
