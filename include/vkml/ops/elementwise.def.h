// The elementwise table: the only place that names an elementwise operator. Adding one is adding a
// row; its C++ and Python functions, methods, CPU and SPIR-V code, tests and documentation follow.
//
// Columns: name; documentation; dtype rule; scalar program (called with ops::Expr); gradient
// (called with graph::Value: operands, result y, gradient g; one value, or a pair or tuple of them;
// NONE if the operator is piecewise constant); independent reference in double (generic where
// integers have a meaning of their own; in_each_type(...) where the floating types differ); domain
// of the tests; largest error in units of the last place. Optional are
//   operands("input", operand("alpha", domain(0.25, 4), 1)): the operands as Python names them,
//     with a domain of their own and a default where they have one; otherwise "input" and "other";
//   alias("arctan"): another name in Python;
//   in_float32(): one of those that autocast computes in float32 (autocast.h).
//
// A gradient that can be infinite or NaN is unless_zero(g, ...): where no gradient arrives, as on a
// branch of where() that is not taken, none leaves.
//
// Transcendental and special functions and activations stand in files of their own, which are
// included below.
//
// Included several times with VKML_ROW(arity, name, documentation, ...) defined, which may use
// VKML_PARAMETERS_<arity>(type) and VKML_ARGUMENTS_<arity>; no include guard.

#define VKML_UNARY(...) VKML_ROW(1, __VA_ARGS__)
#define VKML_BINARY(...) VKML_ROW(2, __VA_ARGS__)
#define VKML_TERNARY(...) VKML_ROW(3, __VA_ARGS__)
#define VKML_QUATERNARY(...) VKML_ROW(4, __VA_ARGS__)
#define VKML_PARAMETERS_1(type) const type& x
#define VKML_PARAMETERS_2(type) const type &a, const type &b
#define VKML_PARAMETERS_3(type) const type &a, const type &b, const type &c
#define VKML_PARAMETERS_4(type) const type &a, const type &b, const type &c, const type &d
#define VKML_ARGUMENTS_1 x
#define VKML_ARGUMENTS_2 a, b
#define VKML_ARGUMENTS_3 a, b, c
#define VKML_ARGUMENTS_4 a, b, c, d

// Arithmetic
VKML_BINARY(
    add, "a + b.", kSame, [](auto a, auto b) { return a + b; },
    [](auto, auto, auto, auto g) { return std::pair(g, g); },
    [](auto a, auto b) { return oracle::add(a, b); }, domain(-10, 10), 0.5)
VKML_BINARY(
    sub, "a - b.", kSame, [](auto a, auto b) { return a - b; },
    [](auto, auto, auto, auto g) { return std::pair(g, -g); },
    [](auto a, auto b) { return oracle::sub(a, b); }, domain(-10, 10), 0.5, alias("subtract"))
VKML_BINARY(
    mul, "a * b.", kSame, [](auto a, auto b) { return a * b; },
    [](auto a, auto b, auto, auto g) { return std::pair(g * b, g * a); },
    [](auto a, auto b) { return oracle::mul(a, b); }, domain(-10, 10), 0.5, alias("multiply"))
VKML_BINARY(
    div, "a / b; integers give floats.", kFloat, [](auto a, auto b) { return a / b; },
    [](auto, auto b, auto y, auto g) {
      return std::pair(unless_zero(g, g / b), unless_zero(g, -g * y / b));
    },
    [](double a, double b) { return a / b; }, domain(-10, 10), 2.5, alias("divide"),
    alias("true_divide"))
VKML_BINARY(
    floor_divide, "a / b rounded toward minus infinity; integers: x // 0 = 0.", kSame,
    [](auto a, auto b) { return floor_divide(a, b); },
    [](auto, auto, auto, auto g) { return std::pair(zeros_like(g), zeros_like(g)); },
    [](auto a, auto b) { return oracle::floor_divide(a, b); }, domain(-10, 10), 0.5)
VKML_BINARY(
    remainder,
    "a - b * floor_divide(a, b), with the sign of b; integers: x % 0 = 0. Exact for quotients of "
    "any size, as fmod; a sum with b is rounded.",
    kSame, [](auto a, auto b) { return remainder(a, b); },
    [](auto a, auto b, auto, auto g) {
      return std::pair(g, unless_zero(g, -g * floor_divide(a, b)));
    },
    [](auto a, auto b) { return oracle::remainder(a, b); }, domain(-10, 10), 1)
