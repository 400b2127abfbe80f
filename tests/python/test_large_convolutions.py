"""Convolutions large enough for matrix units, which stage the image once for all taps."""

from dataclasses import dataclass

import numpy as np
import pytest

import vkml
from checking import exact, inputs


@dataclass
class Case:
    """A convolution: (N, C, H, W) by (O, C / groups, KH, KW)."""

    image: tuple[int, int, int, int]
    weight: tuple[int, int, int, int]
    padding: int = 1
    stride: int = 1
    dilation: int = 1
    groups: int = 1

    @property
    def output(self) -> tuple[int, int, int, int]:
        def extent(size: int, kernel: int) -> int:
            reach = self.dilation * (kernel - 1) + 1
            return (size + 2 * self.padding - reach) // self.stride + 1

        height = extent(self.image[2], self.weight[2])
        return (self.image[0], self.weight[0], height, extent(self.image[3], self.weight[3]))


@dataclass
class Values:
    """Result and gradients."""

    y: np.ndarray
    x_gradient: np.ndarray
    w_gradient: np.ndarray


def by_taps(case: Case, x: np.ndarray, w: np.ndarray, g: np.ndarray) -> Values:
    """From the definition: one matrix product for each tap, in float64."""
    p, groups = case.padding, case.groups
    padded = np.pad(x, ((0, 0), (0, 0), (p, p), (p, p)))
    y, w_gradient = np.zeros(case.output), np.zeros(case.weight)
    x_gradient = np.zeros(padded.shape)
    per, outputs = case.image[1] // groups, case.weight[0] // groups
    for i, j in np.ndindex(*case.weight[2:]):
        rows, columns = (
            slice(
                tap * case.dilation,
                tap * case.dilation + (case.output[axis] - 1) * case.stride + 1,
                case.stride,
            )
            for axis, tap in ((2, i), (3, j))
        )
        for group in range(groups):
            c = slice(group * per, (group + 1) * per)
            o = slice(group * outputs, (group + 1) * outputs)
            seen, tap_weight = padded[:, c, rows, columns], w[o, :, i, j]
            y[:, o] += np.einsum("nchw,oc->nohw", seen, tap_weight, optimize=True)
            x_gradient[:, c, rows, columns] += np.einsum(
                "nohw,oc->nchw", g[:, o], tap_weight, optimize=True
            )
            w_gradient[o, :, i, j] = np.einsum("nohw,nchw->oc", g[:, o], seen, optimize=True)
    inner = slice(p, -p if p > 0 else None)
    return Values(y, x_gradient[:, :, inner, inner], w_gradient)


def on_device(
    case: Case, x: np.ndarray, w: np.ndarray, g: np.ndarray, dtype: object, device: object
) -> tuple[Values, Values]:
    """What the device computes, and what the definition says of the same operands."""
    operands = [vkml.tensor(value, dtype=dtype, device=device) for value in (x, w, g)]
    image, weight, gradient = operands
    image.requires_grad_()
    weight.requires_grad_()
    y = vkml.conv2d(
        image,
        weight,
        stride=case.stride,
        padding=case.padding,
        dilation=case.dilation,
        groups=case.groups,
    )
    y.backward(gradient)
    actual = Values(exact(y), exact(image.grad), exact(weight.grad))
    return actual, by_taps(case, *(exact(operand) for operand in operands))


