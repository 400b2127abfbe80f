"""What every elementwise operator computes.

That is its row's own reference formula, and NumPy's and SciPy's word on it where somebody has
written it down here. A new row needs no entry: its formula serves, and is compared with the
function of the same name in NumPy or SciPy.

Floating operands come as float64 arrays that hold values of the tested dtype, integers as arrays of
their own dtype.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy.special

from vkml import _vkml

Array = np.ndarray


@dataclass(frozen=True)
class Reference:
    """What an operator computes, and what tests of it have to know.

    Attributes:
        function: Takes one array for each operand.
        kinks: Where the derivative jumps: a predicate on the operands. Gradients are not compared
            there.
        stated: Operands where the documentation states another value than `function`.
        by_dtype: Functions of single dtypes, where the value depends on which numbers one has.
    """

    function: Callable[..., Any]
    kinks: Callable[..., Any] | None = None
    stated: Callable[..., Any] | None = None
    by_dtype: dict[str, Callable[..., Any]] = field(default_factory=dict)


def _near(value: float) -> Callable[..., Any]:
    return lambda x, *rest: np.abs(x - value) < 1e-2


def _tied(a: Array, b: Array, *rest: Array) -> Array:
    return np.abs(a - b) < 1e-2


def _integer_power(a: Array, b: Array) -> Array:
    """Wrapping powers; negative ones truncate toward zero."""
    bits = 8 * a.dtype.itemsize
    signed = np.issubdtype(a.dtype, np.signedinteger)

    def power(base: int, exponent: int) -> int:
        if exponent < 0:
            return base if abs(base) == 1 and exponent % 2 else int(abs(base) == 1)
        value = pow(base, exponent, 1 << bits)
        return value - (1 << bits) if signed and value >= 1 << (bits - 1) else value

    pairs = np.broadcast(a, b)
    values = [power(int(x), int(y)) for x, y in pairs]
    return np.array(values, dtype=a.dtype).reshape(pairs.shape)


def _power(a: Array, b: Array) -> Array:
    if np.issubdtype(a.dtype, np.floating):
        return np.power(a, b)
    return a | ~b if a.dtype == bool else _integer_power(a, b)


def _between_integers(a: Array, b: Array) -> Array:
    quotient = a / b
    return np.abs(quotient - np.rint(quotient)) < 3e-2


def _rounding(function: Callable[..., Any]) -> Callable[..., Any]:
    """Leaves integers alone, which NumPy turns into floats."""
    return lambda x: function(x) if np.issubdtype(x.dtype, np.floating) else x


def philox(index: Array, key0: Array, key1: Array) -> list[Array]:
    """Philox-4x32-10 (Salmon et al., SC 2011) of counter (index, 0, 0, 0)."""
    mask = np.uint64(0xFFFFFFFF)
    words = [np.asarray(x).astype(np.int64).astype(np.uint64) & mask for x in (index, key0, key1)]
    c = [words[0], np.zeros_like(words[0]), np.zeros_like(words[0]), np.zeros_like(words[0])]
    k = [words[1], words[2]]
    for _ in range(10):
        product0 = c[0] * np.uint64(0xD2511F53)
        product1 = c[2] * np.uint64(0xCD9E8D57)
        shift = np.uint64(32)
        c = [
            (product1 >> shift) ^ c[1] ^ k[0],
            product1 & mask,
            (product0 >> shift) ^ c[3] ^ k[1],
            product0 & mask,
        ]
        k = [(k[0] + np.uint64(0x9E3779B9)) & mask, (k[1] + np.uint64(0xBB67AE85)) & mask]
    return c


def _unit(word: Array) -> Array:
    return (word >> np.uint64(8)).astype(np.float64) * 2.0**-24


def _random_uniform(index: Array, key0: Array, key1: Array) -> Array:
    return _unit(philox(index, key0, key1)[0])


def _random_normal(index: Array, key0: Array, key1: Array) -> Array:
    words = philox(index, key0, key1)
    return np.sqrt(-2 * np.log1p(-_unit(words[0]))) * np.cos(2 * np.pi * _unit(words[1]))


def _gelu_tanh(x: Array) -> Array:
    inner = np.sqrt(8 / np.pi) * (x + 0.044715 * x**3)
    return x / (1 + np.exp(-inner))


def _truncated_quotient(a: Array, b: Array) -> Array:
    if np.issubdtype(a.dtype, np.floating):
        return np.where((b == 0) | np.isinf(a), a / b, np.trunc((a - np.fmod(a, b)) / b))
    wide = [x.astype(object) for x in np.broadcast_arrays(a, b)]
    pairs = zip(wide[0].ravel(), wide[1].ravel(), strict=True)
    values = [
        0 if y == 0 else abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1) for x, y in pairs
    ]
    limit = 1 << (8 * a.dtype.itemsize)
    wrapped = [value % limit for value in values]
    unsigned = np.array(wrapped, dtype=f"u{a.dtype.itemsize}")
    return unsigned.astype(a.dtype).reshape(wide[0].shape)


def _shift(left: bool) -> Callable[..., Any]:
    """Counts below 0 count as past the width, which NumPy leaves open."""

    def shifted(a: Array, b: Array) -> Array:
        bits = 8 * a.dtype.itemsize
        inside = (b >= 0) & (b < bits)
        count = np.where(inside, b, 0).astype(a.dtype)
        if left:
            return np.where(inside, np.left_shift(a, count), 0).astype(a.dtype)
        return np.where(inside, np.right_shift(a, count), np.where(a < 0, -1, 0)).astype(a.dtype)

    return shifted


def _softplus(x: Array, beta: Array, threshold: Array) -> Array:
    # In extended precision: the rounding of the product shows in the tail.
    scaled = x.astype(np.longdouble) * beta
    return np.where(x * beta > threshold, x, np.logaddexp(0, scaled) / beta)


def _polygamma(order: int) -> Callable[..., Any]:
    """SciPy's for positive numbers; below 0 by the recurrence, and infinite at the poles."""

    def value(x: Array) -> Array:
        sign = 1.0 if order % 2 else -1.0
        pole = (x <= 0) & (x == np.trunc(x))
        steps = np.where((x < 0) & ~pole, np.ceil(-x), 0)
        shifted = np.where(pole, 1, x + steps)
        result = scipy.special.polygamma(order, shifted)
        factorial = scipy.special.factorial(order)
        for k in range(int(np.max(steps, initial=0))):
            result = result + np.where(k < steps, sign * factorial / (x + k) ** (order + 1), 0)
        return np.where(pole, sign * np.inf, result)

    return value


