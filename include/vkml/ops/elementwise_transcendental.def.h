// Rows of the elementwise table: exponentials, logarithms, trigonometric and hyperbolic functions.
// Columns and use are described in elementwise.def.h, which includes this file.

// Exponentials and logarithms
VKML_UNARY(
    exp, "e to the power x.", kFloat, [](auto x) { return exp(x); },
    [](auto, auto y, auto g) { return unless_zero(g, g * y); },
    [](double x) { return std::exp(x); }, domain(-80, 80), 2, in_float32())
VKML_UNARY(
    exp2, "2 to the power x.", kFloat, [](auto x) { return exp2(x); },
    [](auto, auto y, auto g) { return unless_zero(g, g * y * 0.69314718055994530942); },
    [](double x) { return std::exp2(x); }, domain(-100, 100), 2)
VKML_BINARY(
    ldexp, "input * 2^other, exact for integers, without overflow before the result.", kFloat,
    [](auto a, auto b) { return ldexp(a, b); },
    [](auto, auto b, auto y, auto g) {
      return std::pair(unless_zero(g, g * exp2(b)), unless_zero(g, g * y * 0.69314718055994530942));
    },
    [](double a, double b) {
      return static_cast<double>(a * std::exp2(static_cast<long double>(b)));
    },
    domain(-10, 10), 4)
VKML_UNARY(
    expm1, "exp(x) - 1, accurate near 0.", kFloat, [](auto x) { return expm1(x); },
    [](auto, auto y, auto g) { return unless_zero(g, g * (y + 1.0)); },
    [](double x) { return std::expm1(x); }, domain(-80, 80), 4, in_float32())
VKML_UNARY(
    log, "The natural logarithm.", kFloat, [](auto x) { return log(x); },
    [](auto x, auto, auto g) { return unless_zero(g, g / x); },
    [](double x) { return std::log(x); }, domain(1e-3, 100), 3, in_float32())
VKML_UNARY(
    log2, "The logarithm to base 2.", kFloat, [](auto x) { return log2(x); },
    [](auto x, auto, auto g) { return unless_zero(g, g * 1.4426950408889634074 / x); },
    [](double x) { return std::log2(x); }, domain(1e-3, 100), 4, in_float32())
VKML_UNARY(
    log10, "The logarithm to base 10.", kFloat, [](auto x) { return log10(x); },
    [](auto x, auto, auto g) { return unless_zero(g, g * 0.43429448190325182765 / x); },
    [](double x) { return std::log10(x); }, domain(1e-3, 100), 4, in_float32())
VKML_UNARY(
    log1p, "log(1 + x), accurate near 0.", kFloat, [](auto x) { return log1p(x); },
    [](auto x, auto, auto g) { return unless_zero(g, g / (x + 1.0)); },
    [](double x) { return std::log1p(x); }, domain(-0.9, 100), 4, in_float32())
VKML_BINARY(
    logaddexp, "log(exp(a) + exp(b)), without overflow.", kFloat,
    [](auto a, auto b) { return logaddexp(a, b); },
    [](auto a, auto b, auto, auto g) {
      // Of two equal infinities, whose difference is NaN, both get half.
      auto difference = a - b;
      auto share = sigmoid(where_else_zero(logical_or(ne(a, b), eq(difference, 0.0)), difference));
      return std::pair(g * share, g * (1.0 - share));
    },
    [](double a, double b) { return oracle::logaddexp(a, b); }, domain(0, 80), 16)
VKML_BINARY(
    logaddexp2, "log2(2^a + 2^b), without overflow.", kFloat,
    [](auto a, auto b) { return logaddexp2(a, b); },
    [](auto a, auto b, auto, auto g) {
      auto difference = (a - b) * 0.69314718055994530942;
      auto share = sigmoid(where_else_zero(logical_or(ne(a, b), eq(difference, 0.0)), difference));
      return std::pair(g * share, g * (1.0 - share));
    },
    [](double a, double b) {
      const double ln2 = 0.69314718055994530942;
      return std::isinf(a) || std::isinf(b)
                 ? oracle::maximum(a, b)
                 : oracle::maximum(a, b) + std::log1p(std::exp2(-std::fabs(a - b))) / ln2;
    },
    domain(0, 80), 16)
