"""vkml.linalg against NumPy and PyTorch, with first and second derivatives."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import vkml
from checking import assert_close, exact, inputs
from test_second_derivatives import STEP, first_gradients
from vkml import linalg

SHAPES = [(1, 1), (3, 3), (2, 4, 4), (2, 1, 5, 5)]
FLAT = [(4, 4), (5, 3), (3, 5), (2, 4, 2), (1, 1), (6, 1)]


def matrices(*shape: int, seed: int = 0) -> np.ndarray:
    """Well-conditioned matrices."""
    return inputs(shape, -1, 1, seed) + 2 * np.eye(*shape[-2:], dtype=np.float32)


def positive(*shape: int) -> np.ndarray:
    m = matrices(*shape)
    return m @ np.swapaxes(m, -1, -2)


def transposed(a: np.ndarray) -> np.ndarray:
    return np.swapaxes(a, -1, -2)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_square_matrices(shape: tuple[int, ...]) -> None:
    a, b = matrices(*shape), inputs((*shape[:-1], 2), -1, 1)
    wide, right = a.astype(np.float64), b.astype(np.float64)
    x = vkml.tensor(a)
    assert_close(linalg.solve(x, vkml.tensor(b)), np.linalg.solve(wide, right), 8)
    assert_close(linalg.inv(x), np.linalg.inv(wide), 8)
    assert_close(linalg.det(x), np.linalg.det(wide), 8)
    sign, logarithm = linalg.slogdet(x)
    expected = np.linalg.slogdet(wide)
    assert_close(sign, expected.sign, 0)
    assert_close(logarithm, expected.logabsdet, 8)
    for upper in (False, True):
        t = np.triu(wide) if upper else np.tril(wide)
        found = linalg.solve_triangular(x, vkml.tensor(b), upper=upper)
        assert_close(found, np.linalg.solve(t, right), 64)
    for power in (-2, 0, 1, 5):
        assert_close(linalg.matrix_power(x, power), np.linalg.matrix_power(wide, power), 256)
    spd = positive(*shape)
    assert_close(linalg.cholesky(vkml.tensor(spd)), np.linalg.cholesky(spd.astype(np.float64)), 8)
    values, vectors = linalg.eigh(vkml.tensor(spd))
    assert_close(values, np.linalg.eigvalsh(spd.astype(np.float64)), 8)
    v = exact(vectors)
    np.testing.assert_allclose(v * exact(values)[..., None, :] @ transposed(v), spd, atol=1e-5)
    np.testing.assert_allclose(transposed(v) @ v, np.eye(shape[-1]) + 0 * spd, atol=1e-6)


@pytest.mark.parametrize("shape", FLAT, ids=str)
def test_rectangular_matrices(shape: tuple[int, ...]) -> None:
    a = inputs(shape, -1, 1)
    k = min(shape[-2:])
    q, r = (exact(part) for part in linalg.qr(vkml.tensor(a)))
    np.testing.assert_allclose(q @ r, a, atol=1e-6)
    np.testing.assert_allclose(
        transposed(q) @ q, np.eye(k) + np.zeros((*shape[:-2], k, k)), atol=1e-6
    )
    np.testing.assert_array_equal(r, np.triu(r))
    u, s, vh = (exact(part) for part in linalg.svd(vkml.tensor(a), full_matrices=False))
    np.testing.assert_allclose(u * s[..., None, :] @ vh, a, atol=1e-6)
    np.testing.assert_allclose(s, np.linalg.svd(a.astype(np.float64))[1], atol=1e-6)
    np.testing.assert_allclose(
        transposed(u) @ u, np.eye(k) + np.zeros((*shape[:-2], k, k)), atol=1e-6
    )
    assert_close(linalg.pinv(vkml.tensor(a)), np.linalg.pinv(a.astype(np.float64)), 64)
    for order in ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf):
        found = linalg.matrix_norm(vkml.tensor(a), order)
        wide = a.reshape(-1, *shape[-2:]).astype(np.float64)
        expected = np.array([np.linalg.norm(m, order) for m in wide]).reshape(shape[:-2])
        assert_close(found, expected, 8)


@pytest.mark.parametrize("shape", FLAT, ids=str)
def test_complete_factors(shape: tuple[int, ...]) -> None:
    a = inputs(shape, -1, 1)
    m, n = shape[-2:]
    eye = [np.eye(size) + np.zeros((*shape[:-2], size, size)) for size in (m, n)]
    q, r = (exact(part) for part in linalg.qr(vkml.tensor(a), mode="complete"))
    assert (q.shape[-2:], r.shape[-2:]) == ((m, m), (m, n))
    np.testing.assert_allclose(q @ r, a, atol=1e-6)
    np.testing.assert_allclose(transposed(q) @ q, eye[0], atol=1e-6)
    u, s, vh = (exact(part) for part in linalg.svd(vkml.tensor(a), full_matrices=True))
    middle = np.zeros(shape)
    middle[..., range(min(m, n)), range(min(m, n))] = s
    np.testing.assert_allclose(u @ middle @ vh, a, atol=1e-6)
    np.testing.assert_allclose(transposed(u) @ u, eye[0], atol=1e-6)
    np.testing.assert_allclose(vh @ transposed(vh), eye[1], atol=1e-6)


def test_complements_have_no_gradient() -> None:
    a = vkml.tensor(TALL, requires_grad=True)
    with pytest.raises(vkml.AutogradError, match=r"\[complement\].*mode='reduced'"):
        linalg.qr(a, mode="complete").Q.sum().backward()
    linalg.svd(a, full_matrices=True).S.sum().backward()
    assert a.grad is not None
    with pytest.raises(vkml.ArgumentError, match=r"\[qr\] mode is 'full'"):
        linalg.qr(a, mode="full")


def test_special_matrices() -> None:
    zero = vkml.zeros(3, 2)
    u, s, vh = linalg.svd(zero, full_matrices=False)
    assert not exact(s).any()
    np.testing.assert_allclose(exact(u).T @ exact(u), np.eye(2), atol=1e-7)
    rank_one = np.outer([1.0, 2, 3], [1.0, -1, 2]).astype(np.float32)
    u, s, vh = linalg.svd(vkml.tensor(rank_one))
    np.testing.assert_allclose(exact(u) * exact(s) @ exact(vh), rank_one, atol=1e-5)
    np.testing.assert_allclose(exact(u).T @ exact(u), np.eye(3), atol=1e-6)
    assert linalg.det(vkml.ones(3, 3)).item() == 0
    values, _ = linalg.eigh(vkml.tensor([[1.0, 9.0], [0.0, 1.0]]))
    assert values.tolist() == [1, 1]
    assert linalg.solve(vkml.eye(2), vkml.tensor([3.0, 4.0])).tolist() == [3, 4]
    with pytest.raises(vkml.ArgumentError, match=r"\[solve\] the matrix is singular"):
        linalg.solve(vkml.ones(2, 2), vkml.ones(2))
    with pytest.raises(vkml.ArgumentError, match=r"\[cholesky\].*positive definite"):
        linalg.cholesky(vkml.tensor([[1.0, 2.0], [2.0, 1.0]]))
    with pytest.raises(vkml.ShapeError, match=r"\[inv\] needs square"):
        linalg.inv(vkml.ones(2, 3))
    with pytest.raises(vkml.DTypeError, match=r"\[det\]"):
        linalg.det(vkml.ones(2, 2, dtype=vkml.int32))


def test_other_devices_say_the_way_out(device: object) -> None:
    if device == vkml.cpu:
        assert linalg.det(vkml.eye(2)).item() == 1
        return
    with pytest.raises(vkml.UnsupportedError, match=r"\[cholesky\].*vulkan.*device=vkml.cpu"):
        linalg.cholesky(vkml.eye(2, device=device))


def symmetric(x: Any) -> Any:
    return (x + x.mT) * 0.5


TALL, SQUARE = inputs((4, 3), -1, 1), matrices(3, 3)
SINGULAR = np.array([[1, 2, 0], [2, 4, 1], [0, 0, 3]], dtype=np.float32)
EXCHANGE = np.array([[0, 1], [1, 0]], dtype=np.float32)
FUNCTIONS: dict[str, tuple[Callable[..., Any], list[np.ndarray]]] = {
    "solve": (linalg.solve, [SQUARE, inputs((3, 2), -1, 1)]),
    "solve a vector": (linalg.solve, [SQUARE, inputs((3,), -1, 1)]),
    "solve a batch": (linalg.solve, [matrices(2, 3, 3), inputs((3, 2), -1, 1)]),
    "solve_triangular": (
        lambda a, b: linalg.solve_triangular(a, b, upper=True),
        [SQUARE, inputs((3, 2), -1, 1)],
    ),
    "solve_triangular from the right": (
        lambda a, b: linalg.solve_triangular(a, b, upper=False, left=False, unitriangular=True),
        [SQUARE, inputs((2, 3), -1, 1)],
    ),
    "inv": (linalg.inv, [matrices(2, 3, 3)]),
    "det": (linalg.det, [matrices(2, 3, 3)]),
    "slogdet": (lambda a: linalg.slogdet(a).logabsdet, [SQUARE]),
    "cholesky": (lambda a: linalg.cholesky(symmetric(a)), [positive(3, 3)]),
    "q": (lambda a: linalg.qr(a).Q, [TALL]),
    "r": (lambda a: linalg.qr(a).R, [TALL]),
    "q of a wide matrix": (lambda a: linalg.qr(a).Q, [TALL.T.copy()]),
    "r of wide matrices": (lambda a: linalg.qr(a).R, [inputs((2, 2, 4), -1, 1)]),
    "det of a singular matrix": (linalg.det, [SINGULAR]),
    "det of rank 1": (linalg.det, [np.outer([1, 2, 3], [1, -1, 2]).astype(np.float32)]),
    "det of zeros": (linalg.det, [np.zeros((2, 2), np.float32)]),
    "det of one number": (linalg.det, [np.array([[3]], np.float32)]),
    "eigenvalues": (lambda a: linalg.eigvalsh(symmetric(a)), [positive(3, 3)]),
    "eigenvectors": (lambda a: linalg.eigh(symmetric(a)).eigenvectors ** 2, [positive(3, 3)]),
    "singular values": (linalg.svdvals, [TALL]),
    "u": (lambda a: linalg.svd(a, False).U ** 2, [TALL]),
    "v": (lambda a: linalg.svd(a, False).Vh ** 2, [TALL]),
    "wide": (lambda a: linalg.svd(a, False).Vh ** 2, [TALL.T.copy()]),
    "pinv": (linalg.pinv, [TALL]),
    "pinv of a wide matrix": (linalg.pinv, [TALL.T.copy()]),
    "pinv of a rotation": (linalg.pinv, [EXCHANGE]),
    "lstsq": (lambda a, b: linalg.lstsq(a, b).solution, [TALL, inputs((4, 2), -1, 1)]),
    "lstsq of a rotation": (
        lambda a, b: linalg.lstsq(a, b).solution,
        [EXCHANGE, inputs((2, 2), -1, 1)],
    ),
    "cond": (linalg.cond, [TALL]),
    "norm 2 of a simple largest value": (
        lambda a: linalg.matrix_norm(a, 2),
        [np.diag([2, 1, 0.5]).astype(np.float32)],
    ),
    "matrix_norm": (lambda a: linalg.matrix_norm(a, "nuc"), [TALL]),
}


def total(function: Callable[..., Any], arrays: list[np.ndarray]) -> float:
    result = function(*(vkml.tensor(array) for array in arrays))
    return float((exact(result) * inputs(tuple(result.shape), 0.5, 1.5)).sum())


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives(name: str) -> None:
    function, arrays = FUNCTIONS[name]
    wide = [array.astype(np.float64) for array in arrays]
    tensors, gradients = first_gradients(function, wide, vkml.cpu)
    directions = [inputs(array.shape, -1, 1, seed=9).astype(np.float64) for array in arrays]

    def moved(step: float) -> list[np.ndarray]:
        return [array + step * d for array, d in zip(wide, directions, strict=True)]

    slope = sum((exact(g) * d).sum() for g, d in zip(gradients, directions, strict=True))
    expected = (total(function, moved(STEP)) - total(function, moved(-STEP))) / (2 * STEP)
    np.testing.assert_allclose(slope, expected, rtol=1e-6, atol=1e-6)

    along = sum((g * vkml.tensor(d)).sum() for g, d in zip(gradients, directions, strict=True))
    second = vkml.grad(along, tensors)
    after, before = (
        [exact(g) for g in first_gradients(function, moved(step), vkml.cpu)[1]]
        for step in (STEP, -STEP)
    )
    for mine, high, low in zip(second, after, before, strict=True):
        difference = (high - low) / (2 * STEP)
        scale = max(1.0, float(np.abs(difference).max()))
        np.testing.assert_allclose(exact(mine), difference, rtol=0, atol=1e-5 * scale)


EQUAL = {
    "identity": np.eye(3),
    "a pair": np.diag([2.0, 1, 1]),
    "zeros": np.zeros((3, 3)),
    "exchange": np.array([[0.0, 1, 0], [1, 0, 0], [0, 0, 1]]),
}
# Functions of values, with their gradient at a matrix whose decomposition NumPy has.
OF_VALUES: dict[str, tuple[Callable[..., Any], Callable[[np.ndarray], np.ndarray]]] = {
    "eigvalsh": (linalg.eigvalsh, lambda a: np.eye(3)),
    "eigh": (lambda a: linalg.eigh(a).eigenvalues, lambda a: np.eye(3)),
    "eigvalsh squared": (lambda a: linalg.eigvalsh(a) ** 2, lambda a: 2 * a),
    "svd squared": (lambda a: linalg.svd(a).S ** 2, lambda a: 2 * a),
    "svdvals cubed": (
        lambda a: linalg.svdvals(a) ** 3 / 3,
        lambda a: (np.linalg.svd(a)[0] * np.linalg.svd(a)[1] ** 2) @ np.linalg.svd(a)[2],
    ),
}


@pytest.mark.parametrize("dtype", [vkml.float32, vkml.float64], ids=str)
@pytest.mark.parametrize("matrix", EQUAL)
@pytest.mark.parametrize("name", OF_VALUES)
def test_gradients_of_equal_values(name: str, matrix: str, dtype: object) -> None:
    """Values alone need no differences; sums over equal ones are smooth."""
    function, gradient = OF_VALUES[name]
    a = EQUAL[matrix]
    for array in (a, np.stack([a, np.diag([3.0, 2, 1])])):
        x = vkml.tensor(array, dtype=dtype, requires_grad=True)
        function(x).sum().backward()
        expected = np.stack([gradient(m) for m in array.reshape(-1, 3, 3)]).reshape(array.shape)
        np.testing.assert_allclose(exact(x.grad), expected, atol=1e-5)


def test_gradients_of_nonsmooth_values_are_finite() -> None:
    """Norms of values, at matrices where they have a kink: a subgradient."""
    for function, trace in (
        (lambda a: linalg.matrix_norm(a, "nuc"), 3),
        (lambda a: linalg.matrix_norm(a, 2), 1),
        (linalg.cond, 0),
    ):
        x = vkml.eye(3).requires_grad_()
        function(x).backward()
        assert np.trace(exact(x.grad)) == pytest.approx(trace, rel=1e-6)
    deficient = vkml.tensor([[1.0, 2, 3, 4], [2, 4, 6, 8], [1, 0, 1, 0]], requires_grad=True)
    linalg.matrix_norm(deficient, "nuc").backward()
    slope = (exact(deficient.grad) * exact(deficient)).sum()
    assert slope == pytest.approx(linalg.matrix_norm(deficient, "nuc").item(), rel=1e-5)


def test_gradients_of_vectors_of_equal_values_are_not_made_up() -> None:
    """They turn by any amount: infinite or NaN, never a number that means nothing."""
    for function in (
        lambda a: linalg.eigh(a).eigenvectors[0, 0],
        lambda a: linalg.svd(a).U[0, 0],
        # smooth, and still beyond what gradients of values and vectors can tell
        lambda a: (linalg.eigh(a).eigenvectors @ linalg.eigh(a).eigenvectors.mT)[0, 1],
    ):
        x = vkml.eye(2).requires_grad_()
        function(x).backward()
        assert not np.isfinite(exact(x.grad)).all()


def test_pinv_keeps_its_rank() -> None:
    """The derivative along matrices of the same rank, 1 here: A(t) = u(t) v(t)^T."""
    u, v = np.array([[1.0], [2.0]]), np.array([[3.0], [-1.0], [2.0]])
    du, dv = np.array([[0.5], [-1.0]]), np.array([[1.0], [0.3], [-0.2]])
    cotangent = inputs((3, 2), -1, 1).astype(np.float64)
    x = vkml.tensor(u @ v.T, requires_grad=True)
    (linalg.pinv(x) * vkml.tensor(cotangent)).sum().backward()
    slope = (exact(x.grad) * (du @ v.T + u @ dv.T)).sum()

    def value(step: float) -> float:
        a = (u + step * du) @ (v + step * dv).T
        return float((a.T / (a**2).sum() * cotangent).sum())

    assert slope == pytest.approx((value(1e-6) - value(-1e-6)) / 2e-6, rel=1e-6)
    zero = vkml.zeros(2, 3, requires_grad=True)
    linalg.pinv(zero).sum().backward()
    assert exact(zero.grad).tolist() == [[0, 0, 0]] * 2
    shares = vkml.tensor([1e-3, 0.9])
    found = exact(linalg.pinv(vkml.tensor(np.stack([np.diag([2.0, 1])] * 2)), shares))
    np.testing.assert_allclose(found, [np.diag([0.5, 1]), np.diag([0.5, 0])], atol=1e-12)


def test_gradient_of_slogdet_at_singular_matrices_is_infinite() -> None:
    matrices = np.array([[[1.0, 2], [2, 4]], [[0, 0], [0, 3]], [[2, 0], [0, 4]]])
    x = vkml.tensor(matrices, requires_grad=True)
    value = linalg.slogdet(x)
    assert value.sign.tolist() == [0, 0, 1]
    value.logabsdet.sum().backward()
    found = exact(x.grad)
    assert np.isinf(found[0]).all()  # as PyTorch's
    assert np.isinf(found[1]).tolist() == [[True, False], [False, False]]
    np.testing.assert_allclose(found[2], [[0.5, 0], [0, 0.25]], atol=1e-7)


def test_qr_without_the_orthonormal_part() -> None:
    x = vkml.tensor(TALL, dtype=vkml.float64, requires_grad=True)
    found = linalg.qr(x, mode="r")
    assert found.Q.shape == (0,)
    np.testing.assert_array_equal(exact(found.R), exact(linalg.qr(x).R))
    (found.R**2).sum().backward()  # the sum of the squares of x
    np.testing.assert_allclose(exact(x.grad), 2 * TALL, rtol=1e-6)
    with pytest.raises(vkml.ArgumentError, match=r"\[qr\] mode is 'all'"):
        linalg.qr(x, mode="all")


def test_gradients_of_singular_matrices_name_their_operator() -> None:
    singular = vkml.tensor(SINGULAR[:2, :2], requires_grad=True)
    with pytest.raises(vkml.ArgumentError, match=r"\[inv\] the matrix is singular"):
        linalg.inv(vkml.zeros(2, 2, requires_grad=True)).sum().backward()
    for matrix in (np.zeros((2, 2)), SINGULAR[:2, :2].T, np.ones((3, 2)), np.ones((2, 3))):
        with pytest.raises(vkml.AutogradError, match=r"\[qr\] .* linearly independent columns"):
            linalg.qr(vkml.tensor(matrix, requires_grad=True)).Q.sum().backward()
    first = vkml.grad(linalg.det(singular), [singular], create_graph=True)[0]
    second = vkml.grad(first[0, 0], [singular], create_graph=True)[0]
    assert second.tolist() == [[0, 0], [0, 1]]
    with pytest.raises(vkml.AutogradError, match=r"\[det\] the third derivative"):
        vkml.grad(second.sum(), [singular])
    # Of an invertible matrix there are all.
    x = vkml.tensor(SQUARE, dtype=vkml.float64, requires_grad=True)
    first = vkml.grad(linalg.det(x), [x], create_graph=True)[0]
    second = vkml.grad(first[0, 0], [x], create_graph=True)[0]
    third = exact(vkml.grad(second[1, 1], [x])[0])
    np.testing.assert_allclose(third, np.diag([0.0, 0, 1]), atol=1e-9)
