"""What PyTorch offers for complex numbers as well, of real ones; and a number taken apart."""

from __future__ import annotations

import builtins
import math
from typing import NamedTuple

import vkml
from vkml._vkml import Tensor
from vkml.argument_errors import check_arguments as _check_arguments

__all__ = ["angle", "conj", "frexp", "is_complex", "is_signed", "isreal", "real"]


class FrexpResult(NamedTuple):
    """A mantissa in [0.5, 1) by magnitude, and the exponent of 2."""

    mantissa: Tensor
    exponent: Tensor


def real(input: Tensor) -> Tensor:
    """The real part: the tensor itself, as all numbers here are real."""
    return input


def conj(input: Tensor) -> Tensor:
    """The complex conjugate: the tensor itself, as all numbers here are real."""
    return input


def isreal(input: Tensor) -> Tensor:
    """Whether the imaginary part is 0: True everywhere, as all numbers here are real."""
    return vkml.ones_like(input, dtype=vkml.bool)


def is_complex(input: Tensor) -> builtins.bool:
    """Whether the dtype is complex: never."""
    return False


def is_signed(input: Tensor) -> builtins.bool:
    """Whether the dtype has negative numbers."""
    return input.dtype not in (vkml.uint8, vkml.bool)


def angle(input: Tensor) -> Tensor:
    """The angle of a number in the complex plane: pi below 0, else 0; NaN stays."""
    floats = input if input.dtype.is_floating_point else input.to(vkml.float32)
    return vkml.where(vkml.isnan(floats), floats, vkml.where(floats < 0, math.pi, 0.0))


def frexp(input: Tensor) -> FrexpResult:
    """Mantissa and exponent: `input == mantissa * 2 ** exponent`, exactly.

    0, infinities and NaN are their own mantissa, with exponent 0. The gradient of the mantissa is
    that of a division by a constant power of 2.

    Args:
        input: Floating-point.

    Returns:
        A named tuple (mantissa, exponent): |mantissa| in [0.5, 1), and int32.
    """
    if not input.dtype.is_floating_point:
        raise vkml.DTypeError(f"[frexp] takes floating-point numbers, not {input.dtype}.")
    number = input.detach()
    plain = vkml.logical_and(vkml.isfinite(number), number != 0)
    one = vkml.where(plain, vkml.abs(number), 0.5)
    # The logarithm is off by one at most, next to powers of 2.
    guess = vkml.floor(vkml.log2(one)) + 1
    share = vkml.ldexp(one, -guess)
    guess = vkml.where(share >= 1, guess + 1, vkml.where(share < 0.5, guess - 1, guess))
    exponent = vkml.where(plain, guess, 0.0)
    return FrexpResult(vkml.ldexp(input, -exponent), exponent.to(vkml.int32))


_check_arguments(globals(), __all__)
