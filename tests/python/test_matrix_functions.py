"""Functions of matrices made of products and factorisations: ranks, limits and errors.

`linalg_cases` compares their values and gradients with PyTorch's.
"""

import numpy as np
import pytest

import vkml
from checking import assert_close, exact, inputs
from torch_agreement import assert_agrees, torch
from vkml import linalg


def test_logdet_of_a_negative_determinant() -> None:
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
        x = vkml.tensor([[2.0, 1.0], [1.0, 3.0]])
        ours, theirs = getattr(vkml, name)(input=x), getattr(linalg, own)(x)
        assert str(ours) == str(theirs)
    assert all(getattr(linalg, name).__doc__ for name in linalg.__all__)
