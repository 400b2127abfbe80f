// The activations of the elementwise table, whose columns elementwise.def.h describes; that file
// includes this one and defines its macros. No include guard.
//
// At the points where a formula changes, gradients are PyTorch's.

VKML_UNARY(
    sigmoid, "1 / (1 + exp(-x)).", kFloat, [](auto x) { return sigmoid(x); },
    [](auto, auto y, auto g) { return g * y * (1.0 - y); },
    [](double x) { return 1 / (1 + std::exp(-x)); }, domain(-80, 80), 5, alias("expit"))
VKML_UNARY(
    log_sigmoid, "log(sigmoid(x)), without overflow.", kFloat,
    [](auto x) { return min_number(x.constant(0), x) - log1p(exp(-abs(x))); },
    [](auto x, auto, auto g) { return g * sigmoid(-x); },
    [](double x) { return x < -30 ? x - std::exp(x) : -std::log1p(std::exp(-x)); }, domain(-80, 80),
    5, alias("logsigmoid"))
VKML_TERNARY(
    softplus, "log(1 + exp(beta x)) / beta, without overflow; x itself where beta x > threshold.",
    kFloat, [](auto x, auto beta, auto threshold) { return softplus(x, beta, threshold); },
    [](auto x, auto beta, auto threshold, auto y, auto g) {
      auto scaled = x * beta;
      auto linear = gt(scaled, threshold);
      auto s = sigmoid(scaled);
      auto in_beta = where_else_zero(logical_not(linear), unless_zero(g, g * (x * s - y) / beta));
      return std::tuple(where(linear, g, g * s), in_beta, decltype(g)());
    },
    [](double x, double beta, double threshold) {
      const long double scaled = static_cast<long double>(x) * beta;
      if (x * beta > threshold) return x;
      return static_cast<double>(std::log1p(std::exp(scaled)) / beta);
    },
    domain(-20, 80), 6,
    operands("input", operand("beta", domain(0.25, 4), 1),
             operand("threshold", domain(10, 30), 20)),
    in_float32())
VKML_UNARY(
    relu, "max(x, 0); NaN stays; gradient 0 at 0.", kSame,
    [](auto x) { return max_number(x.constant(0), x); },
    [](auto, auto y, auto g) { return where_else_zero(y > 0.0, g); },
    [](auto x) { return oracle::relu(x); }, domain(-10, 10), 0)
VKML_UNARY(
    relu6, "x limited to [0, 6]; NaN stays; gradient 0 at both ends.", kSame,
    [](auto x) { return minimum(maximum(x, x.constant(0)), x.constant(6)); },
    [](auto x, auto, auto g) { return where_else_zero(logical_and(x > 0.0, x < 6.0), g); },
    [](auto x) { return oracle::minimum(oracle::relu(x), decltype(x)(6)); }, domain(-10, 10), 0)
VKML_TERNARY(
    hardtanh, "x limited to [min_val, max_val]; NaN stays; x has gradient 0 at both ends.", kSame,
    [](auto x, auto low, auto high) { return minimum(maximum(x, low), high); },
    [](auto x, auto low, auto high, auto, auto g) {
      auto above = ge(x, high);
      auto below = logical_and(le(x, low), logical_not(above));
      return std::tuple(where_else_zero(logical_not(logical_or(above, below)), g),
                        where_else_zero(below, g), where_else_zero(above, g));
    },
    [](auto x, auto low, auto high) { return oracle::minimum(oracle::maximum(x, low), high); },
    domain(-10, 10), 0,
    operands("input", operand("min_val", domain(-5, -1), -1), operand("max_val", domain(1, 5), 1)))
VKML_UNARY(
    hardsigmoid, "(x + 3) / 6, limited to [0, 1].", kFloat,
    [](auto x) { return minimum(maximum(x + 3.0, x.constant(0)), x.constant(6)) / 6.0; },
    [](auto x, auto, auto g) { return where_else_zero(logical_and(x > -3.0, x < 3.0), g / 6.0); },
    [](double x) { return oracle::minimum(oracle::maximum((x + 3) / 6, 0.0), 1.0); },
    domain(-10, 10), 4)
VKML_UNARY(
    hardswish, "x * hardsigmoid(x).", kFloat,
    [](auto x) {
      return select(x <= -3.0, x.constant(0), select(x >= 3.0, x, x * (x + 3.0) / 6.0));
    },
    [](auto x, auto, auto g) {
      auto inside = g * (x / 3.0 + 0.5);
      return where(x >= 3.0, g, where_else_zero(x > -3.0, inside));
    },
    [](double x) {
      if (x <= -3) return 0.0;
      return x >= 3 ? x : static_cast<double>(x * (x + 3.0L) / 6);
    },
    domain(-10, 10), 4)
VKML_BINARY(
    hardshrink, "0 where |x| <= lambd, x elsewhere.", kFloat,
    [](auto x, auto lambd) { return select(abs(x) <= lambd, x.constant(0), x); },
    [](auto x, auto lambd, auto, auto g) {
      return std::pair(where_else_zero(logical_not(le(abs(x), lambd)), g), decltype(g)());
    },
    [](double x, double lambd) { return std::fabs(x) <= lambd ? 0 : x; }, domain(-10, 10), 0,
    operands("input", operand("lambd", domain(0, 2), 0.5)))
