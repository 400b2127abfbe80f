// The elementwise table: the only place that names an elementwise operator. Adding one is adding a
// row; its C++ and Python functions, method, CPU and SPIR-V code, tests and documentation follow.
//
// Columns: name; documentation; dtype rule; scalar program (called with ops::Expr); gradient
// (called with graph::Value: operands, result y, gradient g; one value, pair or triple; NONE if the
// operator is piecewise constant); independent reference in double (generic where integers have a
// meaning of their own); domain of the tests; largest error in units of the last place.
//
// A gradient that can be infinite or NaN is unless_zero(g, ...): where no gradient arrives, as on a
// branch of where() that is not taken, none leaves.
//
// Included several times with VKML_UNARY, VKML_BINARY and VKML_TERNARY defined; no include guard.

// Arithmetic
VKML_BINARY(
    add, "a + b.", kSame, [](auto a, auto b) { return a + b; },
    [](auto, auto, auto, auto g) { return std::pair(g, g); },
    [](auto a, auto b) { return oracle::add(a, b); }, domain(-10, 10), 0.5)
VKML_BINARY(
    sub, "a - b.", kSame, [](auto a, auto b) { return a - b; },
    [](auto, auto, auto, auto g) { return std::pair(g, -g); },
    [](auto a, auto b) { return oracle::sub(a, b); }, domain(-10, 10), 0.5)
VKML_BINARY(
    mul, "a * b.", kSame, [](auto a, auto b) { return a * b; },
    [](auto a, auto b, auto, auto g) { return std::pair(g * b, g * a); },
    [](auto a, auto b) { return oracle::mul(a, b); }, domain(-10, 10), 0.5)
VKML_BINARY(
    div, "a / b; integers give floats.", kFloat, [](auto a, auto b) { return a / b; },
    [](auto, auto b, auto y, auto g) {
      return std::pair(unless_zero(g, g / b), unless_zero(g, -g * y / b));
    },
    [](double a, double b) { return a / b; }, domain(-10, 10), 2.5)
VKML_BINARY(
    floor_divide, "a / b rounded toward minus infinity; integers: x // 0 = 0.", kSame,
    [](auto a, auto b) { return floor_divide(a, b); }, NONE,
    [](auto a, auto b) { return oracle::floor_divide(a, b); }, domain(-10, 10), 0.5)
VKML_BINARY(
    remainder,
    "a - b * floor_divide(a, b), with the sign of b; integers: x % 0 = 0. Float quotients past "
    "2^46 "
    "(float64: 2^104) leave 0.",
    kSame, [](auto a, auto b) { return remainder(a, b); },
    [](auto a, auto b, auto, auto g) { return std::pair(g, -g * floor_divide(a, b)); },
    [](auto a, auto b) { return oracle::remainder(a, b); }, domain(-10, 10), 1)
VKML_BINARY(
    pow, "a to the power b; integers wrap, their negative powers truncate.", kSame,
    [](auto a, auto b) { return pow(a, b); },
    [](auto a, auto b, auto y, auto g) {
      // b = 0 has gradient 0 in a even at a = 0; a = 0 with b >= 0 has gradient 0 in b.
      auto in_a = where_else_zero(ne(b, 0.0), g * b * pow(a, b - 1.0));
      auto at_zero = logical_and(eq(a, 0.0), b >= 0.0);
      auto in_b = where_else_zero(logical_not(at_zero), g * y * log(a));
      return std::pair(unless_zero(g, in_a), unless_zero(g, in_b));
    },
    [](auto a, auto b) { return oracle::pow(a, b); }, domain(0.1, 5), 4)
VKML_BINARY(
    maximum, "The larger of a and b; NaN if either is NaN. Ties share the gradient.", kSame,
    [](auto a, auto b) { return maximum(a, b); },
    [](auto a, auto b, auto, auto g) {
      auto tie = where_else_zero(eq(a, b), g * 0.5);
      return std::pair(where_else_zero(gt(a, b), g) + tie, where_else_zero(lt(a, b), g) + tie);
    },
    [](auto a, auto b) { return oracle::maximum(a, b); }, domain(-10, 10), 0)
VKML_BINARY(
    minimum, "The smaller of a and b; NaN if either is NaN. Ties share the gradient.", kSame,
    [](auto a, auto b) { return minimum(a, b); },
    [](auto a, auto b, auto, auto g) {
      auto tie = where_else_zero(eq(a, b), g * 0.5);
      return std::pair(where_else_zero(lt(a, b), g) + tie, where_else_zero(gt(a, b), g) + tie);
    },
    [](auto a, auto b) { return oracle::minimum(a, b); }, domain(-10, 10), 0)
