"""Special functions by the names of `torch.special`, and polynomials of orthogonal families.

What is not here is in SciPy, whose functions take tensors; see `vkml.left_out`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import vkml
from vkml._vkml import Tensor
from vkml._vkml import digamma as digamma
from vkml._vkml import entr as entr
from vkml._vkml import erf as erf
from vkml._vkml import erfc as erfc
from vkml._vkml import erfcx as erfcx
from vkml._vkml import erfinv as erfinv
from vkml._vkml import exp2 as exp2
from vkml._vkml import expit as expit
from vkml._vkml import expm1 as expm1
from vkml._vkml import gammaln as gammaln
from vkml._vkml import i0 as i0
from vkml._vkml import i0 as modified_bessel_i0
from vkml._vkml import i0e as i0e
from vkml._vkml import i1 as i1
from vkml._vkml import i1 as modified_bessel_i1
from vkml._vkml import i1e as i1e
from vkml._vkml import log1p as log1p
from vkml._vkml import log_ndtr as log_ndtr
from vkml._vkml import log_softmax as log_softmax
from vkml._vkml import logit as logit
from vkml._vkml import logsumexp as logsumexp
from vkml._vkml import mvlgamma as multigammaln
from vkml._vkml import ndtr as ndtr
from vkml._vkml import ndtri as ndtri
from vkml._vkml import polygamma as polygamma
from vkml._vkml import psi as psi
from vkml._vkml import round as round
from vkml._vkml import sinc as sinc
from vkml._vkml import softmax as softmax
from vkml._vkml import xlog1py as xlog1py
from vkml._vkml import xlogy as xlogy
from vkml.argument_errors import check_arguments as _check_arguments

__all__ = [
    "chebyshev_polynomial_t",
    "chebyshev_polynomial_u",
    "chebyshev_polynomial_v",
    "chebyshev_polynomial_w",
    "digamma",
    "entr",
    "erf",
    "erfc",
    "erfcx",
    "erfinv",
    "exp2",
    "expit",
    "expm1",
    "gammaln",
    "hermite_polynomial_h",
    "hermite_polynomial_he",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "laguerre_polynomial_l",
    "legendre_polynomial_p",
    "log1p",
    "log_ndtr",
    "log_softmax",
    "logit",
    "logsumexp",
    "modified_bessel_i0",
    "modified_bessel_i1",
    "multigammaln",
    "ndtr",
    "ndtri",
    "polygamma",
    "psi",
    "round",
    "shifted_chebyshev_polynomial_t",
    "shifted_chebyshev_polynomial_u",
    "shifted_chebyshev_polynomial_v",
    "shifted_chebyshev_polynomial_w",
    "sinc",
    "softmax",
    "spherical_bessel_j0",
    "xlog1py",
    "xlogy",
    "zeta",
]


def _recurrence(
    operator: str, n: Any, first: Tensor, step: Callable[[int, Tensor, Tensor], Tensor]
) -> Tensor:
    """Member n of a family that begins with 1 and `first`, and goes on by `step(k, p, before)`."""
    if isinstance(n, Tensor):
        raise vkml.ArgumentError(f"[{operator}] n is a tensor. Pass an integer.")
    before = vkml.ones_like(first)
    if n <= 0:
        return before if n == 0 else vkml.zeros_like(first)
    current = first
    for k in range(1, n):
        before, current = current, step(k, current, before)
    return current


def _chebyshev(operator: str, x: Tensor, n: int, first: Tensor) -> Tensor:
    return _recurrence(operator, n, first, lambda k, p, before: 2 * x * p - before)


def chebyshev_polynomial_t(input: Tensor, n: int) -> Tensor:
    """The Chebyshev polynomial of the first kind: cos(n t) at cos(t)."""
    return _chebyshev("chebyshev_polynomial_t", input, n, input * 1.0)


def chebyshev_polynomial_u(input: Tensor, n: int) -> Tensor:
    """The Chebyshev polynomial of the second kind: sin((n + 1) t) / sin(t) at cos(t)."""
    return _chebyshev("chebyshev_polynomial_u", input, n, input * 2.0)


def chebyshev_polynomial_v(input: Tensor, n: int) -> Tensor:
    """The Chebyshev polynomial of the third kind: cos((n + 1/2) t) / cos(t / 2) at cos(t)."""
    return _chebyshev("chebyshev_polynomial_v", input, n, input * 2.0 - 1)


def chebyshev_polynomial_w(input: Tensor, n: int) -> Tensor:
    """The Chebyshev polynomial of the fourth kind: sin((n + 1/2) t) / sin(t / 2) at cos(t)."""
    return _chebyshev("chebyshev_polynomial_w", input, n, input * 2.0 + 1)


def shifted_chebyshev_polynomial_t(input: Tensor, n: int) -> Tensor:
    """`chebyshev_polynomial_t` at 2 x - 1."""
    return chebyshev_polynomial_t(input * 2.0 - 1, n)


def shifted_chebyshev_polynomial_u(input: Tensor, n: int) -> Tensor:
    """`chebyshev_polynomial_u` at 2 x - 1."""
    return chebyshev_polynomial_u(input * 2.0 - 1, n)


def shifted_chebyshev_polynomial_v(input: Tensor, n: int) -> Tensor:
    """`chebyshev_polynomial_v` at 2 x - 1."""
    return chebyshev_polynomial_v(input * 2.0 - 1, n)


def shifted_chebyshev_polynomial_w(input: Tensor, n: int) -> Tensor:
    """`chebyshev_polynomial_w` at 2 x - 1."""
    return chebyshev_polynomial_w(input * 2.0 - 1, n)


def hermite_polynomial_h(input: Tensor, n: int) -> Tensor:
    """The physicist's Hermite polynomial: orthogonal under exp(-x^2)."""
    x = input * 2.0
    return _recurrence("hermite_polynomial_h", n, x, lambda k, p, q: x * p - 2 * k * q)


