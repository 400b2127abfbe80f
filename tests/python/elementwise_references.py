"""NumPy's and SciPy's word on every elementwise operator, independent of the formulas in the table.

Floating operands come as float64 arrays that hold values of the tested dtype, integers as arrays of
their own dtype.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.special

Array = np.ndarray


@dataclass(frozen=True)
class Reference:
    """What an operator computes, and what tests of it have to know.

    Attributes:
        function: Takes one array for each operand.
        kinks: Where the derivative jumps: a predicate on the operands. Gradients are not compared
            there.
        stated: Operands where the documentation states another value than `function`.
    """

    function: Callable[..., Any]
    kinks: Callable[..., Any] | None = None
    stated: Callable[..., Any] | None = None


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


def _past(limit: float) -> Callable[..., Any]:
    return lambda x: np.isfinite(x) & (np.abs(x) >= limit)


REFERENCES: dict[str, Reference] = {
    "add": Reference(np.add),
    "sub": Reference(np.subtract),
    "mul": Reference(np.multiply),
    "div": Reference(np.true_divide, kinks=lambda a, b: np.abs(b) < 0.1),
    "floor_divide": Reference(np.floor_divide),
    "remainder": Reference(
        np.remainder,
        kinks=lambda a, b: _between_integers(a, b) | (np.abs(b) < 0.5),
        stated=lambda a, b: np.abs(a / b) >= 2.0**46,
    ),
    "pow": Reference(_power),
    "maximum": Reference(np.maximum, kinks=_tied),
    "minimum": Reference(np.minimum, kinks=_tied),
    "neg": Reference(np.negative),
    "abs": Reference(np.abs, kinks=_near(0)),
    "sign": Reference(np.sign),
    "reciprocal": Reference(lambda x: 1 / x, kinks=lambda x: np.abs(x) < 0.1),
    "square": Reference(lambda x: x & x if x.dtype == bool else x * x),
    "sqrt": Reference(np.sqrt, kinks=_near(0)),
    "rsqrt": Reference(lambda x: 1 / np.sqrt(x)),
    "exp": Reference(np.exp),
    "exp2": Reference(np.exp2),
    "expm1": Reference(np.expm1),
    "log": Reference(np.log),
    "log2": Reference(np.log2),
    "log10": Reference(np.log10),
    "log1p": Reference(np.log1p),
    "sin": Reference(np.sin, stated=_past(2.0**23)),
    "cos": Reference(np.cos, stated=_past(2.0**23)),
    "tan": Reference(np.tan, kinks=lambda x: np.abs(np.cos(x)) < 0.2, stated=_past(2.0**23)),
    "atan": Reference(np.arctan),
    "sinh": Reference(np.sinh),
    "cosh": Reference(np.cosh),
    "tanh": Reference(np.tanh),
    "erf": Reference(scipy.special.erf),
    "erfc": Reference(scipy.special.erfc),
    "sigmoid": Reference(scipy.special.expit),
    "log_sigmoid": Reference(scipy.special.log_expit),
    "softplus": Reference(lambda x: np.logaddexp(0, x)),
    "relu": Reference(lambda x: np.maximum(x, np.zeros_like(x)), kinks=_near(0)),
    "leaky_relu": Reference(lambda x, slope: np.where(x >= 0, x, x * slope), kinks=_near(0)),
    "elu": Reference(lambda x, alpha: np.where(x > 0, x, alpha * np.expm1(x)), kinks=_near(0)),
    "silu": Reference(lambda x: x * scipy.special.expit(x)),
    "gelu": Reference(lambda x: x * 0.5 * scipy.special.erfc(-x / np.sqrt(2))),
    "gelu_tanh": Reference(_gelu_tanh),
    "floor": Reference(_rounding(np.floor)),
    "ceil": Reference(_rounding(np.ceil)),
    "trunc": Reference(_rounding(np.trunc)),
    "round": Reference(_rounding(np.rint)),
    "eq": Reference(np.equal),
    "ne": Reference(np.not_equal),
    "lt": Reference(np.less),
    "le": Reference(np.less_equal),
    "gt": Reference(np.greater),
    "ge": Reference(np.greater_equal),
    "isnan": Reference(np.isnan),
    "isinf": Reference(np.isinf),
    "isfinite": Reference(np.isfinite),
    "logical_and": Reference(np.logical_and),
    "logical_or": Reference(np.logical_or),
    "logical_xor": Reference(np.logical_xor),
    "logical_not": Reference(np.logical_not),
    "bitwise_and": Reference(np.bitwise_and),
    "bitwise_or": Reference(np.bitwise_or),
    "bitwise_xor": Reference(np.bitwise_xor),
    "bitwise_not": Reference(np.bitwise_not),
    "where": Reference(lambda a, b, c: np.where(a != 0, b, c)),
    "clamp": Reference(
        lambda x, low, high: np.minimum(np.maximum(x, low), high),
        kinks=lambda x, low, high: _tied(x, low) | _tied(x, high) | _tied(low, high),
    ),
    "random_uniform": Reference(_random_uniform),
    "random_normal": Reference(_random_normal),
}


@dataclass(frozen=True)
class StatedRow:
    """A row of docs/operators.md: what is promised of an operator."""

    name: str
    arity: int
    result: str
    differentiable: bool
    domain: tuple[float, float]
    ulps: float


def _documentation() -> Path:
    return Path(__file__).parents[2] / "docs" / "operators.md"


def stated_rows() -> list[StatedRow]:
    """Every elementwise operator, as documented."""
    rows = []
    for line in _documentation().read_text().splitlines():
        cells = [cell.strip() for cell in line.replace("\\|", "/").split("|")[1:-1]]
        if len(cells) != 6 or not cells[0].startswith("`"):
            continue
        name, operands = cells[0].strip("`").rstrip(")").split("(")
        low, high = cells[4].strip("[]").split(",")
        domain = (float(low), float(high))
        arity = operands.count(",") + 1
        rows.append(StatedRow(name, arity, cells[2], cells[3] == "yes", domain, float(cells[5])))
    return rows
