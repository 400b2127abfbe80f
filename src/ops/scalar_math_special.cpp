// The inverse error function, modified Bessel functions, sinc. The polynomials are interpolated at
// Chebyshev nodes, in variables that run over [-1, 1].

#include <limits>

#include "scalar_math_internal.h"
#include "vkml/ops/scalar_math.h"

namespace vkml::ops {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// sum t^k / (k! (k + order)!) for t in [0, 16]: all terms are positive.
Expr bessel_series(const Expr& t, int order) {
  const int terms = is_f32(t) ? 16 : 25;
  Expr sum = t.constant(1.0);
  // Nested: 1 + t / (1 (1 + order)) (1 + t / (2 (2 + order)) (...)).
  for (int k = terms; k > 0; --k) {
    sum = fma(sum, t * (1.0 / (k * (k + order))), t.constant(1.0));
  }
  return sum;
}

/// exp(a) times a decaying factor, without overflow before the result.
Expr with_growth(const Expr& a, const Expr& decaying) {
  const Expr root = exp(a * 0.5);
  return root * decaying * root;
}

/// exp(-a) times the Bessel function of order 0, for a >= 8.
Expr i0_tail(const Expr& a) {
  const Expr t = a.constant(16.0) / a - 1.0;
  const Expr p =
      is_f32(a)
          ? horner(t, {3.213434568e-9, 3.173468265e-8, 1.022295795e-7, 3.071251795e-7,
                       1.480166868e-6, 1.1139924e-5, 1.362163481e-4, 0.003360552227, 0.4021765094})
          : horner(t,
                   {4.655655751294525072e-11,  1.556423962829590991e-11, -3.635360390952646405e-10,
                    -1.174699111055132277e-10, 1.329193888414310441e-9,  4.199121820946336318e-10,
                    -3.079178799648033412e-9,  -9.9618270059711642e-10,  5.21598723858263554e-9,
                    1.951843120514625286e-9,   -7.104642970188302178e-9, -3.79924102014061568e-9,
                    8.006764881281121797e-9,   7.687473295440411654e-9,  -5.602221178324699969e-9,
                    -1.345060831988388178e-8,  -6.702332561989436684e-9, 7.563107589679047291e-9,
                    2.154169960363204246e-8,   3.932479351712345468e-8,  8.872278303607727752e-8,
                    2.973599321647147516e-7,   1.483847539138346698e-6,  1.114303378855908686e-5,
                    1.362160743924085525e-4,   0.003360551983667884284,  0.4021765094450080758});
  return p / sqrt(a);
}

/// The same of order 1.
Expr i1_tail(const Expr& a) {
  const Expr t = a.constant(16.0) / a - 1.0;
  const Expr p =
      is_f32(a)
          ? horner(t, {-4.236897807e-9, -3.590463833e-8, -1.142353416e-7, -3.581953648e-7,
                       -1.831021238e-6, -1.503539036e-5, -2.192360534e-4, -0.009749577441,
                       0.389398459})
          : horner(t,
                   {-4.84823865336340384e-11, -1.455381905418481514e-11, 3.784510012514865837e-10,
                    1.094088404272105597e-10, -1.383438970863702127e-9,  -3.898671094463254234e-10,
                    3.205558634623623715e-9,  9.265252428334351032e-10,  -5.438072168110141719e-9,
                    -1.842354234931443928e-9, 7.441519822394391166e-9,   3.700376201299487467e-9,
                    -8.488549054437278149e-9, -7.768471997806944997e-9,  6.18008005025296509e-9,
                    1.407320140734714438e-8,  6.687257309165880669e-9,   -8.435630024967513091e-9,
                    -2.336697227282622867e-8, -4.312819645562664345e-8,  -1.000134929730232986e-7,
                    -3.483856445811427926e-7, -1.834910104896551765e-6,  -1.503854719835120218e-5,
                    -2.192357638343872792e-4, -0.009749577193235757423,  0.38939845902587233});
  return p / sqrt(a);
}

}  // namespace

