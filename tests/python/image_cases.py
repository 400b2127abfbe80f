"""Cases of transposed convolution, windows as columns, and pooling beyond the plain form."""

from typing import Any

import numpy as np

import vkml
from case import Array, Case, small
from checking import inputs


def conv_transpose2d_reference(
    x: Array, w: Array, stride: int = 1, padding: int = 0, output_padding: int = 0, groups: int = 1
) -> Array:
    """Each input element times the kernel, added where it lies in the result."""
    batch, channels, height, width = x.shape
    per_group, kh, kw = w.shape[1:]
    rows = (height - 1) * stride + kh + output_padding
    columns = (width - 1) * stride + kw + output_padding
    y = np.zeros((batch, per_group * groups, rows, columns))
    for c in range(channels):
        first = c // (channels // groups) * per_group
        for i in range(height):
            for j in range(width):
                window = y[:, first : first + per_group, i * stride :, j * stride :]
                window[:, :, :kh, :kw] += x[:, c, i, j, None, None, None] * w[c]
    return y[:, :, padding : rows - padding, padding : columns - padding]


def unfold_reference(x: Array, kernel: int, dilation: int, padding: int, stride: int) -> Array:
    """Every window as a column, channel by channel."""
    x = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    extent = dilation * (kernel - 1) + 1
    windows = np.lib.stride_tricks.sliding_window_view(x, (extent, extent), (2, 3))
    windows = windows[:, :, ::stride, ::stride, ::dilation, ::dilation]
    columns = windows.transpose(0, 1, 4, 5, 2, 3)
    return columns.reshape(x.shape[0], x.shape[1] * kernel * kernel, -1)


def fold_reference(columns: Array, image: tuple[int, int], kernel: int, stride: int) -> Array:
    """Every column added where its window lies."""
    steps = [(extent - kernel) // stride + 1 for extent in image]
    blocks = columns.reshape(columns.shape[0], -1, kernel, kernel, *steps)
    y = np.zeros((*blocks.shape[:2], *image))
    for i, j in np.ndindex(*steps):
        rows = slice(i * stride, i * stride + kernel)
        y[:, :, rows, j * stride : j * stride + kernel] += blocks[..., i, j]
    return y


def _pooled_indices(x: Array, kernel: int) -> Array:
    """Position of the largest element of windows side by side."""
    windows = np.lib.stride_tricks.sliding_window_view(x, (kernel, kernel), (2, 3))
    windows = windows[:, :, ::kernel, ::kernel].reshape(
        *x.shape[:2], *(e // kernel for e in x.shape[2:]), -1
    )
    place = windows.argmax(-1)
    rows = np.arange(place.shape[2])[:, None] * kernel + place // kernel
    return rows * x.shape[3] + np.arange(place.shape[3]) * kernel + place % kernel


TRANSPOSED: list[dict[str, Any]] = [
    {},
    {"stride": 2, "padding": 1, "output_padding": 1},
    {"stride": 3, "groups": 2},
]


def _cases() -> list[Case]:
    x = small(2, 4, 4, 4)
    cases = [
        Case(
            "conv_transpose2d",
            lambda a, b, o=options: vkml.conv_transpose2d(a, b, **o),
            lambda a, b, o=options: conv_transpose2d_reference(a, b, **o),
            [x[:, :, :3], inputs((4, 2, 3, 2), -1, 1)],
            32,
            label=str(options),
        )
        for options in TRANSPOSED
    ]
    return [
        *cases,
        Case(
            "unfold", lambda t: vkml.unfold(t, 2), lambda a: unfold_reference(a, 2, 1, 0, 1), [x], 0
        ),
        Case(
            "unfold",
            lambda t: vkml.unfold(t, 2, 2, 1, 2),
            lambda a: unfold_reference(a, 2, 2, 1, 2),
            [x],
            0,
            label="dilated",
        ),
        Case(
            "fold",
            lambda t: vkml.fold(t, (4, 5), 2),
            lambda a: fold_reference(a, (4, 5), 2, 1),
            [small(2, 8, 12)],
            4,
        ),
        Case(
            "fold",
            lambda t: vkml.fold(t, (5, 5), 3, stride=2),
            lambda a: fold_reference(a, (5, 5), 3, 2),
            [small(1, 9, 4)],
            4,
            label="stride",
        ),
        Case(
            "max_pool2d_with_indices",
            lambda t: vkml.max_pool2d_with_indices(t, 2)[0],
            lambda a: np.take_along_axis(
                a.reshape(*a.shape[:2], -1), _pooled_indices(a, 2).reshape(*a.shape[:2], -1), -1
            ).reshape(_pooled_indices(a, 2).shape),
            [x],
            0,
            label="values",
        ),
        Case(
            "max_pool2d_with_indices",
            lambda t: vkml.max_pool2d_with_indices(t, 2)[1],
            lambda a: _pooled_indices(a, 2),
            [x],
            0,
            False,
        ),
    ]


IMAGE_CASES: list[Case] = _cases()
