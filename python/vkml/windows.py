"""Windows of signal processing, by PyTorch's names: weights that fall off towards both ends."""

from __future__ import annotations

import math
from collections.abc import Sequence

import vkml
from vkml._vkml import Tensor
from vkml._vkml import dtype as DType
from vkml.argument_errors import check_arguments as _check_arguments

__all__ = [
    "bartlett_window",
    "blackman_window",
    "hamming_window",
    "hann_window",
    "kaiser_window",
]


def _places(
    operator: str, length: int, periodic: bool, dtype: DType | None, device: vkml.DeviceLike | None
) -> tuple[Tensor, int]:
    """The numbers of the weights, and by how many steps the two ends are apart."""
    if length < 0:
        raise vkml.ArgumentError(f"[{operator}] window_length is {length}. Pass 0 or more.")
    kind = vkml.float32 if dtype is None else dtype
    if not kind.is_floating_point:
        raise vkml.DTypeError(f"[{operator}] dtype is {kind}. Pass a floating-point dtype.")
    steps = length if periodic else length - 1
    return vkml.arange(length, dtype=kind, device=device), max(steps, 1)


def _cosines(
    operator: str,
    length: int,
    periodic: bool,
    coefficients: Sequence[float],
    dtype: DType | None,
    device: vkml.DeviceLike | None,
) -> Tensor:
    """Sums of cosines of multiples of the angle that goes once round from end to end."""
    place, steps = _places(operator, length, periodic, dtype, device)
    if length == 1:
        return vkml.ones_like(place)
    angle = place * (2 * math.pi / steps)
    result = vkml.full_like(place, coefficients[0])
    for k, coefficient in enumerate(coefficients[1:], start=1):
        result = result + coefficient * vkml.cos(angle * k)
    return result


def bartlett_window(
    window_length: int,
    periodic: bool = True,
    *,
    dtype: DType | None = None,
    device: vkml.DeviceLike | None = None,
) -> Tensor:
    """A triangle: 1 - |2 n / N - 1|, where N is the length, or one less unless periodic."""
    place, steps = _places("bartlett_window", window_length, periodic, dtype, device)
    if window_length == 1:
        return vkml.ones_like(place)
    return 1 - vkml.abs(place * (2 / steps) - 1)


def blackman_window(
    window_length: int,
    periodic: bool = True,
    *,
    dtype: DType | None = None,
    device: vkml.DeviceLike | None = None,
) -> Tensor:
    """0.42 - 0.5 cos(2 pi n / N) + 0.08 cos(4 pi n / N)."""
    weights = (0.42, -0.5, 0.08)
    return _cosines("blackman_window", window_length, periodic, weights, dtype, device)


def hamming_window(
    window_length: int,
    periodic: bool = True,
    alpha: float = 0.54,
    beta: float = 0.46,
    *,
    dtype: DType | None = None,
    device: vkml.DeviceLike | None = None,
) -> Tensor:
    """A raised cosine: alpha - beta cos(2 pi n / N)."""
    weights = (alpha, -beta)
    return _cosines("hamming_window", window_length, periodic, weights, dtype, device)


def hann_window(
    window_length: int,
    periodic: bool = True,
    *,
    dtype: DType | None = None,
    device: vkml.DeviceLike | None = None,
) -> Tensor:
    """The square of a sine: (1 - cos(2 pi n / N)) / 2."""
    return _cosines("hann_window", window_length, periodic, (0.5, -0.5), dtype, device)


def kaiser_window(
    window_length: int,
    periodic: bool = True,
    beta: float = 12.0,
    *,
    dtype: DType | None = None,
    device: vkml.DeviceLike | None = None,
) -> Tensor:
    """i0(beta sqrt(1 - (2 n / N - 1)^2)) / i0(beta), by the Bessel function `i0`."""
    place, steps = _places("kaiser_window", window_length, periodic, dtype, device)
    if window_length == 1:
        return vkml.ones_like(place)
    x = place * (2 / steps) - 1
    root = vkml.sqrt(vkml.clamp(1 - x * x, min=0.0))
    return vkml.i0(root * beta) / vkml.i0(vkml.full_like(place, beta))


_check_arguments(globals(), __all__)