VKML_UNARY(
    neg, "-x.", kSame, [](auto x) { return -x; }, [](auto, auto, auto g) { return -g; },
    [](auto x) { return oracle::neg(x); }, domain(-10, 10), 0)
VKML_UNARY(
    abs, "|x|; gradient 0 at 0.", kSame, [](auto x) { return abs(x); },
    [](auto x, auto, auto g) { return g * sign(x); }, [](auto x) { return oracle::abs(x); },
    domain(-10, 10), 0)
VKML_UNARY(
    sign, "-1, 0 or 1; NaN stays.", kSame, [](auto x) { return sign(x); }, NONE,
    [](auto x) { return oracle::sign(x); }, domain(-10, 10), 0)
VKML_UNARY(
    reciprocal, "1 / x.", kFloat, [](auto x) { return 1.0 / x; },
    [](auto, auto y, auto g) { return unless_zero(g, -g * y * y); }, [](double x) { return 1 / x; },
    domain(-10, 10), 2.5)
VKML_UNARY(
    square, "x * x.", kSame, [](auto x) { return x * x; },
    [](auto x, auto, auto g) { return g * (2.0 * x); }, [](auto x) { return oracle::mul(x, x); },
    domain(-10, 10), 0.5)
VKML_UNARY(
    sqrt, "The square root; NaN below 0.", kFloat, [](auto x) { return sqrt(x); },
    [](auto, auto y, auto g) { return unless_zero(g, g * 0.5 / y); },
    [](double x) { return std::sqrt(x); }, domain(0, 100), 2.5)
VKML_UNARY(
    rsqrt, "1 / sqrt(x).", kFloat, [](auto x) { return 1.0 / sqrt(x); },
    [](auto x, auto y, auto g) { return unless_zero(g, g * -0.5 * y / x); },
    [](double x) { return 1 / std::sqrt(x); }, domain(0.01, 100), 4)

// Exponentials and logarithms
VKML_UNARY(
    exp, "e to the power x.", kFloat, [](auto x) { return exp(x); },
    [](auto, auto y, auto g) { return unless_zero(g, g * y); },
    [](double x) { return std::exp(x); }, domain(-80, 80), 2)
VKML_UNARY(
    exp2, "2 to the power x.", kFloat, [](auto x) { return exp2(x); },
    [](auto, auto y, auto g) { return unless_zero(g, g * y * 0.69314718055994530942); },
    [](double x) { return std::exp2(x); }, domain(-100, 100), 2)
VKML_UNARY(
    expm1, "exp(x) - 1, accurate near 0.", kFloat, [](auto x) { return expm1(x); },
    [](auto, auto y, auto g) { return unless_zero(g, g * (y + 1.0)); },
    [](double x) { return std::expm1(x); }, domain(-80, 80), 4)
VKML_UNARY(
    log, "The natural logarithm.", kFloat, [](auto x) { return log(x); },
    [](auto x, auto, auto g) { return unless_zero(g, g / x); },
    [](double x) { return std::log(x); }, domain(1e-3, 100), 3)
VKML_UNARY(
    log2, "The logarithm to base 2.", kFloat, [](auto x) { return log2(x); },
    [](auto x, auto, auto g) { return unless_zero(g, g * 1.4426950408889634074 / x); },
    [](double x) { return std::log2(x); }, domain(1e-3, 100), 4)
VKML_UNARY(
    log10, "The logarithm to base 10.", kFloat, [](auto x) { return log10(x); },
    [](auto x, auto, auto g) { return unless_zero(g, g * 0.43429448190325182765 / x); },
    [](double x) { return std::log10(x); }, domain(1e-3, 100), 4)
VKML_UNARY(
    log1p, "log(1 + x), accurate near 0.", kFloat, [](auto x) { return log1p(x); },
    [](auto x, auto, auto g) { return unless_zero(g, g / (x + 1.0)); },
    [](double x) { return std::log1p(x); }, domain(-0.9, 100), 4)

// Trigonometric and hyperbolic functions
VKML_UNARY(
    sin, "The sine of x radians; NaN from 2^23 on (float64: 2^50).", kFloat,
    [](auto x) { return sin(x); }, [](auto x, auto, auto g) { return g * cos(x); },
    [](double x) { return std::sin(x); }, domain(-100, 100), 2)
VKML_UNARY(
    cos, "The cosine of x radians; NaN from 2^23 on (float64: 2^50).", kFloat,
    [](auto x) { return cos(x); }, [](auto x, auto, auto g) { return -g * sin(x); },
    [](double x) { return std::cos(x); }, domain(-100, 100), 2)