VKML_BINARY(
    trunc_divide, "a / b rounded toward 0; integers: x / 0 = 0.", kSame,
    [](auto a, auto b) { return trunc_divide(a, b); },
    [](auto, auto, auto, auto g) { return std::pair(zeros_like(g), zeros_like(g)); },
    [](auto a, auto b) { return oracle::trunc_divide(a, b); }, domain(-10, 10), 0.5)
VKML_BINARY(
    fmod,
    "a - b * trunc_divide(a, b), with the sign of a; integers: x % 0 = 0. Exact for quotients of "
    "any size.",
    kSame, [](auto a, auto b) { return fmod(a, b); },
    [](auto a, auto b, auto, auto g) {
      return std::pair(g, unless_zero(g, -g * trunc_divide(a, b)));
    },
    [](auto a, auto b) { return oracle::fmod(a, b); }, domain(-10, 10), 1)
VKML_BINARY(
    pow, "input to the power exponent; integers wrap, their negative powers truncate.", kSame,
    [](auto a, auto b) { return pow(a, b); },
    [](auto a, auto b, auto y, auto g) {
      // b = 0 has gradient 0 in a even at a = 0; a = 0 with b >= 0 has gradient 0 in b.
      auto in_a = where_else_zero(ne(b, 0.0), g * b * pow(a, b - 1.0));
      auto at_zero = logical_and(eq(a, 0.0), b >= 0.0);
      auto in_b = where_else_zero(logical_not(at_zero), g * y * log(a));
      return std::pair(unless_zero(g, in_a), unless_zero(g, in_b));
    },
    [](auto a, auto b) { return oracle::pow(a, b); }, domain(0.1, 5), 4,
    operands("input", "exponent"), in_float32())
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
VKML_BINARY(
    fmax, "The larger of a and b; the other one if one is NaN. Of equal ones a has the gradient.",
    kSame, [](auto a, auto b) { return fmax(a, b); },
    [](auto a, auto b, auto, auto g) {
      auto first = logical_or(ge(a, b), isnan(b));
      return std::pair(where_else_zero(first, g), where_else_zero(logical_not(first), g));
    },
    [](auto a, auto b) { return b != b || a > b ? a : b; }, domain(-10, 10), 0)
VKML_BINARY(
    fmin, "The smaller of a and b; the other one if one is NaN. Of equal ones a has the gradient.",
    kSame, [](auto a, auto b) { return fmin(a, b); },
    [](auto a, auto b, auto, auto g) {
      auto first = logical_or(le(a, b), isnan(b));
      return std::pair(where_else_zero(first, g), where_else_zero(logical_not(first), g));
    },
    [](auto a, auto b) { return b != b || a < b ? a : b; }, domain(-10, 10), 0)
VKML_UNARY(
    neg, "-x.", kSame, [](auto x) { return -x; }, [](auto, auto, auto g) { return -g; },
    [](auto x) { return oracle::neg(x); }, domain(-10, 10), 0, alias("negative"))
VKML_UNARY(
    positive, "x.", kSame, [](auto x) { return x; }, [](auto, auto, auto g) { return g; },
    [](auto x) { return x; }, domain(-10, 10), 0)
VKML_UNARY(
    abs, "|x|; gradient 0 at 0.", kSame, [](auto x) { return abs(x); },
    [](auto x, auto, auto g) { return g * sign(x); }, [](auto x) { return oracle::abs(x); },
    domain(-10, 10), 0, alias("absolute"))
VKML_UNARY(
    sign, "-1, 0 or 1; NaN stays.", kSame, [](auto x) { return sign(x); },
    [](auto, auto, auto g) { return zeros_like(g); }, [](auto x) { return oracle::sign(x); },
    domain(-10, 10), 0, alias("sgn"))
VKML_UNARY(
    reciprocal, "1 / x.", kFloat, [](auto x) { return 1.0 / x; },
    [](auto, auto y, auto g) { return unless_zero(g, -g * y * y); }, [](double x) { return 1 / x; },
    domain(-10, 10), 2.5, in_float32())
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
    [](double x) { return 1 / std::sqrt(x); }, domain(0.01, 100), 4, in_float32())
VKML_UNARY(
    cbrt, "The real cube root, with the sign of x.", kFloat, [](auto x) { return cbrt(x); },
    [](auto, auto y, auto g) { return unless_zero(g, g / (y * y * 3.0)); },
    [](double x) { return std::cbrt(x); }, domain(-100, 100), 4)