VKML_BINARY(
    softshrink, "x moved toward 0 by lambd, 0 where |x| <= lambd.", kFloat,
    [](auto x, auto lambd) {
      return select(abs(x) <= lambd, x.constant(0), select(x > 0, x - lambd, x + lambd));
    },
    [](auto x, auto lambd, auto, auto g) {
      auto inside = le(abs(x), lambd);
      return std::pair(where_else_zero(logical_not(inside), g),
                       where_else_zero(logical_not(inside), -g * sign(x)));
    },
    [](double x, double lambd) {
      if (std::fabs(x) <= lambd) return 0.0;
      return x > 0 ? x - lambd : x + lambd;
    },
    domain(-10, 10), 0.5, operands("input", operand("lambd", domain(0, 2), 0.5)))
VKML_TERNARY(
    threshold, "x where x > threshold, value elsewhere; NaN stays.", kSame,
    [](auto x, auto limit, auto value) { return select(x <= limit, value, x); },
    [](auto x, auto limit, auto, auto, auto g) {
      auto replaced = le(x, limit);
      return std::tuple(where_else_zero(logical_not(replaced), g), decltype(g)(),
                        where_else_zero(replaced, g));
    },
    [](auto x, auto limit, auto value) { return x <= limit ? value : x; }, domain(-10, 10), 0,
    operands("input", "threshold", "value"))
VKML_UNARY(
    softsign, "x / (1 + |x|).", kFloat,
    [](auto x) { return select(is_inf(x), sign(x), x / (abs(x) + 1.0)); },
    [](auto x, auto, auto g) { return g / square(abs(x) + 1.0); },
    [](double x) { return std::isinf(x) ? oracle::sign(x) : x / (1 + std::fabs(x)); },
    domain(-10, 10), 4)
VKML_UNARY(
    tanhshrink, "x - tanh(x), without the cancellation near 0.", kFloat,
    [](auto x) { return tanhshrink(x); }, [](auto x, auto, auto g) { return g * square(tanh(x)); },
    [](double x) { return oracle::tanhshrink(x); }, domain(-10, 10), 12)
VKML_BINARY(
    leaky_relu, "x where x > 0, negative_slope * x elsewhere.", kFloat,
    [](auto x, auto slope) { return select(x > 0, x, x * slope); },
    [](auto x, auto slope, auto, auto g) {
      auto positive = x > 0.0;
      return std::pair(where(positive, g, g * slope),
                       where_else_zero(logical_not(positive), g * x));
    },
    [](double x, double slope) { return x > 0 ? x : x * slope; }, domain(-10, 10), 0.5,
    operands("input", operand("negative_slope", domain(0, 1), 0.01)))
VKML_BINARY(
    elu, "x where x > 0, alpha * (exp(x) - 1) elsewhere.", kFloat,
    [](auto x, auto alpha) { return select(x > 0, x, alpha * expm1(x)); },
    [](auto x, auto alpha, auto y, auto g) {
      auto positive = x > 0.0;
      return std::pair(where(positive, g, g * (y + alpha)),
                       where_else_zero(logical_not(positive), g * expm1(x)));
    },
    [](double x, double alpha) { return x > 0 ? x : alpha * std::expm1(x); }, domain(-10, 10), 5,
    operands("input", operand("alpha", domain(0.25, 4), 1)))
VKML_BINARY(
    celu, "x where x > 0, alpha * (exp(x / alpha) - 1) elsewhere.", kFloat,
    [](auto x, auto alpha) { return select(x > 0, x, alpha * expm1(x / alpha)); },
    [](auto x, auto alpha, auto y, auto g) {
      auto positive = x > 0.0;
      auto slope = y / alpha + 1.0;
      auto in_x = unless_zero(g, g * slope);
      auto in_alpha = unless_zero(g, g * (y - x * slope) / alpha);
      return std::pair(where(positive, g, in_x), where_else_zero(logical_not(positive), in_alpha));
    },
    [](double x, double alpha) { return x > 0 ? x : alpha * std::expm1(x / alpha); },
    domain(-10, 10), 7, operands("input", operand("alpha", domain(0.25, 4), 1)))
VKML_UNARY(
    selu, "elu with alpha = 1.67326 times 1.0507, which keep mean 0 and variance 1.", kFloat,
    [](auto x) {
      return select(x > 0, x * 1.0507009873554804934, expm1(x) * 1.7580993408473768599);
    },
    [](auto x, auto y, auto g) {
      return where(x > 0.0, g * 1.0507009873554804934, g * (y + 1.7580993408473768599));
    },
    [](double x) {
      const double alpha = 1.67326324235437728482;
      return 1.05070098735548049342 * (x > 0 ? x : alpha * std::expm1(x));
    },
    domain(-10, 10), 6)
VKML_UNARY(
    silu, "x * sigmoid(x).", kFloat, [](auto x) { return x / (exp(-x) + 1.0); },
    [](auto x, auto, auto g) {
      auto s = sigmoid(x);
      return g * (s * (x * (1.0 - s) + 1.0));
    },
    [](double x) { return x / (1 + std::exp(-x)); }, domain(-80, 80), 6)
VKML_UNARY(
    mish, "x * tanh(log(1 + exp(x))).", kFloat, [](auto x) { return mish(x); },
    [](auto x, auto, auto g) {
      // tanh(log(1 + e)) in e = exp(x), as the value has it.
      auto e = exp(clamp_max(x, 20.0));
      auto n = e * (e + 2.0);
      auto t = n / (n + 2.0);
      return g * (t + x * sigmoid(x) * (1.0 - t * t));
    },
    [](double x) {
      if (x == -std::numeric_limits<double>::infinity()) return -0.0;
      const long double wide = x;
      return static_cast<double>(wide * std::tanh(std::log1p(std::exp(wide))));
    },
    domain(-80, 80), 6)
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
      return x / (exp(-u) + 1.0);
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