VKML_UNARY(
    tan, "The tangent of x radians; NaN from 2^23 on (float64: 2^50).", kFloat,
    [](auto x) { return tan(x); },
    [](auto, auto y, auto g) { return unless_zero(g, g * (y * y + 1.0)); },
    [](double x) { return std::tan(x); }, domain(-10, 10), 5)
VKML_UNARY(
    atan, "The angle in (-pi/2, pi/2) whose tangent is x.", kFloat, [](auto x) { return atan(x); },
    [](auto x, auto, auto g) { return g / (x * x + 1.0); }, [](double x) { return std::atan(x); },
    domain(-10, 10), 4)
VKML_UNARY(
    sinh, "The hyperbolic sine.", kFloat, [](auto x) { return sinh(x); },
    [](auto x, auto, auto g) { return unless_zero(g, g * cosh(x)); },
    [](double x) { return std::sinh(x); }, domain(-20, 20), 6)
VKML_UNARY(
    cosh, "The hyperbolic cosine.", kFloat, [](auto x) { return cosh(x); },
    [](auto x, auto, auto g) { return unless_zero(g, g * sinh(x)); },
    [](double x) { return std::cosh(x); }, domain(-20, 20), 6)
VKML_UNARY(
    tanh, "The hyperbolic tangent.", kFloat, [](auto x) { return tanh(x); },
    [](auto, auto y, auto g) { return g * (1.0 - y * y); }, [](double x) { return std::tanh(x); },
    domain(-10, 10), 5)

// Error function
VKML_UNARY(
    erf, "The error function.", kFloat, [](auto x) { return erf(x); },
    [](auto x, auto, auto g) { return g * 1.12837916709551257390 * exp(-(x * x)); },
    [](double x) { return std::erf(x); }, domain(-4, 4), 4)
VKML_UNARY(
    erfc, "1 - erf(x), accurate in the tail.", kFloat, [](auto x) { return erfc(x); },
    [](auto x, auto, auto g) { return g * -1.12837916709551257390 * exp(-(x * x)); },
    [](double x) { return std::erfc(x); }, domain(-4, 8), 16)

// Activations
VKML_UNARY(
    sigmoid, "1 / (1 + exp(-x)).", kFloat, [](auto x) { return sigmoid(x); },
    [](auto, auto y, auto g) { return g * y * (1.0 - y); },
    [](double x) { return 1 / (1 + std::exp(-x)); }, domain(-80, 80), 5)
VKML_UNARY(
    log_sigmoid, "log(sigmoid(x)), without overflow.", kFloat,
    [](auto x) { return min_number(x.constant(0), x) - log1p(exp(-abs(x))); },
    [](auto x, auto, auto g) { return g * sigmoid(-x); },
    [](double x) { return x < -30 ? x - std::exp(x) : -std::log1p(std::exp(-x)); }, domain(-80, 80),
    5)
VKML_UNARY(
    softplus, "log(1 + exp(x)), without overflow.", kFloat,
    [](auto x) { return max_number(x.constant(0), x) + log1p(exp(-abs(x))); },
    [](auto x, auto, auto g) { return g * sigmoid(x); },
    [](double x) { return x > 30 ? x + std::exp(-x) : std::log1p(std::exp(x)); }, domain(-80, 80),
    5)
VKML_UNARY(
    relu, "max(x, 0); NaN stays; gradient 0 at 0.", kSame,
    [](auto x) { return max_number(x.constant(0), x); },
    [](auto, auto y, auto g) { return where_else_zero(y > 0.0, g); },
    [](auto x) { return oracle::relu(x); }, domain(-10, 10), 0)
VKML_BINARY(
    leaky_relu, "x where x >= 0, slope * x elsewhere.", kFloat,
    [](auto x, auto slope) { return select(x >= 0, x, x * slope); },
    [](auto x, auto slope, auto, auto g) {
      auto positive = x >= 0.0;
      return std::pair(where(positive, g, g * slope),
                       where_else_zero(logical_not(positive), g * x));
    },
    [](double x, double slope) { return x >= 0 ? x : x * slope; }, domain(-10, 10), 0.5)
VKML_BINARY(
    elu, "x where x > 0, alpha * (exp(x) - 1) elsewhere.", kFloat,
    [](auto x, auto alpha) { return select(x > 0, x, alpha * expm1(x)); },
    [](auto x, auto alpha, auto y, auto g) {
      auto positive = x > 0.0;
      return std::pair(where(positive, g, g * (y + alpha)),
                       where_else_zero(logical_not(positive), g * expm1(x)));
    },
    [](double x, double alpha) { return x > 0 ? x : alpha * std::expm1(x); }, domain(-10, 10), 5)
