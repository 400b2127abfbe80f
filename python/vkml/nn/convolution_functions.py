"""Convolutions over one and two axes, their transposes, and windows as columns.

One axis is two of which the first has extent 1, so that both share a kernel.
"""

from __future__ import annotations

from typing import Literal

import vkml
from vkml import Tensor
from vkml.nn.pairs import IntOrPair, as_pair, as_single

Padding = IntOrPair | Literal["valid", "same"]
SinglePadding = int | tuple[int] | Literal["valid", "same"]


def _check_rank(input: Tensor, batched: int, operator: str) -> None:
    if input.ndim not in (batched, batched - 1):
        raise vkml.ShapeError(
            f"[{operator}] input has shape {tuple(input.shape)}. Pass {batched} axes, or "
            f"{batched - 1} for a single example."
        )


def _same_padding(
    input: Tensor,
    weight: Tensor,
    stride: tuple[int, int],
    dilation: tuple[int, int],
    operator: str,
) -> tuple[Tensor, tuple[int, int]]:
    """The input, and zeros on each side of it, such that the extents stay."""
    if stride != (1, 1):
        raise vkml.ArgumentError(
            f"[{operator}] padding='same' needs stride 1, got {stride}. Give padding in numbers."
        )
    height, width = (d * (k - 1) for d, k in zip(dilation, weight.shape[2:], strict=True))
    if height % 2 == 0 and width % 2 == 0:
        return input, (height // 2, width // 2)
    # An even kernel needs one more zero behind than in front.
    sides = (width // 2, width - width // 2, height // 2, height - height // 2)
    return vkml.pad(input, sides), (0, 0)


def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: IntOrPair = 1,
    padding: Padding = 0,
    dilation: IntOrPair = 1,
    groups: int = 1,
) -> Tensor:
    """Cross-correlation over the last two axes.

    Args:
        input: Shape (batch, in, height, width), or without the batch.
        weight: Shape (out, in / groups, kernel height, kernel width).
        bias: Shape (out,), or None.
        stride: Steps of the kernel, for both axes or for each.
        padding: Zeros on each side, for both axes or for each; `valid` is 0, and `same` keeps the
            extents (for stride 1).
        dilation: Distance between kernel elements.
        groups: Blocks of channels that do not see each other.
    """
    _check_rank(input, 4, "conv2d")
    if input.ndim == 3:
        single = input.unsqueeze(0)
        return conv2d(single, weight, bias, stride, padding, dilation, groups).squeeze(0)
    if isinstance(padding, str):
        if padding not in ("valid", "same"):
            raise vkml.ArgumentError(
                f"[conv2d] padding is {padding!r}. Pass 'valid', 'same' or numbers."
            )
        sides = (0, 0)
        if padding == "same":
            input, sides = _same_padding(
                input, weight, as_pair(stride), as_pair(dilation), "conv2d"
            )
    else:
        sides = as_pair(padding)
    return vkml.conv2d(input, weight, bias, as_pair(stride), sides, as_pair(dilation), groups)


def conv1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: int | tuple[int] = 1,
    padding: SinglePadding = 0,
    dilation: int | tuple[int] = 1,
    groups: int = 1,
) -> Tensor:
    """Cross-correlation over the last axis; arguments as `conv2d`, for one axis.

    Args:
        input: Shape (batch, in, length), or without the batch.
        weight: Shape (out, in / groups, kernel length).
        bias: Shape (out,), or None.
        stride: Steps of the kernel.
        padding: Zeros on each side, `valid` or `same`.
        dilation: Distance between kernel elements.
        groups: Blocks of channels that do not see each other.
    """
    _check_rank(input, 3, "conv1d")
    sides: Padding = padding if isinstance(padding, str) else (0, as_single(padding))
    result = conv2d(
        input.unsqueeze(-2),
        weight.unsqueeze(-2),
        bias,
        (1, as_single(stride)),
        sides,
        (1, as_single(dilation)),
        groups,
    )
    return result.squeeze(-2)


