"""Methods of tensors that are written in Python, against PyTorch's, value and gradient."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vkml
from checking import exact, inputs
from torch_agreement import assert_agrees, torch
from vkml.methods import TensorMethods

A, B, CUBE = inputs((3, 4), -2, 2), inputs((3, 4), -2, 2, seed=1), inputs((2, 4, 6), -2, 2)
V, SQUARE = inputs((4,), -2, 2), inputs((3, 3), -1, 1) + 2 * np.eye(3, dtype=np.float32)
PLACES, FEW = np.array([1, 11, 5, 0]), np.array([2, 0])
SPD = SQUARE @ SQUARE.T
FACTOR = np.linalg.cholesky(SPD).astype(np.float32)

# What PyTorch computes too: (name, call, arrays); a method in place works on a copy.
CALLS: list[tuple[str, Callable[..., Any], list[np.ndarray]]] = [
    ("addbmm", lambda a, b, c: a.addbmm(b, c, beta=2), [CUBE[0, :, :4], CUBE, CUBE.swapaxes(1, 2)]),
    ("addmm_", lambda a, b, c: (a * 1).addmm_(b, c, alpha=2), [SQUARE, A, A.T.copy()]),
    ("addr", lambda a, v: a.addr(a[:, 0], v), [A, V]),
    ("adjoint", lambda a: a.adjoint(), [A]),
    ("angle", lambda a: a.angle() + a, [A]),
    ("conj", lambda a: a.conj() * 2, [A]),
    ("corrcoef", lambda a: a.corrcoef(), [A]),
    ("cov", lambda a: a.cov(correction=0), [A]),
    ("cross", lambda a, b: a.cross(b, 0), [A, B]),
    ("cumprod_", lambda a: (a * 1).cumprod_(1), [A]),
    ("cumsum_", lambda a: (a * 1).cumsum_(0), [A]),
    ("det", lambda a: a.det(), [SQUARE]),
    ("diagflat", lambda v: v.diagflat(1), [V]),
    ("diagonal_scatter", lambda a, v: a.diagonal_scatter(v[:3]), [A, V]),
    ("dist", lambda a, b: a.dist(b), [A, B]),
    ("dsplit", lambda a: list(a.dsplit(2)), [CUBE]),
    ("frexp", lambda a: a.frexp()[0], [A]),
    ("hsplit", lambda a: list(a.hsplit(2)), [A]),
    ("index_reduce", lambda a, i, b: a.index_reduce(0, i, b[:2], "amax"), [A, FEW, B]),
    ("inner", lambda a, b: a.inner(b), [A, B]),
    ("inverse", lambda a: a.inverse(), [SQUARE]),
    ("isreal", lambda a: a.isreal(), [A]),
    ("kron", lambda a, b: a.kron(b), [A, B]),
    ("logdet", lambda a: a.logdet(), [SPD]),
    ("matrix_exp", lambda a: a.matrix_exp(), [SQUARE]),
    ("matrix_power", lambda a: a.matrix_power(3), [SQUARE]),
    ("mode", lambda a: a.mode(1).values, [A]),
    ("nanmedian", lambda a: a.nanmedian(1).values, [A]),
    ("nanquantile", lambda a: a.nanquantile(0.3, 1), [A]),
    ("narrow_copy", lambda a: a.detach().narrow_copy(1, 1, 2) * a[:, :2], [A]),
    ("pinverse", lambda a: a.pinverse(), [A]),
    ("put", lambda a, i, v: a.put(i, v), [A, PLACES, V]),
    ("put_", lambda a, i, v: (a * 1).put_(i, v, True), [A, PLACES, V]),
    ("renorm", lambda a: a.renorm(2, 0, 1.5), [A]),
    ("renorm_", lambda a: (a * 1).renorm_(2, 1, 1.5), [A]),
    ("reshape_as", lambda a, b: a.reshape_as(b.reshape(2, 6)), [A, B]),
    ("select_scatter", lambda a, v: a.select_scatter(v, 0, 1), [A, V]),
    ("slice_scatter", lambda a, b: a.slice_scatter(b[:, :2], 1, 0, 4, 2), [A, B]),
    ("slogdet", lambda a: a.slogdet()[1], [SQUARE]),
    ("sum_to_size", lambda a: a.sum_to_size(4, 1), [CUBE]),
    ("sum_to_size", lambda a: a.sum_to_size((2, 4, 6)), [CUBE]),
    ("take", lambda a, i: a.take(i), [A, PLACES]),
    ("tril_", lambda a: (a * 1).tril_(1), [A]),
    ("triu_", lambda a: (a * 1).triu_(), [A]),
    ("vdot", lambda v, w: v.vdot(w * 2), [V, V]),
    ("view_as", lambda a, b: a.view_as(b.reshape(4, 3)), [A, B]),
    ("vsplit", lambda a: list(a.vsplit(3)), [A]),
]  # fmt: skip
ON_THE_CPU = {"det", "inverse", "logdet", "pinverse", "slogdet"}


@pytest.mark.filterwarnings("ignore:index_reduce:UserWarning")
@pytest.mark.parametrize(("name", "call", "arrays"), CALLS, ids=[name for name, _, _ in CALLS])
def test_methods(
    name: str, call: Callable[..., Any], arrays: list[np.ndarray], device: object
) -> None:
    where = vkml.cpu if name in ON_THE_CPU else device
    assert_agrees(call, call, arrays, where, 512, gradients=name != "isreal")


@pytest.mark.parametrize("name", ["eq_", "ne_", "lt_", "le_", "gt_", "ge_"])
def test_comparisons_in_place(name: str, device: object) -> None:
    a, b = np.round(A), np.round(B)
    x = vkml.tensor(a, device=device)
    alias = x[:]
    assert getattr(x, name)(vkml.tensor(b, device=device)) is x
    expected = getattr(torch.tensor(a), name)(torch.tensor(b)).numpy()
    np.testing.assert_array_equal(exact(x), expected)
    np.testing.assert_array_equal(exact(alias), expected)


def test_logic_in_place(device: object) -> None:
    a, b = np.round(A), np.round(B)
    for name in ("logical_and_", "logical_or_", "logical_xor_"):
        found = getattr(vkml.tensor(a, device=device), name)(vkml.tensor(b, device=device))
        expected = getattr(torch.tensor(a), name)(torch.tensor(b)).numpy()
        np.testing.assert_array_equal(exact(found), expected)
    np.testing.assert_array_equal(exact(vkml.tensor(a, device=device).logical_not_()), a == 0)
    x = vkml.zeros(2, 3, device=device)
    assert x.fill_diagonal_(7).tolist() == [[7, 0, 0], [0, 7, 0]]


def test_what_a_tensor_is(device: object) -> None:
    x = vkml.ones(2, 3, device=device, dtype=vkml.float16)
    assert (x.itemsize, x.element_size(), x.nbytes) == (2, 2, 12)
    assert (x.nelement(), x.ndimension()) == (6, 2)
    assert x.stride() == (3, 1)
    assert x.T.stride() == (1, 3)
    assert x[:, ::2].stride(1) == 2
    assert (x.is_cpu, x.is_vulkan) == (device == vkml.cpu, device != vkml.cpu)
    assert not x.is_cuda
    assert (x.type(), x.type(vkml.int32).dtype) == (str(x.dtype), vkml.int32)
    assert x.is_floating_point()
    assert not x.is_complex()
    assert x.is_signed()
    assert not (x > 0).is_signed()
    assert x.sum().is_nonzero()
    assert x.is_same_size(vkml.zeros(2, 3))
    assert x.type_as(vkml.arange(2)).dtype == vkml.int32


def test_new_tensors(device: object) -> None:
    x = vkml.ones(2, 3, device=device, dtype=vkml.float16)
    for made, shape in (
        (x.new_tensor([1, 2]), (2,)),
        (x.new_full((2, 2), 3), (2, 2)),
        (x.new_empty(4, 5), (4, 5)),
        (x.new_zeros((3,)), (3,)),
        (x.new_ones(3, 1), (3, 1)),
    ):
        assert (made.shape, made.dtype, made.device) == (shape, x.dtype, x.device)
    assert x.new_full((2,), 3).tolist() == [3.0, 3.0]
    assert x.new_ones(2, dtype=vkml.int32).tolist() == [1, 1]
    assert x.new_zeros(2, dtype=vkml.int32).dtype == vkml.int32
    with pytest.raises(vkml.ShapeError, match=r"\[sum_to_size\]"):
        x.sum_to_size(2, 2)


def test_cholesky_methods() -> None:
    factor = vkml.tensor(FACTOR)
    np.testing.assert_allclose(factor.cholesky_inverse().numpy(), np.linalg.inv(SPD), atol=1e-4)
    right = vkml.tensor(SQUARE)
    np.testing.assert_allclose(
        right.cholesky_solve(factor).numpy(), np.linalg.solve(SPD, SQUARE), atol=1e-4
    )


def test_counts_and_draws(device: object) -> None:
    x = vkml.tensor([0.5, 0.1, 0.9, 0.9], device=device)
    assert x.histogram(vkml.tensor([0.0, 0.5, 1.0], device=device)).hist.tolist() == [1, 3]
    assert vkml.zeros(50, device=device).bernoulli().sum().item() == 0
    assert vkml.tensor([0.0, 1.0, 0.0], device=device).multinomial(1).tolist() == [1]


def test_random_numbers_in_place(device: object) -> None:
    vkml.manual_seed(5)
    x = vkml.zeros(20000, device=device)
    assert set(exact(x.random_(3))) == {0, 1, 2}
    assert set(exact(x.random_(-2, 1))) == {-2, -1, 0}
    whole = exact(x.random_())
    assert whole.max() > 2**23
    assert (whole == np.round(whole)).all()
    assert set(exact(vkml.zeros(500, dtype=vkml.bool, device=device).random_())) == {False, True}
    cauchy = exact(x.cauchy_(2.0, 3.0))
    # Quartiles of the Cauchy distribution: median plus and minus sigma.
    np.testing.assert_allclose(np.quantile(cauchy, [0.25, 0.5, 0.75]), [-1, 2, 5], atol=0.25)
    trials = exact(x.geometric_(0.3))
    assert trials.min() == 1
    assert abs(trials.mean() - 1 / 0.3) < 0.1
    assert abs((trials == 1).mean() - 0.3) < 0.02
    logs = np.log(exact(x.log_normal_(0.5, 0.25)))
    assert abs(logs.mean() - 0.5) < 0.01
    assert abs(logs.std() - 0.25) < 0.01
    with pytest.raises(vkml.ArgumentError, match=r"\[geometric_\] p is 1"):
        x.geometric_(1.0)


def test_every_method_is_tested_and_documented() -> None:
    text = Path(__file__).read_text()
    for name, method in vars(TensorMethods).items():
        if name.startswith("_") or name == "backward":  # the subject of test_autograd.py
            continue
        assert f".{name}" in text or f'"{name}"' in text, name
        assert method.__doc__
        assert getattr(vkml.Tensor, name).__doc__ == method.__doc__