VKML_UNARY(
    silu, "x * sigmoid(x).", kFloat, [](auto x) { return x / one_plus_exp(-x); },
    [](auto x, auto, auto g) {
      auto s = sigmoid(x);
      return g * (s * (x * (1.0 - s) + 1.0));
    },
    [](double x) { return x / (1 + std::exp(-x)); }, domain(-80, 80), 6)
VKML_UNARY(
    gelu, "x times the normal distribution function: x * erfc(-x / sqrt(2)) / 2.", kFloat,
    [](auto x) { return x * 0.5 * erfc(x * -0.70710678118654752440); },
    [](auto x, auto, auto g) {
      auto cdf = 0.5 * erfc(x * -0.70710678118654752440);
      return g * (cdf + x * (0.39894228040143267794 * exp(x * x * -0.5)));
    },
    [](double x) {
      // The tail is ill-conditioned: a double's rounding of x / sqrt(2) shows there.
      return static_cast<double>(x * 0.5L * std::erfc(x / -std::sqrt(2.0L)));
    },
    domain(-5, 10), 32)
VKML_UNARY(
    gelu_tanh, "gelu by its tanh approximation.", kFloat,
    // (1 + tanh(u)) / 2 = 1 / (1 + exp(-2 u)), without the cancellation.
    [](auto x) {
      auto u = (x + x * x * x * 0.044715) * 1.59576912160573071176;
      return x / one_plus_exp(-u);
    },
    [](auto x, auto, auto g) {
      auto s = sigmoid((x + x * x * x * 0.044715) * 1.59576912160573071176);
      auto slope = (x * x * 0.134145 + 1.0) * 1.59576912160573071176;
      return g * (s + x * s * (1.0 - s) * slope);
    },
    [](double x) {
      const long double wide = x;
      const long double u =
          std::sqrt(8 / 3.14159265358979323846L) * (wide + 0.044715L * wide * wide * wide);
      return static_cast<double>(wide / (1 + std::exp(-u)));
    },
    domain(-5, 10), 64)

// Rounding
VKML_UNARY(
    floor, "The largest integer not above x.", kSame, [](auto x) { return floor(x); }, NONE,
    [](auto x) { return oracle::floor(x); }, domain(-10, 10), 0)
VKML_UNARY(
    ceil, "The smallest integer not below x.", kSame, [](auto x) { return ceil(x); }, NONE,
    [](auto x) { return oracle::ceil(x); }, domain(-10, 10), 0)
VKML_UNARY(
    trunc, "x without its fraction.", kSame, [](auto x) { return trunc(x); }, NONE,
    [](auto x) { return oracle::trunc(x); }, domain(-10, 10), 0)
VKML_UNARY(
    round, "The nearest integer; halves go to the even one.", kSame,
    [](auto x) { return round_even(x); }, NONE, [](auto x) { return oracle::round(x); },
    domain(-10, 10), 0)

// Comparisons
VKML_BINARY(
    eq, "a == b.", kCompare, [](auto a, auto b) { return a == b; }, NONE,
    [](auto a, auto b) { return oracle::truth(a, a == b); }, domain(-3, 3), 0)
VKML_BINARY(
    ne, "a != b.", kCompare, [](auto a, auto b) { return a != b; }, NONE,
    [](auto a, auto b) { return oracle::truth(a, a != b); }, domain(-3, 3), 0)
VKML_BINARY(
    lt, "a < b.", kCompare, [](auto a, auto b) { return a < b; }, NONE,
    [](auto a, auto b) { return oracle::truth(a, a < b); }, domain(-3, 3), 0)
VKML_BINARY(
    le, "a <= b.", kCompare, [](auto a, auto b) { return a <= b; }, NONE,
    [](auto a, auto b) { return oracle::truth(a, a <= b); }, domain(-3, 3), 0)
VKML_BINARY(
    gt, "a > b.", kCompare, [](auto a, auto b) { return a > b; }, NONE,
    [](auto a, auto b) { return oracle::truth(a, a > b); }, domain(-3, 3), 0)
VKML_BINARY(
    ge, "a >= b.", kCompare, [](auto a, auto b) { return a >= b; }, NONE,
    [](auto a, auto b) { return oracle::truth(a, a >= b); }, domain(-3, 3), 0)
VKML_UNARY(
    isnan, "Whether x is NaN.", kPredicate, [](auto x) { return is_nan(x); }, NONE,
    [](auto x) { return oracle::truth(x, x != x); }, domain(-3, 3), 0)