Expr erfinv(const Expr& x) {
  // erfinv(x) / x is smooth in w = -log(1 - x^2), and in sqrt(w) towards the ends (Giles,
  // Approximating the erfinv function, 2011).
  const Expr square = x * x;
  const Expr near_zero = square < 0.25;
  const Expr w = -select(near_zero, log1p(-square), log((1.0 - x) * (x + 1.0)));
  const Expr root = sqrt(w);
  Expr ratio = x;
  if (is_f32(x)) {
    const Expr centre =
        horner(fma(w, x.constant(0.4), x.constant(-1.0)),
               {-3.407259358e-5, 3.56078601e-5, 2.857246997e-4, -8.456995282e-4, -4.855878603e-4,
                0.0085292729, -0.01957384987, -0.02610870547, 0.6166006976, 1.50140936});
    const Expr tail = horner((root - 3.15) * (1.0 / 0.95),
                             {-4.307120825e-6, -1.789132548e-5, 8.41202718e-5, -5.925203452e-5,
                              -2.436988556e-4, 8.933151902e-4, -0.001806054439, 0.002841175955,
                              -0.00423287131, 0.006014595678, 0.953858311, 2.983417438});
    ratio = select(w < 5.0, centre, tail);
  } else {
    const Expr centre =
        horner(fma(w, x.constant(0.32), x.constant(-1.0)),
               {7.801712199036252148e-10, -8.577966939639941468e-11, -8.627191009014393973e-9,
                9.072075947892909342e-9,  3.931511157646558331e-8,   -1.051499071337143651e-7,
                -1.041269284115963582e-8, 5.456420572209781581e-7,   -1.059118809818753117e-6,
                -6.876551807254939857e-7, 7.129939743146950264e-6,   -1.12556539839694204e-5,
                -1.502766577311719381e-5, 9.336692787624058353e-5,   -1.168888508125076008e-4,
                -2.643935864664605687e-4, 0.001232485570299421454,   -0.001271692276988511447,
                -0.004137314377547894925, 0.01780836181875690242,    -0.02260444745344473227,
                -0.05892256710378759652,  0.7504943200799635134,     1.653654562683102746});
    const Expr middle =
        horner((root - 3.25) * (4.0 / 3),
               {-3.428334493294190272e-12, 2.410988140506668763e-11, -4.667090871130896432e-11,
                -1.166848824288492302e-10, 9.484146288570452777e-10, -2.463125231038778979e-9,
                -3.176286061043322192e-10, 2.640207676146399028e-8,  -9.472931730402785517e-8,
                9.28912310653485734e-8,    5.264816664010631311e-7,  -2.664792901904845626e-6,
                5.127310799854953766e-6,   2.405864553961797355e-6,  -4.739182621090278252e-5,
                1.696650220139556309e-4,   -4.006356984658500835e-4, 7.883078513037061541e-4,
                -0.001582541089402075434,  0.003021139436374795873,  0.7539442257706239652,
                3.083885610492220676});
    const Expr tail =
        horner((root - 5.125) * (8.0 / 9),
               {7.387745597264996861e-13, 4.813809879169910596e-13,  -1.286911840865773815e-11,
                3.246244290441253962e-11, -3.101004919116342985e-11, -5.200077665952391242e-11,
                4.074837766912651173e-10, -1.463062100915523929e-9,  3.834085429417467502e-9,
                -8.161305339288937142e-9, 1.498681702965262314e-8,   -2.548486456100588416e-8,
                4.701707795926949503e-8,  -1.199473110828519062e-7,  4.34529283101225791e-7,
                -1.815980721772209568e-6, 7.597413880059470534e-6,   -2.989552983548031627e-5,
                1.036220853950655175e-4,  -2.56202312329809707e-4,   -2.690712468698967351e-4,
                1.13653831048724549,      4.976191390016299913});
    ratio = select(w < 6.25, centre, select(w < 16.0, middle, tail));
  }
  return select(abs(x) == 1.0, x * kInfinity, x * ratio);
}

Expr i0(const Expr& x) {
  const Expr a = abs(x);
  const Expr large = select(is_inf(x), a, with_growth(a, i0_tail(a)));
  return select(a < 8.0, bessel_series(x * x * 0.25, 0), large);
}

Expr i1(const Expr& x) {
  const Expr a = abs(x);
  const Expr large = select(is_inf(x), x, copysign(with_growth(a, i1_tail(a)), x));
  return select(a < 8.0, x * 0.5 * bessel_series(x * x * 0.25, 1), large);
}

Expr i0e(const Expr& x) {
  const Expr a = abs(x);
  return select(a < 8.0, exp(-a) * bessel_series(x * x * 0.25, 0), i0_tail(a));
}

Expr i1e(const Expr& x) {
  const Expr a = abs(x);
  const Expr small = exp(-a) * (x * 0.5) * bessel_series(x * x * 0.25, 1);
  return select(a < 8.0, small, copysign(i1_tail(a), x));
}

Expr sinc(const Expr& x) {
  constexpr double kPi = 3.14159265358979323846;
  const Expr value = sin_of_turns(x * 0.5) / (x * kPi);
  // Large numbers are integers.
  const Expr integral = (abs(x) >= (is_f32(x) ? 0x1p23 : 0x1p52)) & ~is_inf(x);
  return select(abs(x) < nearly_linear(x), x.constant(1.0),
                select(integral, x.constant(0.0), value));
}

}  // namespace vkml::ops