def _tanhshrink(x: Array) -> Array:
    """The difference; near 0 its series, where the difference has few digits."""
    x = x.astype(np.longdouble)
    z = x * x
    terms = [1 / np.longdouble(3), -2 / np.longdouble(15), 17 / np.longdouble(315), -62 / 2835]
    series = x * z * np.polynomial.polynomial.polyval(z, terms)
    return np.where(np.abs(x) < 0.002, series, x - np.tanh(x))


def _sinc(x: Array) -> Array:
    """Reduced by the nearest integer, so that the zeros are exact."""
    wide = np.abs(x.astype(np.longdouble))
    nearest = np.rint(wide)
    pi = 4 * np.arctan(np.longdouble(1))
    value = np.sin(pi * (wide - nearest)) / (pi * wide)
    return np.where(x == 0, 1, np.where(np.fmod(nearest, 2) == 0, value, -value))


def _bessel(order: int) -> Callable[..., Any]:
    """SciPy's, whose values past the range of numbers are NaN."""
    function = scipy.special.i1 if order else scipy.special.i0
    return lambda x: np.where(
        np.abs(x) > 800, np.abs(x) * np.inf * np.sign(x) ** order, function(x)
    )


def _lgamma(x: Array) -> Array:
    """SciPy's, with the poles that large negative numbers are."""
    return np.where((x < 0) & (x == np.trunc(x)), np.inf, scipy.special.gammaln(x))


def _logit(x: Array) -> Array:
    return np.where(np.abs(x - 0.5) < 0.25, 2 * np.arctanh(2 * x - 1), scipy.special.logit(x))


def _softsign(x: Array) -> Array:
    return np.where(np.isinf(x), np.sign(x), x / (1 + np.abs(x)))


def _softshrink(x: Array, lambd: Array) -> Array:
    return np.where(np.abs(x) <= lambd, 0, x - np.copysign(lambd, x))


def _hardswish(x: Array) -> Array:
    return np.where(x <= -3, 0, np.where(x >= 3, x, x * (x + 3) / 6))


def _mish(x: Array) -> Array:
    return np.where(x == -np.inf, -0.0, x * np.tanh(np.logaddexp(0, x)))


def _selu(x: Array) -> Array:
    """Klambauer et al., Self-Normalizing Neural Networks (2017), appendix A1."""
    alpha, scale = 1.6732632423543772848, 1.0507009873554804934
    return scale * np.where(x > 0, x, alpha * np.expm1(x))


def _celu(x: Array, alpha: Array) -> Array:
    return np.where(x > 0, x, alpha * np.expm1(x / alpha))


