"""Matrix products at sizes and with values that choose among a device's kernels.

Small products have their cases in structural_cases.py. Here are the ones that matrix units compute,
where a device has them: whole and partial tiles, rows that do not start at vectors of memory,
batches, split sums, numbers that are not finite.
"""

import numpy as np
import pytest

import vkml
from checking import exact

# Largest error of a product, relative to its norm: of f32 sums, and of rounding the result.
BOUNDS = {vkml.float32: 1e-6, vkml.float16: 5e-4, vkml.bfloat16: 3e-3}


@pytest.fixture
def high_precision():
    vkml.set_matmul_precision("high")
    yield
    vkml.set_matmul_precision("highest")


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).standard_normal(shape, dtype=np.float32)


def relative_error(actual: object, expected: np.ndarray) -> float:
    difference = exact(actual).astype(np.float64) - expected
    return float(np.linalg.norm(difference) / np.linalg.norm(expected))


@pytest.mark.parametrize("dtype", BOUNDS, ids=str)
@pytest.mark.parametrize("transposed", ["neither", "left", "right", "both"])
@pytest.mark.parametrize(
    "size",
    [(256, 192, 320), (131, 133, 77), (40, 264, 1048), (65, 512, 90), (129, 1024, 40)],
    ids=str,
)
def test_layouts_and_edges(
    size: tuple[int, int, int], transposed: str, dtype: object, device: object
) -> None:
    rows, columns, inner = size
    turns_left, turns_right = transposed in ("left", "both"), transposed in ("right", "both")
    a = normal(*((inner, rows) if turns_left else (rows, inner)))
    b = normal(*((columns, inner) if turns_right else (inner, columns)), seed=1)
    bias = normal(columns, seed=2)
    left, right, added = (vkml.tensor(x, device=device).to(dtype) for x in (a, b, bias))
    product = (left.T if turns_left else left) @ (right.T if turns_right else right)
    a, b, bias = (exact(x).astype(np.float64) for x in (left, right, added))
    expected = (a.T if turns_left else a) @ (b.T if turns_right else b)
    assert relative_error(product, expected) < BOUNDS[dtype]
    fused = vkml.maximum(product + added, 0)
    # The product may be rounded once more before the sum.
    assert relative_error(fused, np.maximum(expected + bias, 0)) < 2 * BOUNDS[dtype]


@pytest.mark.parametrize("dtype", BOUNDS, ids=str)
def test_batches_and_slices(dtype: object, device: object) -> None:
    a = vkml.tensor(normal(3, 4, 72, 136), device=device).to(dtype)
    b = vkml.tensor(normal(4, 136, 80), device=device).to(dtype)
    wide_a, wide_b = exact(a).astype(np.float64), exact(b).astype(np.float64)
    assert relative_error(a @ b, wide_a @ wide_b) < BOUNDS[dtype]
    # Rows that start anywhere, every second column, reversed rows.
    part, wide_part = a[:, :, 1:, 1:], wide_a[:, :, 1:, 1:]
    assert relative_error(part @ b[:, 1:], wide_part @ wide_b[:, 1:]) < BOUNDS[dtype]
    assert relative_error(a @ b[:, :, ::2], wide_a @ wide_b[:, :, ::2]) < BOUNDS[dtype]
    assert relative_error(a[:, :, ::-1] @ b, wide_a[:, :, ::-1] @ wide_b) < BOUNDS[dtype]


@pytest.mark.parametrize("size", [(512, 512, 512), (256, 256, 256), (131, 133, 77)], ids=str)
def test_numbers_that_are_not_finite(size: tuple[int, int, int], device: object) -> None:
    rows, columns, inner = size
    a, b = normal(rows, inner), normal(inner, columns, seed=1)
    a[3, 5], a[7, 9], a[11, 1] = np.inf, -np.inf, np.nan
    b[20, 30], b[8, 60] = np.inf, np.nan
    b[5, 31], b[5, 40], a[50, 20], a[60, 20] = 0, 1, 0, -2  # inf * 0, inf * 1, 0 * inf, -2 * inf
    a[70, 3], b[3, 50] = np.inf, -np.inf  # inf * -inf
    a[80, 4], b[4, 61] = 100, 1e37  # overflows by itself
    with np.errstate(invalid="ignore", over="ignore"):
        wide = a.astype(np.float64) @ b.astype(np.float64)
        expected = wide.astype(np.float32)
    product = (vkml.tensor(a, device=device) @ vkml.tensor(b, device=device)).numpy()
    np.testing.assert_array_equal(np.isnan(product), np.isnan(expected))
    infinite = np.isinf(expected)
    np.testing.assert_array_equal(product[infinite], expected[infinite])
    ordinary = np.isfinite(expected) & (np.abs(wide) < 1e6)
    error = np.linalg.norm(product[ordinary] - wide[ordinary]) / np.linalg.norm(wide[ordinary])
    assert error < 1e-6


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_range_of_float32(scale: float, device: object) -> None:
    a, b = normal(512, 512) * np.float32(scale), normal(512, 512, seed=1) / np.float32(scale)
    expected = a.astype(np.float64) @ b.astype(np.float64)
    product = vkml.tensor(a, device=device) @ vkml.tensor(b, device=device)
    assert relative_error(product, expected) < 1e-6


def test_long_sums_keep_their_precision(device: object) -> None:
    a, b = normal(64, 1 << 14), normal(1 << 14, 64, seed=1)
    expected = a.astype(np.float64) @ b.astype(np.float64)
    product = vkml.tensor(a, device=device) @ vkml.tensor(b, device=device)
    # Terms added one by one come to 2e-6, sums kept in matrix units, which truncate, to 1e-4.
    assert relative_error(product, expected) < 5e-6


def test_high_precision(device: object, high_precision: None) -> None:
    assert vkml.matmul_precision() == "high"
    a, b = normal(512, 520), normal(520, 512, seed=1)
    expected = a.astype(np.float64) @ b.astype(np.float64)
    x = vkml.tensor(a, device=device, requires_grad=True)
    y = vkml.tensor(b, device=device, requires_grad=True)
    product = x @ y
    vkml.set_matmul_precision("highest")
    assert relative_error(product, expected) < 3e-5
    product.sum().backward()
    ones = np.ones_like(expected)
    assert relative_error(x.grad, ones @ b.T.astype(np.float64)) < 3e-5
    assert relative_error(y.grad, a.T.astype(np.float64) @ ones) < 3e-5


def test_precisions_have_plans_of_their_own(device: object) -> None:
    a = vkml.tensor(normal(64, 64), device=device)
    (a @ a).realize()
    misses = vkml.cache_info(device).misses
    vkml.set_matmul_precision("high")
    try:
        (a @ a).realize()
        assert vkml.cache_info(device).misses == misses + 1
    finally:
        vkml.set_matmul_precision("highest")
    (a @ a).realize()
    assert vkml.cache_info(device).misses == misses + 1


def test_unknown_precision_is_an_error() -> None:
    with pytest.raises(vkml.ArgumentError, match='"low" is no precision'):
        vkml.set_matmul_precision("low")
    assert vkml.matmul_precision() == "highest"