def conv_transpose2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: IntOrPair = 1,
    padding: IntOrPair = 0,
    output_padding: IntOrPair = 0,
    groups: int = 1,
    dilation: IntOrPair = 1,
) -> Tensor:
    """The gradient of `conv2d` with respect to its input, as an operator.

    Args:
        input: Shape (batch, in, height, width), or without the batch.
        weight: Shape (in, out / groups, kernel height, kernel width).
        bias: Shape (out,), or None.
        stride: Distance between input elements in the result.
        padding: Rows and columns cut off each side of the result.
        output_padding: Rows and columns added at its end, smaller than the stride.
        groups: Blocks of channels that do not see each other.
        dilation: Distance between kernel elements.
    """
    _check_rank(input, 4, "conv_transpose2d")
    batched = input if input.ndim == 4 else input.unsqueeze(0)
    result = vkml.conv_transpose2d(
        batched,
        weight,
        bias,
        as_pair(stride),
        as_pair(padding),
        as_pair(output_padding),
        groups,
        as_pair(dilation),
    )
    return result if input.ndim == 4 else result.squeeze(0)


def conv_transpose1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: int | tuple[int] = 1,
    padding: int | tuple[int] = 0,
    output_padding: int | tuple[int] = 0,
    groups: int = 1,
    dilation: int | tuple[int] = 1,
) -> Tensor:
    """`conv_transpose2d` over one axis.

    Args:
        input: Shape (batch, in, length), or without the batch.
        weight: Shape (in, out / groups, kernel length).
        bias: Shape (out,), or None.
        stride: Distance between input elements in the result.
        padding: Elements cut off each side of the result.
        output_padding: Elements added at its end, smaller than the stride.
        groups: Blocks of channels that do not see each other.
        dilation: Distance between kernel elements.
    """
    _check_rank(input, 3, "conv_transpose1d")
    result = conv_transpose2d(
        input.unsqueeze(-2),
        weight.unsqueeze(-2),
        bias,
        (1, as_single(stride)),
        (0, as_single(padding)),
        (0, as_single(output_padding)),
        groups,
        (1, as_single(dilation)),
    )
    return result.squeeze(-2)


def unfold(
    input: Tensor,
    kernel_size: IntOrPair,
    dilation: IntOrPair = 1,
    padding: IntOrPair = 0,
    stride: IntOrPair = 1,
) -> Tensor:
    """Windows as columns (im2col).

    Args:
        input: Shape (batch, channels, height, width), or without the batch.
        kernel_size: Extents of a window.
        dilation: Distance between window elements.
        padding: Zeros on each side.
        stride: Steps of the window.

    Returns:
        Shape (batch, channels * kernel height * kernel width, windows).
    """
    _check_rank(input, 4, "unfold")
    batched = input if input.ndim == 4 else input.unsqueeze(0)
    sizes = (as_pair(kernel_size), as_pair(dilation), as_pair(padding), as_pair(stride))
    result = vkml.unfold(batched, *sizes)
    return result if input.ndim == 4 else result.squeeze(0)


def fold(
    input: Tensor,
    output_size: IntOrPair,
    kernel_size: IntOrPair,
    dilation: IntOrPair = 1,
    padding: IntOrPair = 0,
    stride: IntOrPair = 1,
) -> Tensor:
    """The sum of columns where their windows lie in an image (col2im): what `unfold` undoes.

    Args:
        input: Shape (batch, channels * kernel height * kernel width, windows), or without the
            batch.
        output_size: Extents of the image.
        kernel_size: Extents of a window.
        dilation: Distance between window elements.
        padding: Zeros on each side of the image.
        stride: Steps of the window.
    """
    _check_rank(input, 3, "fold")
    batched = input if input.ndim == 3 else input.unsqueeze(0)
    sizes = (as_pair(kernel_size), as_pair(dilation), as_pair(padding), as_pair(stride))
    result = vkml.fold(batched, as_pair(output_size), *sizes)
    return result if input.ndim == 3 else result.squeeze(0)