VKML_BINARY(
    hypot, "sqrt(a^2 + b^2), without overflow; gradient 0 at (0, 0).", kFloat,
    [](auto a, auto b) { return hypot(a, b); },
    [](auto a, auto b, auto y, auto g) {
      auto zero = eq(y, 0.0);
      return std::pair(where_else_zero(logical_not(zero), g * (a / y)),
                       where_else_zero(logical_not(zero), g * (b / y)));
    },
    [](double a, double b) { return std::hypot(a, b); }, domain(-10, 10), 4)
VKML_BINARY(
    copysign, "|a| with the sign of b, that of a zero too.", kFloat,
    [](auto a, auto b) { return copysign(a, b); },
    [](auto a, auto, auto y, auto g) { return std::pair(g * (sign(a) * sign(y)), zeros_like(g)); },
    [](double a, double b) { return std::copysign(a, b); }, domain(-10, 10), 0)
VKML_BINARY(
    nextafter, "The next number of the dtype after a in the direction of b.", kFloat,
    [](auto a, auto b) { return nextafter(a, b); }, NONE,
    in_each_type([](auto a, auto b) { return oracle::nextafter(a, b); }), domain(-10, 10), 0)
VKML_BINARY(
    heaviside, "0 below 0, values at 0, 1 above; NaN stays.", kSame,
    [](auto a, auto b) { return select(a == 0, b, max_number(a.constant(0), sign(a))); }, NONE,
    [](auto a, auto b) { return a == 0 ? b : (a != a ? a : decltype(a)(a > 0)); }, domain(-10, 10),
    0, operands("input", "values"))
VKML_TERNARY(
    lerp, "input + weight * (end - input), exact at weights 0 and 1.", kFloat,
    [](auto a, auto b, auto c) { return fma(c, b, fma(-c, a, a)); },
    [](auto a, auto b, auto c, auto, auto g) {
      return std::tuple(g * (1.0 - c), g * c, g * (b - a));
    },
    [](double a, double b, double c) {
      return static_cast<double>(static_cast<long double>(a) * (1 - static_cast<long double>(c)) +
                                 static_cast<long double>(b) * c);
    },
    domain(0.1, 10), 2, operands("input", "end", operand("weight", domain(0, 1))))
VKML_QUATERNARY(
    addcmul, "input + value * tensor1 * tensor2.", kSame,
    [](auto a, auto b, auto c, auto d) { return a + d * b * c; },
    [](auto, auto b, auto c, auto d, auto, auto g) {
      return std::tuple(g, g * d * c, g * d * b, g * b * c);
    },
    [](auto a, auto b, auto c, auto d) {
      return oracle::add(a, oracle::mul(oracle::mul(d, b), c));
    },
    domain(0.1, 10), 2,
    operands("input", "tensor1", "tensor2", operand("value", domain(0.5, 2), 1)))
VKML_QUATERNARY(
    addcdiv, "input + value * tensor1 / tensor2; integers give floats.", kFloat,
    [](auto a, auto b, auto c, auto d) { return a + d * (b / c); },
    [](auto, auto b, auto c, auto d, auto, auto g) {
      auto ratio = b / c;
      return std::tuple(g, unless_zero(g, g * d / c), unless_zero(g, -g * d * ratio / c),
                        unless_zero(g, g * ratio));
    },
    [](double a, double b, double c, double d) { return a + d * (b / c); }, domain(0.1, 10), 6,
    operands("input", "tensor1", "tensor2", operand("value", domain(0.5, 2), 1)))
VKML_QUATERNARY(
    nan_to_num, "input with NaN, infinity and minus infinity replaced by nan, posinf and neginf.",
    kSame,
    [](auto x, auto nan, auto posinf, auto neginf) {
      auto finite = select(is_nan(x), nan, x);
      return select(is_inf(x), select(x > 0, posinf, neginf), finite);
    },
    [](auto x, auto, auto, auto, auto, auto g) {
      return std::tuple(where_else_zero(isfinite(x), g), where_else_zero(isnan(x), g),
                        where_else_zero(isposinf(x), g), where_else_zero(isneginf(x), g));
    },
    [](auto x, auto nan, auto posinf, auto neginf) {
      if (x != x) return nan;
      return std::isinf(static_cast<double>(x)) ? (x > 0 ? posinf : neginf) : x;
    },
    domain(-10, 10), 0, operands("input", "nan", "posinf", "neginf"))

#include "vkml/ops/elementwise_transcendental.def.h"

#include "vkml/ops/elementwise_special.def.h"

#include "vkml/ops/elementwise_activations.def.h"

// Rounding
VKML_UNARY(
    floor, "The largest integer not above x.", kSame, [](auto x) { return floor(x); },
    [](auto, auto, auto g) { return zeros_like(g); }, [](auto x) { return oracle::floor(x); },
    domain(-10, 10), 0)
