"""Dtypes: their numbers, kinds and conversions, by the Array API's names."""

from __future__ import annotations

from dataclasses import dataclass

import vkml
from vkml import Tensor
from vkml._vkml import dtype as DType
from vkml._vkml import result_type as result_type
from vkml.argument_errors import check_arguments as _check_arguments

__all__ = ["FInfo", "IInfo", "astype", "can_cast", "finfo", "iinfo", "isdtype", "result_type"]

# Digits of the mantissa behind the point, and bits of the exponent.
_FORMATS: dict[DType, tuple[int, int]] = {
    vkml.float16: (10, 5),
    vkml.bfloat16: (7, 8),
    vkml.float32: (23, 8),
    vkml.float64: (52, 11),
}
_KINDS: dict[str, tuple[DType, ...]] = {
    "bool": (vkml.bool,),
    "signed integer": (vkml.int32, vkml.int64),
    "unsigned integer": (vkml.uint8,),
    "real floating": tuple(_FORMATS),
    "complex floating": (),
}
_KINDS["integral"] = _KINDS["signed integer"] + _KINDS["unsigned integer"]
_KINDS["numeric"] = _KINDS["integral"] + _KINDS["real floating"] + _KINDS["complex floating"]


@dataclass(frozen=True)
class FInfo:
    """The numbers of a floating dtype.

    Attributes:
        bits: Of one element.
        eps: The step from 1 to the next number.
        max: The largest finite number.
        min: The smallest, -max.
        smallest_normal: The smallest positive number of full precision.
        dtype: The dtype.
    """

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: DType

    @property
    def tiny(self) -> float:
        """`smallest_normal` under NumPy's and PyTorch's name."""
        return self.smallest_normal


@dataclass(frozen=True)
class IInfo:
    """The numbers of an integer dtype.

    Attributes:
        bits: Of one element.
        max: The largest.
        min: The smallest.
        dtype: The dtype.
    """

    bits: int
    max: int
    min: int
    dtype: DType


def _dtype_of(given: DType | Tensor) -> DType:
    return given.dtype if isinstance(given, Tensor) else given


def finfo(type: DType | Tensor, /) -> FInfo:
    """The limits of a floating dtype, or of a tensor's. Raises DTypeError for another kind."""
    dtype = _dtype_of(type)
    if dtype not in _FORMATS:
        raise vkml.DTypeError(f"[finfo] {dtype} is no floating dtype. Use iinfo for integers")
    digits, exponent_bits = _FORMATS[dtype]
    bias = 2 ** (exponent_bits - 1) - 1
    largest = (2 - 2.0**-digits) * 2.0**bias
    bits = 8 * dtype.itemsize
    return FInfo(bits, 2.0**-digits, largest, -largest, 2.0 ** (1 - bias), dtype)


def iinfo(type: DType | Tensor, /) -> IInfo:
    """The limits of an integer dtype, or of a tensor's. Raises DTypeError for another kind."""
    dtype = _dtype_of(type)
    if not isdtype(dtype, "integral"):
        raise vkml.DTypeError(f"[iinfo] {dtype} is no integer dtype. Use finfo for floats")
    bits = 8 * dtype.itemsize
    if isdtype(dtype, "unsigned integer"):
        return IInfo(bits, 2**bits - 1, 0, dtype)
    return IInfo(bits, 2 ** (bits - 1) - 1, -(2 ** (bits - 1)), dtype)


def isdtype(dtype: DType, kind: DType | str | tuple[DType | str, ...]) -> bool:
    """Whether a dtype is another one, of a kind, or one of several of either.

    Args:
        dtype: The dtype.
        kind: A dtype; "bool", "signed integer", "unsigned integer", "integral", "real floating",
            "complex floating" or "numeric"; or a tuple of those.

    Raises:
        ArgumentError: For another name of a kind.
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, part) for part in kind)
    if isinstance(kind, DType):
        return bool(dtype == kind)
    if kind not in _KINDS:
        raise vkml.ArgumentError(f"[isdtype] kind {kind!r} is not one of {sorted(_KINDS)}")
    return dtype in _KINDS[kind]


def can_cast(from_: DType | Tensor, to: DType, /) -> bool:
    """Whether promotion leads from a dtype, or a tensor's, to another one."""
    return bool(result_type(_dtype_of(from_), to) == to)


def astype(
    x: Tensor, dtype: DType, /, *, copy: bool = True, device: vkml.DeviceLike | None = None
) -> Tensor:
    """The elements in another dtype.

    Args:
        x: Any tensor.
        dtype: The dtype of the result.
        copy: Whether the result is a tensor of its own where `x` has the dtype already.
        device: Another device, or None for that of `x`.
    """
    is_here = device is None or vkml.Device(device) == x.device
    if copy and is_here and x.dtype == dtype:
        return x.clone()
    return x.to(dtype) if is_here else x.to(dtype).to(device)


_check_arguments(globals(), __all__)
