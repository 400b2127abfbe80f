"""Elementwise functions: vkML's own, which have the Array API's names and dtype rules.

Every public name of this module is one of the namespace.
"""

from __future__ import annotations

import vkml as _vkml
from vkml import Tensor as _Tensor
from vkml._vkml import abs as abs
from vkml._vkml import acos as acos
from vkml._vkml import acosh as acosh
from vkml._vkml import add as add
from vkml._vkml import asin as asin
from vkml._vkml import asinh as asinh
from vkml._vkml import atan as atan
from vkml._vkml import atan2 as atan2
from vkml._vkml import atanh as atanh
from vkml._vkml import bitwise_and as bitwise_and
from vkml._vkml import bitwise_invert as bitwise_invert
from vkml._vkml import bitwise_left_shift as bitwise_left_shift
from vkml._vkml import bitwise_or as bitwise_or
from vkml._vkml import bitwise_right_shift as bitwise_right_shift
from vkml._vkml import bitwise_xor as bitwise_xor
from vkml._vkml import ceil as ceil
from vkml._vkml import copysign as copysign
from vkml._vkml import cos as cos
from vkml._vkml import cosh as cosh
from vkml._vkml import divide as divide
from vkml._vkml import exp as exp
from vkml._vkml import expm1 as expm1
from vkml._vkml import floor as floor
from vkml._vkml import floor_divide as floor_divide
from vkml._vkml import greater as greater
from vkml._vkml import greater_equal as greater_equal
from vkml._vkml import hypot as hypot
from vkml._vkml import isfinite as isfinite
from vkml._vkml import isinf as isinf
from vkml._vkml import isnan as isnan
from vkml._vkml import less as less
from vkml._vkml import less_equal as less_equal
from vkml._vkml import log as log
from vkml._vkml import log1p as log1p
from vkml._vkml import log2 as log2
from vkml._vkml import log10 as log10
from vkml._vkml import logaddexp as logaddexp
from vkml._vkml import logical_and as logical_and
from vkml._vkml import logical_not as logical_not
from vkml._vkml import logical_or as logical_or
from vkml._vkml import logical_xor as logical_xor
from vkml._vkml import maximum as maximum
from vkml._vkml import minimum as minimum
from vkml._vkml import multiply as multiply
from vkml._vkml import negative as negative
from vkml._vkml import nextafter as nextafter
from vkml._vkml import not_equal as not_equal
from vkml._vkml import positive as positive
from vkml._vkml import pow as pow
from vkml._vkml import reciprocal as reciprocal
from vkml._vkml import remainder as remainder
from vkml._vkml import round as round
from vkml._vkml import sign as sign
from vkml._vkml import signbit as signbit
from vkml._vkml import sin as sin
from vkml._vkml import sinh as sinh
from vkml._vkml import sqrt as sqrt
from vkml._vkml import square as square
from vkml._vkml import subtract as subtract
from vkml._vkml import tan as tan
from vkml._vkml import tanh as tanh
from vkml._vkml import trunc as trunc
from vkml.argument_errors import check_arguments as _check_arguments

equal = _vkml.eq


def clip(
    x: _Tensor, /, min: _Tensor | float | None = None, max: _Tensor | float | None = None
) -> _Tensor:
    """Elements limited to [min, max], where they are given, in the dtype of x; NaN stays."""
    if min is None and max is None:
        return x
    return _vkml.clip(x, min, max).to(x.dtype)


def conj(x: _Tensor, /) -> _Tensor:
    """The complex conjugate: x itself, as every dtype is real."""
    return x


def real(x: _Tensor, /) -> _Tensor:
    """The real part: x itself, as every dtype is real."""
    return x


def imag(x: _Tensor, /) -> _Tensor:
    """The imaginary part: zeros, as every dtype is real."""
    return _vkml.zeros_like(x)


_check_arguments(globals())
