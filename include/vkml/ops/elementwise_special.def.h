// The special functions of the elementwise table (error function, normal distribution, gamma
// function, Bessel functions), whose columns elementwise.def.h describes; that file includes this
// one and defines its macros. No include guard.

VKML_UNARY(
    erf, "The error function.", kFloat, [](auto x) { return erf(x); },
    [](auto x, auto, auto g) { return g * 1.12837916709551257390 * exp(-(x * x)); },
    [](double x) { return std::erf(x); }, domain(-4, 4), 4)
VKML_UNARY(
    erfc, "1 - erf(x), accurate in the tail.", kFloat, [](auto x) { return erfc(x); },
    [](auto x, auto, auto g) { return g * -1.12837916709551257390 * exp(-(x * x)); },
    [](double x) { return std::erfc(x); }, domain(-4, 8), 16)
VKML_UNARY(
    erfcx, "exp(x^2) * erfc(x), without overflow above 0.", kFloat, [](auto x) { return erfcx(x); },
    [](auto x, auto y, auto g) {
      return unless_zero(g, g * (2.0 * x * y - 1.12837916709551257390));
    },
    [](double x) { return oracle::erfcx(x); }, domain(-4, 50), 8)
VKML_UNARY(
    erfinv, "The inverse of erf; infinite at -1 and 1.", kFloat, [](auto x) { return erfinv(x); },
    [](auto, auto y, auto g) { return unless_zero(g, g * 0.88622692545275801365 * exp(y * y)); },
    [](double x) { return oracle::erfinv(x); }, domain(-1, 1), 8, in_float32())
VKML_UNARY(
    ndtr, "The normal distribution function: erfc(-x / sqrt(2)) / 2.", kFloat,
    [](auto x) { return ndtr(x); },
    [](auto x, auto, auto g) { return g * 0.39894228040143267794 * exp(x * x * -0.5); },
    [](double x) { return static_cast<double>(std::erfc(x / -std::sqrt(2.0L)) / 2); },
    domain(-5, 10), 32)
VKML_UNARY(
    log_ndtr, "log(ndtr(x)), accurate in the tails.", kFloat, [](auto x) { return log_ndtr(x); },
    [](auto x, auto, auto g) {
      return g * (0.79788456080286535588 / erfcx(x * -0.70710678118654752440));
    },
    [](double x) { return oracle::log_ndtr(x); }, domain(-20, 5), 32)
VKML_UNARY(
    ndtri, "The inverse of ndtr; infinite at 0 and 1.", kFloat, [](auto x) { return ndtri(x); },
    [](auto, auto y, auto g) {
      return unless_zero(g, g * 2.50662827463100050242 * exp(y * y * 0.5));
    },
    [](double x) { return oracle::ndtri(x); }, domain(0, 1), 10)
VKML_UNARY(
    entr, "-x * log(x), 0 at 0, minus infinity below.", kFloat,
    [](auto x) {
      const auto below = select(x == 0.0, x.constant(0), x.constant(-HUGE_VAL));
      return select(x <= 0.0, below, x * -log(x));
    },
    [](auto x, auto, auto g) { return unless_zero(g, g * (-log(x) - 1.0)); },
    [](double x) {
      if (x <= 0) return x == 0 ? 0.0 : -HUGE_VAL;
      return -x * std::log(x);
    },
    domain(0, 10), 4)
VKML_UNARY(
    lgamma, "The logarithm of the absolute value of the gamma function.", kFloat,
    [](auto x) { return lgamma(x); },
    [](auto x, auto, auto g) { return unless_zero(g, g * digamma(x)); },
    [](double x) { return static_cast<double>(std::lgamma(static_cast<long double>(x))); },
    domain(0, 100), 10, alias("gammaln"))
VKML_UNARY(
    digamma, "The derivative of lgamma; NaN at negative integers.", kFloat,
    [](auto x) { return digamma(x); },
    [](auto x, auto, auto g) { return unless_zero(g, g * trigamma(x)); },
    [](double x) { return oracle::digamma(x); }, domain(0.01, 100), 10, alias("psi"))
VKML_UNARY(
    trigamma, "The derivative of digamma.", kFloat, [](auto x) { return trigamma(x); },
    [](auto x, auto, auto g) { return unless_zero(g, g * tetragamma(x)); },
    [](double x) { return oracle::polygamma(1, x); }, domain(0.01, 100), 8)
VKML_UNARY(
    tetragamma, "The second derivative of digamma.", kFloat, [](auto x) { return tetragamma(x); },
    [](auto x, auto, auto g) { return unless_zero(g, g * pentagamma(x)); },
    [](double x) { return oracle::polygamma(2, x); }, domain(0.01, 100), 10)
VKML_UNARY(
    pentagamma, "The third derivative of digamma.", kFloat, [](auto x) { return pentagamma(x); },
    [](auto x, auto, auto g) { return unless_zero(g, g * polygamma(4, x)); },
    [](double x) { return oracle::polygamma(3, x); }, domain(0.01, 100), 12)
VKML_UNARY(
    i0, "The modified Bessel function of the first kind, order 0.", kFloat,
    [](auto x) { return i0(x); }, [](auto x, auto, auto g) { return unless_zero(g, g * i1(x)); },
    [](double x) { return oracle::bessel_i(0, x); }, domain(-80, 80), 10)
VKML_UNARY(
    i1, "The modified Bessel function of the first kind, order 1.", kFloat,
    [](auto x) { return i1(x); },
    [](auto x, auto y, auto g) { return unless_zero(g, g * (i0(x) - bessel_ratio(x, y))); },
    [](double x) { return oracle::bessel_i(1, x); }, domain(-80, 80), 10)
VKML_UNARY(
    i0e, "exp(-|x|) * i0(x).", kFloat, [](auto x) { return i0e(x); },
    [](auto x, auto y, auto g) { return g * (i1e(x) - sign(x) * y); },
    [](double x) { return oracle::bessel_i_scaled(0, x); }, domain(-80, 80), 10)
VKML_UNARY(
    i1e, "exp(-|x|) * i1(x).", kFloat, [](auto x) { return i1e(x); },
    [](auto x, auto y, auto g) {
      return unless_zero(g, g * (i0e(x) - sign(x) * y - scaled_bessel_ratio(x, y)));
    },
    [](double x) { return oracle::bessel_i_scaled(1, x); }, domain(-80, 80), 10)
