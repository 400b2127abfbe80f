"""Sizes at the ends of 64 bits, and axes past 2^31: an error that names the operator, or a result.

Broadcast views have such axes without any memory.
"""

from collections.abc import Callable

import pytest

import vkml

LEAST, MOST = -(2**63), 2**63 - 1


def x() -> vkml.Tensor:
    return vkml.arange(6).reshape(2, 3)


def image() -> vkml.Tensor:
    return vkml.ones(1, 1, 4, 4)


TOO_LARGE = {
    "repeat": lambda: x().repeat(2**62, 2**62),
    "repeat_interleave": lambda: vkml.repeat_interleave(vkml.ones(4), 2**62),
    "diag_embed": lambda: vkml.diag_embed(vkml.ones(3), LEAST),
    "conv_transpose2d": lambda: vkml.conv_transpose2d(image(), image(), stride=2**62),
    "unfold": lambda: vkml.nn.functional.unfold(image(), 2, padding=2**62),
    "random": lambda: vkml.rand(2**32 + 1),
    "pad": lambda: vkml.pad(vkml.ones(3), (MOST, MOST)),
    "conv2d": lambda: vkml.conv2d(image(), image(), dilation=2**62),
    "max_pool2d": lambda: vkml.max_pool2d(image(), 3, dilation=2**63 - 1),
}


@pytest.mark.parametrize("operator", TOO_LARGE)
def test_sizes_past_64_bits_are_refused(operator: str) -> None:
    with pytest.raises(vkml.ShapeError, match=rf"\[{operator}\]"):
        TOO_LARGE[operator]()


def test_arguments_at_the_ends_of_64_bits() -> None:
    assert x()[:, ::LEAST].tolist() == [[2], [5]]
    assert x()[:, ::MOST].tolist() == [[0], [3]]
    assert vkml.diagonal(x(), LEAST).shape == (0,)
    assert vkml.diagonal(x(), MOST).shape == (0,)
    assert vkml.roll(vkml.arange(3), LEAST, 0).tolist() == [2, 0, 1]
    assert vkml.triu(x(), MOST).tolist() == [[0, 0, 0]] * 2
    assert vkml.tril(x(), LEAST).tolist() == [[0, 0, 0]] * 2


POSITIONS: dict[str, Callable[[vkml.Tensor], vkml.Tensor]] = {
    "argmax": lambda t: vkml.argmax(t),
    "argmin": lambda t: vkml.argmin(t, 1),
    "cummax": lambda t: vkml.cummax(t, 1)[1],
    "argsort": lambda t: vkml.argsort(t, 1),
    "searchsorted": lambda t: vkml.searchsorted(t, vkml.ones(1, 1)),
}


@pytest.mark.parametrize("operator", POSITIONS)
def test_positions_past_32_bits_are_refused(operator: str) -> None:
    """They are int32: of more elements they would come out negative."""
    large = vkml.ones(1, 1).broadcast_to((1, 2**31 + 1))
    with pytest.raises(vkml.ShapeError, match=rf"\[{operator}\] positions among"):
        POSITIONS[operator](large)