CASES = [
    Case((10, 32, 32, 32), (64, 32, 3, 3)),
    Case((8, 24, 20, 36), (40, 24, 3, 3)),  # tiles that stick out
    Case((24, 10, 14, 14), (100, 10, 3, 3)),  # pairs of neighbours, odd channels
    Case((12, 16, 31, 33), (33, 16, 3, 3)),  # no neighbours at all
    Case((8, 136, 16, 32), (24, 136, 3, 3)),  # many steps, few results
    Case((12, 24, 64, 64), (32, 24, 3, 3), stride=2),
    Case((6, 64, 24, 32), (96, 32, 3, 3), padding=2, dilation=2, groups=2),
    Case((12, 32, 24, 32), (24, 16, 3, 3), groups=2),  # groups that start within a vector
    Case((10, 16, 32, 32), (32, 16, 5, 5), padding=2),
    Case((20, 16, 15, 34), (32, 16, 1, 3), padding=0),
    Case((8, 16, 24, 28), (32, 16, 3, 3), padding=4),  # windows wholly outside
    Case((24, 48, 32, 32), (80, 48, 1, 1), padding=0),
]


@pytest.mark.parametrize(
    ("case", "dtype"),
    [(case, dtype) for case in CASES for dtype in (vkml.float32, vkml.float16)]
    + [(CASES[0], vkml.bfloat16)],
    ids=str,
)
def test_value_and_gradients(case: Case, dtype: object, device: object) -> None:
    x, w = inputs(case.image, -1, 1, 0), inputs(case.weight, -1, 1, 1)
    g = inputs(case.output, -1, 1, 2)
    actual, expected = on_device(case, x, w, g, dtype, device)
    taps = case.weight[2] * case.weight[3]
    precision = {vkml.float32: 2.0**-24, vkml.float16: 2.0**-11, vkml.bfloat16: 2.0**-8}[dtype]
    for got, want, terms in [
        (actual.y, expected.y, case.weight[1] * taps),
        (actual.x_gradient, expected.x_gradient, case.weight[0] // case.groups * taps),
        (actual.w_gradient, expected.w_gradient, g[:, 0].size),
    ]:
        assert np.all(np.abs(got - want) <= 4 * 2.0**-24 * terms + precision * np.abs(want))


@pytest.mark.parametrize("dtype", [vkml.float32, vkml.float16, vkml.bfloat16])
@pytest.mark.parametrize("operand", ["image", "gradient"])
def test_what_is_not_finite_reaches_what_it_should(
    operand: str, dtype: object, device: object
) -> None:
    case = Case((10, 32, 34, 34), (64, 32, 3, 3), padding=0)
    x, w = inputs(case.image, -1, 1, 0), inputs(case.weight, -1, 1, 1)
    g = inputs(case.output, -1, 1, 2)
    changed = x if operand == "image" else g
    changed[3, 5, 7, 11], changed[4, 17, 31, 0], changed[9, 31, 20, 20] = np.inf, np.nan, -np.inf
    actual, expected = on_device(case, x, w, g, dtype, device)
    bound = 1e-3 if dtype is vkml.float32 else 2.0
    for got, want in [
        (actual.y, expected.y),
        (actual.x_gradient, expected.x_gradient),
        (actual.w_gradient, expected.w_gradient),
    ]:
        np.testing.assert_allclose(got, want, rtol=0.01, atol=bound, equal_nan=True)


def test_rows_that_start_anywhere(device: object) -> None:
    """Operands that begin within a vector of memory."""
    case = Case((10, 32, 32, 32), (64, 32, 3, 3))

    def moved(shape: tuple[int, ...], seed: int) -> vkml.Tensor:
        count = int(np.prod(shape))
        flat = inputs((count + 1,), -1, 1, seed)
        return vkml.tensor(flat, dtype=vkml.float16, device=device)[1:].reshape(*shape)

    x, w, g = moved(case.image, 0), moved(case.weight, 1), moved(case.output, 2)
    x.requires_grad_()
    w.requires_grad_()
    y = vkml.conv2d(x, w, padding=1)
    y.backward(g)
    expected = by_taps(case, exact(x), exact(w), exact(g))
    for got, want in [
        (exact(y), expected.y),
        (exact(x.grad), expected.x_gradient),
        (exact(w.grad), expected.w_gradient),
    ]:
        assert np.all(np.abs(got - want) <= 1e-3 * (1 + np.abs(want)))
