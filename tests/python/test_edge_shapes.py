"""Numbers along axis 0 or -1, and tensors of no elements: as in PyTorch, or a clear error."""

import math

import numpy as np
import pytest

import vkml
import vkml.nn.functional as F
from checking import exact
from torch_agreement import torch

TF = torch.nn.functional

OF_A_NUMBER = {
    **{
        name: (lambda t, x, axis, name=name: getattr(x, name)(axis))
        for name in (
            *("sum", "mean", "prod", "max", "min", "amax", "amin", "argmax", "argmin", "any"),
            *("all", "softmax", "log_softmax", "logsumexp", "median", "squeeze", "cumsum"),
            *("cumprod", "sort", "argsort", "count_nonzero", "nansum", "nanmean", "mode"),
            *("nanmedian",),
        )
    },
    "std": lambda t, x, axis: x.std(axis, correction=0),
    "var": lambda t, x, axis: x.var(axis, correction=0),
    "norm": lambda t, x, axis: x.norm(dim=axis),
    "quantile": lambda t, x, axis: x.quantile(0.5, axis),
    "nanquantile": lambda t, x, axis: x.nanquantile(0.5, axis),
    "flip": lambda t, x, axis: x.flip(axis),
    "topk": lambda t, x, axis: x.topk(1, axis),
    "kthvalue": lambda t, x, axis: x.kthvalue(1, axis),
    "index_select": lambda t, x, axis: x.index_select(axis, t.tensor(0)),
    "gather": lambda t, x, axis: x.gather(axis, t.tensor(0)),
    "aminmax": lambda t, x, axis: t.aminmax(x, dim=axis),
    "std_mean": lambda t, x, axis: t.std_mean(x, axis, correction=0),
}


def _parts(result):
    return list(result) if isinstance(result, tuple | list) else [result]


@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("name", OF_A_NUMBER)
def test_a_number_has_axis_0_and_minus_1(name, axis, device):
    function = OF_A_NUMBER[name]
    expected = _parts(function(torch, torch.tensor(2.5), axis))
    found = _parts(function(vkml, vkml.tensor(2.5, device=device), axis))
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected, strict=True):
        assert tuple(ours.shape) == tuple(theirs.shape)
        np.testing.assert_allclose(exact(ours), theirs.numpy(), rtol=1e-6)


@pytest.mark.parametrize("axis", [1, 5, -2])
@pytest.mark.parametrize("name", OF_A_NUMBER)
def test_a_number_has_no_other_axis(name, axis, device):
    with pytest.raises((vkml.ShapeError, vkml.IndexError), match="axis"):
        OF_A_NUMBER[name](vkml, vkml.tensor(2.5, device=device), axis)


NOTHING = {
    "logsumexp": (lambda t, f, z: t.logsumexp(z(3, 0), 1)),
    "glu": (lambda t, f, z: f.glu(z(0, 4), 0)),
    "split": (lambda t, f, z: z(0, 2).split(0)),
    "group_norm": (lambda t, f, z: f.group_norm(z(0, 4, 2), 2)),
    "channel_shuffle": (lambda t, f, z: f.channel_shuffle(z(0, 4, 2, 2), 2)),
    "local_response_norm": (lambda t, f, z: f.local_response_norm(z(0, 4, 2), 2)),
    "reflect": (lambda t, f, z: f.pad(z(0, 3, 8), (2, 3), mode="reflect")),
    "circular": (lambda t, f, z: f.pad(z(0, 3, 8), (2, 3), mode="circular")),
    "replicate": (lambda t, f, z: f.pad(z(0, 3, 8), (2, 3), mode="replicate")),
    "trapezoid": (lambda t, f, z: t.trapezoid(z(3, 0))),
    "median": (lambda t, f, z: z(0).median()),
    "cov": (lambda t, f, z: t.cov(z(3, 0))),
    "matrix_norm": (lambda t, f, z: t.linalg.matrix_norm(z(3, 0), 1)),
}


@pytest.mark.filterwarnings("ignore:cov")
@pytest.mark.parametrize("name", NOTHING)
def test_no_elements(name, device):
    function = NOTHING[name]
    expected = _parts(function(torch, TF, torch.zeros))
    found = _parts(function(vkml, F, lambda *shape: vkml.zeros(*shape, device=device)))
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected, strict=True):
        assert tuple(ours.shape) == tuple(theirs.shape)
        np.testing.assert_array_equal(exact(ours), theirs.numpy())


@pytest.mark.parametrize("axes", [1, 2])
def test_unpooling_an_empty_batch(axes, device):
    shape = (0, 2, *(4,) * axes)
    values = vkml.zeros(shape, device=device)
    unpool = F.max_unpool1d if axes == 1 else F.max_unpool2d
    result = unpool(values, values.to(vkml.int32), 2)
    assert tuple(result.shape) == (0, 2, *(8,) * axes)


def test_the_least_magnitude_of_nothing_is_an_error(device):
    with pytest.raises(vkml.ShapeError, match="no elements"):
        vkml.linalg.vector_norm(vkml.zeros(0, device=device), -2)
    assert vkml.linalg.vector_norm(vkml.zeros(0, device=device), 2).item() == 0


def test_logsumexp_of_nothing_has_a_gradient(device):
    x = vkml.zeros(3, 0, device=device, requires_grad=True)
    y = vkml.logsumexp(x, 1)
    assert y.tolist() == [-math.inf] * 3
    y.sum().backward()
    assert tuple(x.grad.shape) == (3, 0)


# Windows.


def test_windows_that_overlap_are_a_view_that_follows(device):
    x = vkml.zeros(4, device=device)
    windows = x.unfold(0, 2, 1)
    x.add_(vkml.arange(4.0, device=device))
    assert windows.tolist() == [[0, 1], [1, 2], [2, 3]]


def test_writing_to_windows_that_overlap_is_refused(device):
    x = vkml.zeros(3, device=device)
    with pytest.raises(vkml.ArgumentError, match="show some elements several times"):
        x.unfold(0, 2, 1).add_(1)
    assert x.tolist() == [0, 0, 0]


def test_writing_to_windows_that_do_not_overlap_reaches_the_tensor(device):
    x = vkml.zeros(5, device=device)
    x.unfold(0, 2, 2).add_(1)
    assert x.tolist() == [1, 1, 1, 1, 0]


@pytest.mark.parametrize("shape", [(6,), (3, 7), (2, 3, 5)])
@pytest.mark.parametrize(("size", "step"), [(3, 1), (3, 2), (2, 2), (1, 3)])
def test_windows_and_their_gradients_of_every_order(shape, size, step, device):
    values = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    x = vkml.tensor(values, device=device, requires_grad=True)
    y = torch.tensor(values, requires_grad=True)
    ours, theirs = x.unfold(-1, size, step), y.unfold(-1, size, step)
    np.testing.assert_array_equal(exact(ours), theirs.detach().numpy())
    (first,) = vkml.grad((ours**3).sum(), [x], create_graph=True)
    (expected,) = torch.autograd.grad((theirs**3).sum(), [y], create_graph=True)
    np.testing.assert_allclose(exact(first), expected.detach().numpy(), rtol=1e-5)
    (second,) = vkml.grad(first.sum(), [x])
    (expected,) = torch.autograd.grad(expected.sum(), [y])
    np.testing.assert_allclose(exact(second), expected.numpy(), rtol=1e-5)


def test_windows_of_four_axes_name_the_operator():
    with pytest.raises(vkml.ShapeError, match=r"\[unfold\] windows of shape \(2, 3, 4, 2\)"):
        vkml.ones(2, 3, 4, 2).unfold(-1, 1, 1)