def hermite_polynomial_he(input: Tensor, n: int) -> Tensor:
    """The probabilist's Hermite polynomial: orthogonal under exp(-x^2 / 2)."""
    x = input * 1.0
    return _recurrence("hermite_polynomial_he", n, x, lambda k, p, q: x * p - k * q)


def laguerre_polynomial_l(input: Tensor, n: int) -> Tensor:
    """The Laguerre polynomial: orthogonal under exp(-x) on the positive numbers."""
    x = input * 1.0
    return _recurrence(
        "laguerre_polynomial_l",
        n,
        1 - x,
        lambda k, p, q: ((2 * k + 1 - x) * p - k * q) / (k + 1),
    )


def legendre_polynomial_p(input: Tensor, n: int) -> Tensor:
    """The Legendre polynomial: orthogonal on [-1, 1]."""
    x = input * 1.0
    return _recurrence(
        "legendre_polynomial_p",
        n,
        x,
        lambda k, p, q: ((2 * k + 1) * x * p - k * q) / (k + 1),
    )


def spherical_bessel_j0(input: Tensor) -> Tensor:
    """The spherical Bessel function of order 0: sin(x) / x, 1 at 0."""
    return vkml.sinc(input / math.pi)


_TERMS = 9  # summed before the rest is approximated
# B(2k) / (2k)! of the Bernoulli numbers, k from 1: coefficients of Euler's and Maclaurin's formula.
_BERNOULLI = (
    *(1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160),
    *(-691 / 1307674368000, 1 / 74724249600, -3617 / 10670622842880000),
)


def zeta(input: Tensor, other: Tensor | float) -> Tensor:
    """Hurwitz' zeta function: the sum of (k + q)^-s over k from 0, for s above 1 and q above 0.

    Euler's and Maclaurin's formula after nine terms (NIST Handbook 25.11). Infinite at s = 1 and at
    q = 0; NaN for smaller s or q.

    Args:
        input: The exponent s.
        other: The offset q.
    """
    s = input if input.dtype.is_floating_point else input.to(vkml.float32)
    q = other if isinstance(other, Tensor) else vkml.full_like(s, float(other))
    valid = vkml.logical_and(s > 1, q > 0)
    # Where the formula does not hold it is not evaluated, so that gradients stay finite.
    s_safe, q_safe = vkml.where(valid, s, 2.0), vkml.where(valid, q, 1.0)
    end = q_safe + _TERMS
    total = q_safe**-s_safe
    for k in range(1, _TERMS):
        total = total + (q_safe + k) ** -s_safe
    tail = end**-s_safe
    total = total + end * tail / (s_safe - 1) + tail * 0.5
    factor = s_safe * tail / end
    for k, coefficient in enumerate(_BERNOULLI):
        total = total + coefficient * factor
        factor = factor * (s_safe + 2 * k + 1) * (s_safe + 2 * k + 2) / (end * end)
    pole = vkml.logical_or(vkml.logical_and(s == 1, q > 0), vkml.logical_and(q == 0, s >= 1))
    return vkml.where(valid, total, vkml.where(pole, math.inf, math.nan))


_check_arguments(globals(), __all__)