VKML_UNARY(
    ceil, "The smallest integer not below x.", kSame, [](auto x) { return ceil(x); },
    [](auto, auto, auto g) { return zeros_like(g); }, [](auto x) { return oracle::ceil(x); },
    domain(-10, 10), 0)
VKML_UNARY(
    trunc, "x without its fraction.", kSame, [](auto x) { return trunc(x); },
    [](auto, auto, auto g) { return zeros_like(g); }, [](auto x) { return oracle::trunc(x); },
    domain(-10, 10), 0, alias("fix"))
VKML_UNARY(
    round, "The nearest integer; halves go to the even one.", kSame,
    [](auto x) { return round_even(x); }, [](auto, auto, auto g) { return zeros_like(g); },
    [](auto x) { return oracle::round(x); }, domain(-10, 10), 0)
VKML_UNARY(
    frac, "x - trunc(x), with the sign of x.", kSame, [](auto x) { return x - trunc(x); },
    [](auto, auto, auto g) { return g; }, [](auto x) { return oracle::sub(x, oracle::trunc(x)); },
    domain(-10, 10), 0)

// Comparisons
VKML_BINARY(
    eq, "a == b.", kCompare, [](auto a, auto b) { return a == b; }, NONE,
    [](auto a, auto b) { return oracle::truth(a, a == b); }, domain(-3, 3), 0)
VKML_BINARY(
    ne, "a != b.", kCompare, [](auto a, auto b) { return a != b; }, NONE,
    [](auto a, auto b) { return oracle::truth(a, a != b); }, domain(-3, 3), 0, alias("not_equal"))
VKML_BINARY(
    lt, "a < b.", kCompare, [](auto a, auto b) { return a < b; }, NONE,
    [](auto a, auto b) { return oracle::truth(a, a < b); }, domain(-3, 3), 0, alias("less"))
VKML_BINARY(
    le, "a <= b.", kCompare, [](auto a, auto b) { return a <= b; }, NONE,
    [](auto a, auto b) { return oracle::truth(a, a <= b); }, domain(-3, 3), 0, alias("less_equal"))
VKML_BINARY(
    gt, "a > b.", kCompare, [](auto a, auto b) { return a > b; }, NONE,
    [](auto a, auto b) { return oracle::truth(a, a > b); }, domain(-3, 3), 0, alias("greater"))
VKML_BINARY(
    ge, "a >= b.", kCompare, [](auto a, auto b) { return a >= b; }, NONE,
    [](auto a, auto b) { return oracle::truth(a, a >= b); }, domain(-3, 3), 0,
    alias("greater_equal"))
VKML_QUATERNARY(
    isclose,
    "Whether input and other are equal, or |input - other| <= atol + rtol * |other| with a finite "
    "other. Integers are compared as float32.",
    kCompare,
    [](auto a, auto b, auto rtol, auto atol) {
      const auto difference = abs(a - b);
      const auto is_near = (difference <= atol + rtol * abs(b)) & (difference >= 0);
      return (a == b) | (is_near & ~is_inf(b));
    },
    NONE,
    [](auto a, auto b, auto rtol, auto atol) {
      return oracle::truth(a, oracle::is_close(a, b, rtol, atol));
    },
    domain(-3, 3), 0,
    operands("input", "other", operand("rtol", domain(0, 0.5), 1e-5),
             operand("atol", domain(0, 0.5), 1e-8)))
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
VKML_UNARY(
    isposinf, "Whether x is infinity.", kPredicate, [](auto x) { return is_inf(x) & ~signbit(x); },
    NONE, [](auto x) { return oracle::truth(x, x > 0 && std::isinf(static_cast<double>(x))); },
    domain(-3, 3), 0)
VKML_UNARY(
    isneginf, "Whether x is minus infinity.", kPredicate,
    [](auto x) { return is_inf(x) & signbit(x); }, NONE,
    [](auto x) { return oracle::truth(x, x < 0 && std::isinf(static_cast<double>(x))); },
    domain(-3, 3), 0)
VKML_UNARY(
    signbit, "Whether x has the minus sign, as -0 has.", kPredicate,
    [](auto x) { return signbit(x); }, NONE,
    [](auto x) { return oracle::truth(x, std::signbit(static_cast<double>(x))); }, domain(-3, 3), 0)

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
    [](auto x) { return oracle::bits(x, x, [](auto v, auto) { return ~v; }); }, domain(-9, 9), 0,
    alias("bitwise_invert"))
