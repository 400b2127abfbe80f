"""Products and convolutions large enough for what devices do with large ones."""

import numpy as np
import pytest

import vkml
from checking import assert_close, exact, inputs, wide
from structural_cases import conv2d_reference


def test_a_large_convolution_matches(device: object) -> None:
    x, w = inputs((3, 8, 20, 19), -1, 1), inputs((16, 8, 3, 3), -1, 1)
    result = vkml.conv2d(vkml.tensor(x, device=device), vkml.tensor(w, device=device), padding=1)
    assert_close(result, conv2d_reference(wide(x), wide(w), padding=1), 64)


@pytest.mark.parametrize("dtype", [vkml.float32, vkml.float16])
@pytest.mark.parametrize(
    ("images", "weights"),
    [((8, 32, 32, 32), (128, 32, 3, 3)), ((8, 40, 31, 33), (96, 40, 3, 3))],
)
def test_convolutions_large_enough_for_matrix_units(
    images: tuple[int, ...], weights: tuple[int, ...], dtype: object, device: object
) -> None:
    def rounded(shape: tuple[int, ...], seed: int) -> tuple[vkml.Tensor, np.ndarray]:
        tensor = vkml.tensor(inputs(shape, -1, 1, seed), dtype=dtype, device=device)
        return tensor, exact(tensor)

    def windows(image: np.ndarray) -> np.ndarray:
        padded = np.pad(image, ((0, 0), (0, 0), (1, 1), (1, 1)))
        return np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))

    x, wide_x = rounded(images, 0)
    w, wide_w = rounded(weights, 1)
    g, wide_g = rounded((images[0], weights[0], *images[2:]), 2)
    x.requires_grad_()
    w.requires_grad_()
    y = vkml.conv2d(x, w, padding=1)
    y.backward(g)
    flipped = wide_w[:, :, ::-1, ::-1]
    for actual, expected, terms in [
        (y, np.einsum("nchwij,ocij->nohw", windows(wide_x), wide_w, optimize=True), w[0].numel()),
        (
            x.grad,
            np.einsum("nohwij,ocij->nchw", windows(wide_g), flipped, optimize=True),
            9 * len(w),
        ),
        (
            w.grad,
            np.einsum("nohw,nchwij->ocij", wide_g, windows(wide_x), optimize=True),
            g[:, 0].numel(),
        ),
    ]:
        precision = 2.0**-24 if dtype is vkml.float32 else 2.0**-11
        bound = 4 * 2.0**-24 * terms + precision * np.abs(expected)
        assert np.all(np.abs(exact(actual) - expected) <= bound)


@pytest.mark.parametrize(
    "shape", [(1, 1, 1), (64, 64, 64), (129, 257, 65), (1, 1000, 3), (300, 1, 200)]
)
def test_larger_products(shape: tuple[int, int, int], device: object) -> None:
    m, k, n = shape
    a, b = inputs((m, k), -1, 1), inputs((k, n), -1, 1)
    result = vkml.tensor(a, device=device) @ vkml.tensor(b, device=device)
    # The error of a sum in float32 grows like the root of its length; each term is at most 1.
    bound = 4 * 2.0**-24 * k
    np.testing.assert_allclose(exact(result), wide(a) @ wide(b), rtol=0, atol=bound)