VKML_UNARY(
    isinf, "Whether x is an infinity.", kPredicate, [](auto x) { return is_inf(x); }, NONE,
    [](auto x) { return oracle::truth(x, std::isinf(static_cast<double>(x))); }, domain(-3, 3), 0)
VKML_UNARY(
    isfinite, "Whether x is neither NaN nor an infinity.", kPredicate,
    [](auto x) { return ~(is_nan(x) | is_inf(x)); }, NONE,
    [](auto x) { return oracle::truth(x, std::isfinite(static_cast<double>(x))); }, domain(-3, 3),
    0)

// Logic and bits
VKML_BINARY(
    logical_and, "a and b, as truth values.", kLogical, [](auto a, auto b) { return a & b; }, NONE,
    [](auto a, auto b) { return oracle::truth(a, a != 0 && b != 0); }, domain(-3, 3), 0)
VKML_BINARY(
    logical_or, "a or b, as truth values.", kLogical, [](auto a, auto b) { return a | b; }, NONE,
    [](auto a, auto b) { return oracle::truth(a, a != 0 || b != 0); }, domain(-3, 3), 0)
VKML_BINARY(
    logical_xor, "Whether exactly one of a and b is true.", kLogical,
    [](auto a, auto b) { return a ^ b; }, NONE,
    [](auto a, auto b) { return oracle::truth(a, (a != 0) != (b != 0)); }, domain(-3, 3), 0)
VKML_UNARY(
    logical_not, "Whether x is zero or false.", kLogical, [](auto x) { return ~x; }, NONE,
    [](auto x) { return oracle::truth(x, x == 0); }, domain(-3, 3), 0)
VKML_BINARY(
    bitwise_and, "a & b.", kBits, [](auto a, auto b) { return a & b; }, NONE,
    [](auto a, auto b) { return oracle::bits(a, b, std::bit_and<>()); }, domain(-9, 9), 0)
VKML_BINARY(
    bitwise_or, "a | b.", kBits, [](auto a, auto b) { return a | b; }, NONE,
    [](auto a, auto b) { return oracle::bits(a, b, std::bit_or<>()); }, domain(-9, 9), 0)
VKML_BINARY(
    bitwise_xor, "a ^ b.", kBits, [](auto a, auto b) { return a ^ b; }, NONE,
    [](auto a, auto b) { return oracle::bits(a, b, std::bit_xor<>()); }, domain(-9, 9), 0)
VKML_UNARY(
    bitwise_not, "~x; on bools, not x.", kBits, [](auto x) { return ~x; }, NONE,
    [](auto x) { return oracle::bits(x, x, [](auto v, auto) { return ~v; }); }, domain(-9, 9), 0)

// Choice
VKML_TERNARY(
    where, "b where a holds, c elsewhere.", kSelect,
    [](auto a, auto b, auto c) { return select(a, b, c); },
    [](auto a, auto, auto, auto, auto g) {
      return std::tuple(decltype(g)(), where_else_zero(a, g), where_else_zero(logical_not(a), g));
    },
    [](auto a, auto b, auto c) { return a != 0 ? b : c; }, domain(-3, 3), 0)
VKML_TERNARY(
    clamp, "a limited to [b, c]; NaN stays; c wins when b > c.", kSame,
    [](auto a, auto b, auto c) { return minimum(maximum(a, b), c); },
    [](auto a, auto b, auto c, auto, auto g) {
      auto above = gt(maximum(a, b), c);
      auto below = logical_and(lt(a, b), logical_not(above));
      auto inside = logical_not(logical_or(above, below));
      return std::tuple(where_else_zero(inside, g), where_else_zero(below, g),
                        where_else_zero(above, g));
    },
    [](auto a, auto b, auto c) { return oracle::minimum(oracle::maximum(a, b), c); }, domain(-3, 3),
    0)

// Random numbers from a counter: the same index and key give the same number everywhere.
VKML_TERNARY(
    random_uniform, "Uniform in [0, 1) from an index and a key of two words.", kRandom,
    [](auto a, auto b, auto c) { return random_uniform(a, b, c); }, NONE,
    [](double a, double b, double c) { return oracle::random_uniform(a, b, c); }, domain(0, 1e6), 0)
VKML_TERNARY(
    random_normal, "Standard normal from an index and a key of two words.", kRandom,
    [](auto a, auto b, auto c) { return random_normal(a, b, c); }, NONE,
    [](double a, double b, double c) { return oracle::random_normal(a, b, c); }, domain(0, 1e6), 8)
