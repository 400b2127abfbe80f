"""Rows that begin and end at no multiple of a vector: what neighbours hold takes no part."""

from collections.abc import Callable

import numpy as np
import pytest

import vkml
from checking import exact
from vkml import Tensor
from vkml.nn import functional as F

LENGTHS = [63, 65, 66, 1023, 5001]
FLOATS = [vkml.float16, vkml.bfloat16, vkml.float32]
Case = tuple[Callable[[Tensor], Tensor], Callable[[np.ndarray], np.ndarray]]


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def normalized(x: np.ndarray) -> np.ndarray:
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)


CASES: dict[str, Case] = {
    "sum": (lambda x: x.sum(-1), lambda x: x.sum(-1)),
    "max": (lambda x: x.amax(-1), lambda x: x.max(-1)),
    "argmin": (lambda x: x.argmin(-1), lambda x: x.argmin(-1)),
    "any": (lambda x: (x > 2.5).any(-1), lambda x: (x > 2.5).any(-1)),
    "softmax": (lambda x: F.softmax(x, -1), softmax),
    "layer_norm": (
        lambda x: F.layer_norm(x, x.shape[-1:], vkml.arange(x.shape[-1], device=x.device) % 5),
        lambda x: normalized(x) * (np.arange(x.shape[-1]) % 5),
    ),
    "centred": (
        lambda x: x - x.mean(-1, keepdim=True),
        lambda x: x - x.mean(-1, keepdims=True),
    ),
    "reversed": (
        lambda x: (x * x.flip(-1)).mean(-1),
        lambda x: (x * x[..., ::-1]).mean(-1),
    ),
    "position": (
        lambda x: (x * vkml.arange(x.shape[-1], device=x.device)).mean(-1) / x.shape[-1],
        lambda x: (x * np.arange(x.shape[-1])).mean(-1) / x.shape[-1],
    ),
}


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("name", CASES)
def test_rows_of_every_length(device: vkml.Device, name: str, dtype: vkml.dtype) -> None:
    function, reference = CASES[name]
    tolerance = 1e-5 if dtype == vkml.float32 else 2e-2
    for length in LENGTHS:
        values = np.random.default_rng(length).uniform(-3, 3, (5, length)).astype(np.float32)
        whole = vkml.tensor(values, device=device).to(dtype).realize()
        for x in (whole, whole[:, 1:], whole[::2, :-2]):
            np.testing.assert_allclose(
                exact(function(x)),
                reference(exact(x).astype(np.float64)),
                rtol=tolerance,
                atol=tolerance * 10,
                err_msg=f"{name} of {tuple(x.shape)} in {dtype}",
            )


@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf])
def test_neighbours_do_not_leak_in(device: vkml.Device, special: float) -> None:
    """Every other row holds special values, and the others have the results that they had."""
    for length in (65, 67, 1023):
        values = np.random.default_rng(0).uniform(-3, 3, (6, length)).astype(np.float32)
        values[::2] = special
        x = vkml.tensor(values, device=device).realize()
        rows = values[1::2].astype(np.float64)
        np.testing.assert_allclose(x.sum(-1).numpy()[1::2], rows.sum(-1), rtol=1e-4, atol=1e-4)
        np.testing.assert_array_equal(x.amax(-1).numpy()[1::2], rows.max(-1).astype(np.float32))
        np.testing.assert_array_equal(x.argmax(-1).numpy()[1::2], rows.argmax(-1))
        np.testing.assert_allclose(F.softmax(x, -1).numpy()[1::2], softmax(rows), rtol=1e-5)


def test_a_row_written_in_place_leaves_its_neighbours(device: vkml.Device) -> None:
    values = np.random.default_rng(0).uniform(-3, 3, (7, 131)).astype(np.float32)
    x = vkml.tensor(values, device=device).realize()
    x[2:5] = F.softmax(x[2:5], -1)
    x[:, 3:70] -= x[:, 3:70].mean(-1, keepdim=True)
    expected = values.astype(np.float64)
    expected[2:5] = softmax(expected[2:5])
    expected[:, 3:70] -= expected[:, 3:70].mean(-1, keepdims=True)
    np.testing.assert_allclose(x.numpy(), expected, rtol=1e-5, atol=1e-6)