def _xlog(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda a, b: np.where((a == 0) & ~np.isnan(b), 0, a * function(b))


def _wrapping_sum(a: Array, b: Array) -> Array:
    return a | b if a.dtype == bool else a + b


def _next_bfloat16(a: Array, b: Array) -> Array:
    """By the place of the numbers in the order of their bits."""
    bits = a.astype(np.float32).view(np.int32) >> 16
    place = np.where(bits < 0, -(bits & 0x7FFF), bits) + np.where(b > a, 1, -1)
    negative = (place < 0) | ((place == 0) & (bits < 0))
    next_bits = np.abs(place).astype(np.uint32) << 16 | np.where(negative, 0x80000000, 0).astype(
        np.uint32
    )
    value = np.where(a == b, b, next_bits.view(np.float32))
    return np.where(np.isnan(a) | np.isnan(b), np.nan, value)


def _heaviside(x: Array, values: Array) -> Array:
    return np.where(x == 0, values, np.where(np.isnan(x), x, x > 0)).astype(x.dtype)


def _addcmul(a: Array, b: Array, c: Array, d: Array) -> Array:
    return _wrapping_sum(a, b * c * d if a.dtype != bool else b & c & d)


def _nan_to_num(x: Array, nan: Array, posinf: Array, neginf: Array) -> Array:
    if not np.issubdtype(x.dtype, np.floating):
        return x
    infinite = np.where(x > 0, posinf, neginf)
    return np.where(np.isnan(x), nan, np.where(np.isinf(x), infinite, x))


def _limited(x: Array, low: Any, high: Any) -> Array:
    return np.minimum(np.maximum(x, np.asarray(low, x.dtype)), np.asarray(high, x.dtype))


def _extreme(*operands: Array) -> Array:
    """Where a product on the way may leave the range of the dtype."""
    sizes = [np.abs(operand) for operand in operands]
    return np.any([(size > 2.0**13) | ((size != 0) & (size < 2.0**-13)) for size in sizes], axis=0)


REFERENCES: dict[str, Reference] = {
    "add": Reference(np.add),
    "sub": Reference(np.subtract),
    "mul": Reference(np.multiply),
    "div": Reference(np.true_divide, kinks=lambda a, b: np.abs(b) < 0.1),
    "floor_divide": Reference(np.floor_divide),
    "remainder": Reference(
        np.remainder,
        kinks=lambda a, b: _between_integers(a, b) | (np.abs(b) < 0.5),
    ),
    "trunc_divide": Reference(_truncated_quotient),
    "fmod": Reference(
        np.fmod,
        kinks=lambda a, b: _between_integers(a, b) | (np.abs(b) < 0.5),
    ),
    "pow": Reference(_power),
    "maximum": Reference(np.maximum, kinks=_tied),
    "minimum": Reference(np.minimum, kinks=_tied),
    "fmax": Reference(np.fmax, kinks=_tied),
    "fmin": Reference(np.fmin, kinks=_tied),
    "neg": Reference(np.negative),
    "positive": Reference(lambda x: x),
    "abs": Reference(np.abs, kinks=_near(0)),
    "sign": Reference(np.sign),
    "reciprocal": Reference(lambda x: 1 / x, kinks=lambda x: np.abs(x) < 0.1),
    "square": Reference(lambda x: x & x if x.dtype == bool else x * x),
    "sqrt": Reference(np.sqrt, kinks=_near(0)),
    "rsqrt": Reference(lambda x: 1 / np.sqrt(x)),
    "hypot": Reference(np.hypot),
    "copysign": Reference(np.copysign, kinks=_near(0)),
    "nextafter": Reference(
        np.nextafter,
        by_dtype={
            "float32": lambda a, b: np.nextafter(a.astype(np.float32), b.astype(np.float32)),
            "float16": lambda a, b: np.nextafter(a.astype(np.float16), b.astype(np.float16)),
            "bfloat16": _next_bfloat16,
        },
    ),
    "heaviside": Reference(_heaviside),
    "lerp": Reference(lambda a, b, c: a * (1 - c) + b * c, stated=_extreme),
    "addcmul": Reference(_addcmul, stated=_extreme),
    "addcdiv": Reference(lambda a, b, c, d: a + d * (b / c), stated=_extreme),
    "nan_to_num": Reference(_nan_to_num),
    "exp": Reference(np.exp),
    "exp2": Reference(np.exp2),
    "ldexp": Reference(lambda a, b: (a * np.exp2(b.astype(np.longdouble))).astype(np.float64)),
    "expm1": Reference(np.expm1),
    "log": Reference(np.log),
    "log2": Reference(np.log2),
    "log10": Reference(np.log10),
    "log1p": Reference(np.log1p),
    "logaddexp": Reference(np.logaddexp),
    "logaddexp2": Reference(np.logaddexp2),
    "xlogy": Reference(_xlog(np.log)),
    "xlog1py": Reference(_xlog(np.log1p)),
    "logit": Reference(_logit, kinks=lambda x: (x < 0.1) | (x > 0.9)),
    "sin": Reference(np.sin),
    "cos": Reference(np.cos),
    "tan": Reference(np.tan, kinks=lambda x: np.abs(np.cos(x)) < 0.2),
    "sinc": Reference(_sinc),
    "asin": Reference(np.arcsin, kinks=lambda x: np.abs(x) > 0.9),
    "acos": Reference(np.arccos, kinks=lambda x: np.abs(x) > 0.9),
    "atan": Reference(np.arctan),
    "atan2": Reference(np.arctan2, kinks=lambda a, b: np.hypot(a, b) < 0.5),
    "deg2rad": Reference(np.deg2rad),
    "rad2deg": Reference(np.rad2deg),
    "sinh": Reference(np.sinh),
    "cosh": Reference(np.cosh),
    "tanh": Reference(np.tanh),
    "asinh": Reference(np.arcsinh),
    "acosh": Reference(np.arccosh, kinks=lambda x: x < 1.1),
    "atanh": Reference(np.arctanh, kinks=lambda x: np.abs(x) > 0.9),
    "erf": Reference(scipy.special.erf),
    "erfc": Reference(scipy.special.erfc),
    "erfinv": Reference(scipy.special.erfinv, kinks=lambda x: np.abs(x) > 0.9),
    "lgamma": Reference(_lgamma, kinks=_near(0)),
    "digamma": Reference(scipy.special.digamma, kinks=lambda x: x < 0.1),
    "trigamma": Reference(_polygamma(1), kinks=lambda x: x < 0.1),
    "tetragamma": Reference(_polygamma(2), kinks=lambda x: x < 0.1),
    "pentagamma": Reference(_polygamma(3), kinks=lambda x: x < 0.1),
    "i0": Reference(_bessel(0)),
    "i1": Reference(_bessel(1)),
    "sigmoid": Reference(scipy.special.expit),
    "log_sigmoid": Reference(scipy.special.log_expit),
    "softplus": Reference(_softplus, kinks=lambda x, beta, limit: np.abs(x * beta - limit) < 1e-1),
    "relu": Reference(lambda x: np.maximum(x, np.zeros_like(x)), kinks=_near(0)),
    "relu6": Reference(lambda x: _limited(x, 0, 6), kinks=lambda x: _near(0)(x) | _near(6)(x)),
    "hardtanh": Reference(
        lambda x, low, high: np.minimum(np.maximum(x, low), high),
        kinks=lambda x, low, high: _tied(x, low) | _tied(x, high) | _tied(low, high),
    ),
    "hardsigmoid": Reference(
        lambda x: np.clip((x + 3) / 6, 0, 1), kinks=lambda x: _near(3)(np.abs(x))
    ),
    "hardswish": Reference(_hardswish, kinks=lambda x: _near(3)(np.abs(x))),
    "hardshrink": Reference(
        lambda x, lambd: np.where(np.abs(x) <= lambd, 0, x),
        kinks=lambda x, lambd: _tied(np.abs(x), lambd),
    ),
    "softshrink": Reference(
        _softshrink, kinks=lambda x, lambd: _tied(np.abs(x), lambd) | _near(0)(x)
    ),
    "threshold": Reference(
        lambda x, limit, value: np.where(x <= limit, value, x),
        kinks=lambda x, limit, value: _tied(x, limit),
    ),
    "softsign": Reference(_softsign, kinks=_near(0)),
    "tanhshrink": Reference(_tanhshrink),
    "celu": Reference(_celu, kinks=_near(0)),
    "selu": Reference(_selu, kinks=_near(0)),
    "mish": Reference(_mish),
    "leaky_relu": Reference(lambda x, slope: np.where(x >= 0, x, x * slope), kinks=_near(0)),
    "elu": Reference(lambda x, alpha: np.where(x > 0, x, alpha * np.expm1(x)), kinks=_near(0)),
    "silu": Reference(lambda x: x * scipy.special.expit(x)),
    "gelu": Reference(lambda x: x * 0.5 * scipy.special.erfc(-x / np.sqrt(2))),
    "gelu_tanh": Reference(_gelu_tanh),
    "floor": Reference(_rounding(np.floor)),
    "ceil": Reference(_rounding(np.ceil)),
    "trunc": Reference(_rounding(np.trunc)),
    "round": Reference(_rounding(np.rint)),
    "frac": Reference(
        lambda x: x - np.trunc(x).astype(x.dtype), kinks=lambda x: np.abs(x - np.rint(x)) < 1e-2
    ),
    "eq": Reference(np.equal),
    "ne": Reference(np.not_equal),
    "lt": Reference(np.less),
    "le": Reference(np.less_equal),
    "gt": Reference(np.greater),
    "ge": Reference(np.greater_equal),
    "isnan": Reference(np.isnan),
    "isinf": Reference(np.isinf),
    "isfinite": Reference(np.isfinite),
    "isposinf": Reference(lambda x: np.isinf(x) & (x > 0)),
    "isneginf": Reference(lambda x: np.isinf(x) & (x < 0)),
    "signbit": Reference(lambda x: np.signbit(x) if x.dtype != bool else np.zeros_like(x)),
    "logical_and": Reference(np.logical_and),
    "logical_or": Reference(np.logical_or),
    "logical_xor": Reference(np.logical_xor),
    "logical_not": Reference(np.logical_not),
    "bitwise_and": Reference(np.bitwise_and),
    "bitwise_or": Reference(np.bitwise_or),
    "bitwise_xor": Reference(np.bitwise_xor),
    "bitwise_not": Reference(np.bitwise_not),
    "bitwise_left_shift": Reference(_shift(left=True)),
    "bitwise_right_shift": Reference(_shift(left=False)),
    "where": Reference(lambda a, b, c: np.where(a != 0, b, c)),
    "clamp": Reference(
        lambda x, low, high: np.minimum(np.maximum(x, low), high),
        kinks=lambda x, low, high: _tied(x, low) | _tied(x, high) | _tied(low, high),
    ),
    "clamp_min": Reference(np.maximum, kinks=_tied),
    "clamp_max": Reference(np.minimum, kinks=_tied),
    "random_uniform": Reference(_random_uniform),
    "random_normal": Reference(_random_normal),
}


def formula(name: str) -> Callable[..., Any]:
    """The reference formula of a row, on arrays."""

    def value(*operands: Array) -> Array:
        arrays = np.broadcast_arrays(*operands)
        is_floating = np.issubdtype(arrays[0].dtype, np.floating)
        apply = _vkml._formula if is_floating else _vkml._integer_formula
        result = np.array(apply(name, [array.ravel().tolist() for array in arrays]))
        kind = np.float64 if is_floating else np.int64
        return result.astype(kind).astype(arrays[0].dtype).reshape(arrays[0].shape)

    return value


def reference_of(name: str) -> Reference:
    """What to compare an operator with."""
    return REFERENCES.get(name, Reference(formula(name)))


@dataclass(frozen=True)
class StatedRow:
    """A row of docs/operators.md: what is promised of an operator."""

    name: str
    arity: int
    result: str
    differentiable: bool
    domains: tuple[tuple[float, float], ...]
    defaults: tuple[float | None, ...]
    aliases: tuple[str, ...]
    operands: tuple[str, ...]
    ulps: float

    @property
    def domain(self) -> tuple[float, float]:
        """That of the first operand."""
        return self.domains[0]


def all_names() -> set[str]:
    """Every name of every elementwise operator."""
    return {name for row in stated_rows() for name in (row.name, *row.aliases)}


def _documentation() -> Path:
    return Path(__file__).parents[2] / "docs" / "operators.md"


def stated_rows() -> list[StatedRow]:
    """Every elementwise operator, as documented."""
    rows = []
    for line in _documentation().read_text().splitlines():
        cells = [cell.strip() for cell in line.replace("\\|", "/").split("|")[1:-1]]
        if len(cells) != 6 or not cells[0].startswith("`"):
            continue
        first_name, *aliases = cells[0].split("`")[1::2]
        name, operands = first_name.rstrip(")").split("(")
        parts = [part.strip().partition("=") for part in operands.split(",")]
        defaults = tuple(float(default) if default else None for _, _, default in parts)
        usual, *others = [
            tuple(float(end) for end in text.strip("] ").split("[")[1].split(","))
            for text in cells[4].split(";")
        ]
        by_name = dict(
            zip(
                [text.split("[")[0].strip() for text in cells[4].split(";")[1:]],
                others,
                strict=True,
            )
        )
        domains = tuple(by_name.get(operand, usual) for operand, _, _ in parts)
        rows.append(
            StatedRow(
                name,
                len(parts),
                cells[2],
                cells[3] == "yes",
                domains,
                defaults,
                tuple(aliases),
                tuple(operand for operand, _, _ in parts),
                float(cells[5]),
            )
        )
    return rows
