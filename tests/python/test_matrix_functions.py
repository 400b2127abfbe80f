"""Functions of matrices made of products and factorisations, against PyTorch and NumPy."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import vkml
from checking import assert_close, exact, inputs
from test_linalg import matrices, positive, transposed
from torch_agreement import assert_agrees, torch
from vkml import linalg


def test_functions_of_matrices_against_pytorch() -> None:
    tall, square, spd = inputs((2, 5, 3), -1, 1), matrices(2, 3, 3), positive(2, 3, 3)
    right = inputs((2, 5, 2), -1, 1)
    vector = inputs((3,), -1, 1)

    def agree(call: Callable[..., Any], arrays: list[np.ndarray], gradients: bool = True) -> None:
        assert_agrees(
            lambda *x: call(linalg, *x),
            lambda *x: call(torch.linalg, *x),
            arrays,
            vkml.cpu,
            512,
            gradients,
        )

    agree(lambda m, a, b: m.lstsq(a, b)[0], [tall, right])
    agree(lambda m, a: m.cond(a), [square])
    for order in (2, -2, 1, -1, np.inf, "fro", "nuc"):
        # PyTorch's gradients of these fail.
        agree(lambda m, a, p=order: m.cond(a, p), [square], gradients=False)
    agree(lambda m, a, v: m.multi_dot([v, a[0], a[1]]), [square, vector])
    agree(lambda m, a, v: m.multi_dot([a[0].mT, a[1], a[0], v]), [tall[:, :3], vector])
    agree(lambda m, a: m.norm(a), [tall])
    agree(lambda m, a: m.norm(a, 1, dim=1, keepdim=True), [tall])
    agree(lambda m, a: m.norm(a, "nuc", dim=(1, 0), keepdim=True), [tall])
    agree(lambda m, a: m.norm(a, "fro", dim=(0, 2)), [tall])
    agree(lambda m, a, b: m.cross(a, b), [square, square[::-1].copy()])
    agree(lambda m, a: m.diagonal(a, offset=1), [tall])
    agree(lambda m, v: m.vander(v, N=4), [vector])
    agree(lambda m, a, b: m.vecdot(a, b), [square, square + 1])
    agree(lambda m, a, b: m.matmul(a, b), [square, square + 1])
    agree(lambda m, a: m.tensorinv(a.reshape(2, 3, 6), ind=2), [matrices(6, 6)])
    agree(
        lambda m, a, b: m.tensorsolve(a.reshape(2, 3, 6), b.reshape(2, 3)),
        [matrices(6, 6), inputs((6,), -1, 1)],
    )
    factor = np.linalg.cholesky(spd.astype(np.float64)).astype(np.float32)
    for upper in (False, True):
        side = transposed(factor).copy() if upper else factor
        for name, rest in (("cholesky_solve", [right[:, :3]]), ("cholesky_inverse", [])):
            arrays = [*rest, side]
            assert_agrees(
                lambda *x, n=name, u=upper: getattr(vkml, n)(*x, u),
                lambda *x, n=name, u=upper: getattr(torch, n)(*x, u),
                arrays,
                vkml.cpu,
                256,
                gradients=False,
            )
    agree(lambda m, a: (vkml if m is linalg else torch).logdet(a), [spd])
    assert np.isnan(vkml.logdet(vkml.tensor([[-1.0]])).item())


def test_ranks_and_residuals() -> None:
    tall = inputs((5, 3), -1, 1)
    flat = np.concatenate([tall[:, :2], tall[:, :1] + tall[:, 1:2]], 1)
    assert linalg.matrix_rank(vkml.tensor(tall)).item() == 3
    assert linalg.matrix_rank(vkml.tensor(flat), rtol=1e-5).item() == 2
    right = inputs((5, 2), -1, 1)
    found = linalg.lstsq(vkml.tensor(tall), vkml.tensor(right))
    wide = [array.astype(np.float64) for array in (tall, right)]
    expected = np.linalg.lstsq(*wide, rcond=None)
    assert_close(found.solution, expected[0], 64)
    assert_close(found.residuals, expected[1], 64)
    assert found.rank.item() == 3
    assert_close(found.singular_values, expected[3], 16)
    short = linalg.lstsq(vkml.tensor(flat), vkml.tensor(right), rcond=1e-5)
    expected = np.linalg.lstsq(flat.astype(np.float64), wide[1], rcond=1e-5)
    assert_close(short.solution, expected[0], 64)
    assert short.residuals.shape == (0,)


@pytest.mark.parametrize("scale", [0.0, 0.01, 1.0, 12.0])
def test_matrix_exp(scale: float, device: object) -> None:
    array = inputs((2, 4, 4), -1, 1) * np.float32(scale)
    expected = torch.linalg.matrix_exp(torch.tensor(array, dtype=torch.float64)).numpy()
    assert_close(linalg.matrix_exp(vkml.tensor(array, device=device)), expected, 256)
    if 0 < scale <= 1:
        assert_agrees(linalg.matrix_exp, torch.linalg.matrix_exp, [array], device, 64)


def test_matrix_exp_of_much(device: object) -> None:
    assert linalg.matrix_exp(vkml.zeros(2, 0, 0, device=device)).shape == (2, 0, 0)
    assert np.isnan(exact(linalg.matrix_exp(vkml.full((2, 2), np.inf, device=device)))).all()
    wide = vkml.tensor(inputs((4, 4), -1, 1), dtype=vkml.float64)
    expected = torch.linalg.matrix_exp(torch.tensor(exact(wide))).numpy()
    np.testing.assert_allclose(exact(linalg.matrix_exp(wide)), expected, rtol=1e-13, atol=1e-14)
    with pytest.raises(vkml.ShapeError, match=r"\[matrix_exp\] needs square"):
        linalg.matrix_exp(vkml.ones(2, 3))


def test_what_does_not_fit_is_said() -> None:
    square = vkml.eye(2)
    for call, error in (
        (lambda: linalg.multi_dot([square]), vkml.ArgumentError),
        (lambda: linalg.lstsq(square, square, driver="gels"), vkml.ArgumentError),
        (lambda: linalg.cond(vkml.ones(2, 3), 1), vkml.ShapeError),
        (lambda: linalg.norm(vkml.ones(2, 3, 4), 1), vkml.ShapeError),
        (lambda: linalg.tensorsolve(vkml.ones(2, 3), vkml.ones(2)), vkml.ShapeError),
        (lambda: linalg.tensorinv(vkml.ones(2, 3), 1), vkml.ShapeError),
    ):
        with pytest.raises(error, match=r"^\[\w+\] "):
            call()


def test_names_at_the_top() -> None:
    for name, own in (("inverse", "inv"), ("pinverse", "pinv"), ("det", "det"), ("slogdet",) * 2):
        assert getattr(vkml, name) is getattr(linalg, own)
    assert all(getattr(linalg, name).__doc__ for name in linalg.__all__)