VKML_BINARY(
    bitwise_left_shift, "a << b; 0 for counts below 0 or past the width.", kBits,
    [](auto a, auto b) { return a << b; }, NONE,
    [](auto a, auto b) { return oracle::shift_left(a, b); }, domain(0, 9), 0)
VKML_BINARY(
    bitwise_right_shift,
    "a >> b, which keeps the sign; counts below 0 or past the width leave the sign alone.", kBits,
    [](auto a, auto b) { return a >> b; }, NONE,
    [](auto a, auto b) { return oracle::shift_right(a, b); }, domain(0, 9), 0)

VKML_BINARY(
    gcd, "The greatest common divisor of |a| and |b|; gcd(0, 0) = 0.", kBits,
    [](auto a, auto b) { return gcd(a, b); }, NONE,
    [](auto a, auto b) { return oracle::gcd(a, b); }, domain(-9, 9), 0)
VKML_BINARY(
    lcm, "The least common multiple of |a| and |b|, 0 where either is 0; wraps.", kBits,
    [](auto a, auto b) { return lcm(a, b); }, NONE,
    [](auto a, auto b) { return oracle::lcm(a, b); }, domain(-9, 9), 0)

// Choice
VKML_TERNARY(
    where, "input where the condition holds, other elsewhere.", kSelect,
    [](auto a, auto b, auto c) { return select(a, b, c); },
    [](auto a, auto, auto, auto, auto g) {
      return std::tuple(decltype(g)(), where_else_zero(a, g), where_else_zero(logical_not(a), g));
    },
    [](auto a, auto b, auto c) { return a != 0 ? b : c; }, domain(-3, 3), 0,
    operands("condition", "input", "other"))
VKML_TERNARY(
    clamp, "input limited to [min, max]; NaN stays; max wins when min > max.", kSame,
    [](auto a, auto b, auto c) { return minimum(maximum(a, b), c); },
    [](auto a, auto b, auto c, auto, auto g) {
      auto above = gt(maximum(a, b), c);
      auto below = logical_and(lt(a, b), logical_not(above));
      auto inside = logical_not(logical_or(above, below));
      return std::tuple(where_else_zero(inside, g), where_else_zero(below, g),
                        where_else_zero(above, g));
    },
    [](auto a, auto b, auto c) { return oracle::minimum(oracle::maximum(a, b), c); }, domain(-3, 3),
    0, alias("clip"), operands("input", "min", "max"))
VKML_BINARY(
    clamp_min,
    "The larger of input and min; NaN stays; input has the gradient where they are equal.", kSame,
    [](auto a, auto b) { return maximum(a, b); },
    [](auto a, auto b, auto, auto g) {
      return std::pair(where_else_zero(ge(a, b), g), where_else_zero(lt(a, b), g));
    },
    [](auto a, auto b) { return oracle::maximum(a, b); }, domain(-3, 3), 0,
    operands("input", "min"))
VKML_BINARY(
    clamp_max,
    "The smaller of input and max; NaN stays; input has the gradient where they are equal.", kSame,
    [](auto a, auto b) { return minimum(a, b); },
    [](auto a, auto b, auto, auto g) {
      return std::pair(where_else_zero(le(a, b), g), where_else_zero(gt(a, b), g));
    },
    [](auto a, auto b) { return oracle::minimum(a, b); }, domain(-3, 3), 0,
    operands("input", "max"))

// Random numbers from a counter: the same index and key give the same number everywhere.
VKML_TERNARY(
    random_uniform, "Uniform in [0, 1) from an index and a key of two words.", kRandom,
    [](auto a, auto b, auto c) { return random_uniform(a, b, c); }, NONE,
    [](double a, double b, double c) { return oracle::random_uniform(a, b, c); }, domain(0, 1e6), 0,
    operands("index", "key0", "key1"))
VKML_TERNARY(
    random_normal, "Standard normal from an index and a key of two words.", kRandom,
    [](auto a, auto b, auto c) { return random_normal(a, b, c); }, NONE,
    [](double a, double b, double c) { return oracle::random_normal(a, b, c); }, domain(0, 1e6), 8,
    operands("index", "key0", "key1"))

#undef VKML_UNARY
#undef VKML_BINARY
#undef VKML_TERNARY
#undef VKML_QUATERNARY
#undef VKML_PARAMETERS_1
#undef VKML_PARAMETERS_2
#undef VKML_PARAMETERS_3
#undef VKML_PARAMETERS_4
#undef VKML_ARGUMENTS_1
#undef VKML_ARGUMENTS_2
#undef VKML_ARGUMENTS_3
#undef VKML_ARGUMENTS_4
#undef VKML_ROW