VKML_BINARY(
    xlogy, "a * log(b), 0 where a is 0.", kFloat,
    [](auto a, auto b) { return select((a == 0.0) & ~is_nan(b), a.constant(0), a * log(b)); },
    [](auto a, auto b, auto, auto g) {
      auto undefined = logical_and(eq(a, 0.0), b <= 0.0);
      return std::pair(where_else_zero(logical_not(undefined), unless_zero(g, g * log(b))),
                       unless_zero(a, unless_zero(g, g * a / b)));
    },
    [](double a, double b) { return a == 0 && b == b ? 0 : a * std::log(b); }, domain(0.001, 10), 4)
VKML_BINARY(
    xlog1py, "a * log(1 + b), 0 where a is 0.", kFloat,
    [](auto a, auto b) { return select((a == 0.0) & ~is_nan(b), a.constant(0), a * log1p(b)); },
    [](auto a, auto b, auto, auto g) {
      auto undefined = logical_and(eq(a, 0.0), b <= -1.0);
      return std::pair(where_else_zero(logical_not(undefined), unless_zero(g, g * log1p(b))),
                       unless_zero(a, unless_zero(g, g * a / (b + 1.0))));
    },
    [](double a, double b) { return a == 0 && b == b ? 0 : a * std::log1p(b); }, domain(-0.9, 10),
    5)
VKML_UNARY(
    logit, "log(x / (1 - x)), the inverse of sigmoid.", kFloat, [](auto x) { return logit(x); },
    [](auto x, auto, auto g) { return unless_zero(g, g / (x * (1.0 - x))); },
    [](double x) {
      if (std::fabs(x - 0.5) < 0.25) return 2 * std::atanh(2 * x - 1);
      return std::log(x) - std::log1p(-x);
    },
    domain(0, 1), 6)

// Trigonometric and hyperbolic functions
VKML_UNARY(
    sin, "The sine of x radians, of any size.", kFloat, [](auto x) { return sin(x); },
    [](auto x, auto, auto g) { return g * cos(x); }, [](double x) { return oracle::sin(x); },
    domain(-100, 100), 2)
VKML_UNARY(
    cos, "The cosine of x radians, of any size.", kFloat, [](auto x) { return cos(x); },
    [](auto x, auto, auto g) { return -g * sin(x); }, [](double x) { return oracle::cos(x); },
    domain(-100, 100), 2)
VKML_UNARY(
    tan, "The tangent of x radians, of any size.", kFloat, [](auto x) { return tan(x); },
    [](auto, auto y, auto g) { return unless_zero(g, g * (y * y + 1.0)); },
    [](double x) { return oracle::tan(x); }, domain(-10, 10), 5, in_float32())
VKML_UNARY(
    sinc, "sin(pi x) / (pi x), 1 at 0.", kFloat, [](auto x) { return sinc(x); },
    [](auto x, auto y, auto g) {
      // (cos(pi x) - y) / x cancels near 0; there the series of the derivative.
      auto z = x * x;
      auto series = x * ((((((((-1.31484812799919946e-7 * z + 4.04994784661924424e-6) * z -
                               0.0000976622312631893266) *
                                  z +
                              0.00178114551637285204) *
                                 z -
                             0.0234608103545582364) *
                                z +
                            0.209182782541238404) *
                               z -
                           1.14451094473250528) *
                              z +
                          3.24696970113341457) *
                             z -
                         3.28986813369645287);
      auto rest = (cos(x * 3.14159265358979323846) - y) / x;
      return g * where(abs(x) < 0.5, series, rest);
    },
    [](double x) { return oracle::sinc(x); }, domain(-10, 10), 4)
VKML_UNARY(
    asin, "The angle in [-pi/2, pi/2] whose sine is x.", kFloat, [](auto x) { return asin(x); },
    [](auto x, auto, auto g) { return unless_zero(g, g * rsqrt((1.0 - x) * (x + 1.0))); },
    [](double x) { return std::asin(x); }, domain(-1, 1), 4, alias("arcsin"), in_float32())
VKML_UNARY(
    acos, "The angle in [0, pi] whose cosine is x.", kFloat, [](auto x) { return acos(x); },
    [](auto x, auto, auto g) { return unless_zero(g, -g * rsqrt((1.0 - x) * (x + 1.0))); },
    [](double x) { return std::acos(x); }, domain(-1, 1), 4, alias("arccos"), in_float32())
VKML_UNARY(
    atan, "The angle in (-pi/2, pi/2) whose tangent is x.", kFloat, [](auto x) { return atan(x); },
    [](auto x, auto, auto g) { return g / (x * x + 1.0); }, [](double x) { return std::atan(x); },
    domain(-10, 10), 4, alias("arctan"))
VKML_BINARY(
    atan2, "The angle in [-pi, pi] of the point (b, a); gradient 0 at (0, 0).", kFloat,
    [](auto a, auto b) { return atan2(a, b); },
    [](auto a, auto b, auto, auto g) {
      auto radius = hypot(a, b);
      auto inverse = where_else_zero(ne(radius, 0.0), 1.0 / radius);
      return std::pair(g * (b * inverse) * inverse, -g * (a * inverse) * inverse);
    },
    [](double a, double b) { return std::atan2(a, b); }, domain(-10, 10), 6, alias("arctan2"))
VKML_UNARY(
    deg2rad, "x degrees in radians.", kFloat, [](auto x) { return x * 0.017453292519943295769; },
    [](auto, auto, auto g) { return g * 0.017453292519943295769; },
    [](double x) { return static_cast<double>(x * 0.017453292519943295769237L); },
    domain(-360, 360), 1)
VKML_UNARY(
    rad2deg, "x radians in degrees.", kFloat, [](auto x) { return x * 57.295779513082320877; },
    [](auto, auto, auto g) { return g * 57.295779513082320877; },
    [](double x) { return static_cast<double>(x * 57.295779513082320876798L); }, domain(-10, 10), 1)
VKML_UNARY(
    sinh, "The hyperbolic sine.", kFloat, [](auto x) { return sinh(x); },
    [](auto x, auto, auto g) { return unless_zero(g, g * cosh(x)); },
    [](double x) { return std::sinh(x); }, domain(-20, 20), 6, in_float32())
VKML_UNARY(
    cosh, "The hyperbolic cosine.", kFloat, [](auto x) { return cosh(x); },
    [](auto x, auto, auto g) { return unless_zero(g, g * sinh(x)); },
    [](double x) { return std::cosh(x); }, domain(-20, 20), 6, in_float32())
VKML_UNARY(
    tanh, "The hyperbolic tangent.", kFloat, [](auto x) { return tanh(x); },
    [](auto, auto y, auto g) { return g * (1.0 - y * y); }, [](double x) { return std::tanh(x); },
    domain(-10, 10), 5)
VKML_UNARY(
    asinh, "The inverse of sinh.", kFloat, [](auto x) { return asinh(x); },
    [](auto x, auto, auto g) { return g / hypot(x, 1.0); }, [](double x) { return std::asinh(x); },
    domain(-100, 100), 6, alias("arcsinh"))
VKML_UNARY(
    acosh, "The inverse of cosh; NaN below 1.", kFloat, [](auto x) { return acosh(x); },
    [](auto x, auto, auto g) { return unless_zero(g, g * rsqrt(x - 1.0) * rsqrt(x + 1.0)); },
    [](double x) { return std::acosh(x); }, domain(1, 100), 6, alias("arccosh"))
VKML_UNARY(
    atanh, "The inverse of tanh; infinite at -1 and 1.", kFloat, [](auto x) { return atanh(x); },
    [](auto x, auto, auto g) { return unless_zero(g, g / ((1.0 - x) * (x + 1.0))); },
    [](double x) { return std::atanh(x); }, domain(-1, 1), 6, alias("arctanh"))
