"""`grad`, `backward` and `autograd.functional` by PyTorch's arguments, compared with PyTorch."""

import numpy as np
import pytest

import vkml
from checking import exact, inputs
from torch_agreement import torch

VALUES = inputs((3,), 0.5, 2)


def leaves(device, *arrays):
    ours = [vkml.tensor(a, device=device, requires_grad=True) for a in arrays]
    return ours, [torch.tensor(a, requires_grad=True) for a in arrays]


def agree(found, expected):
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected, strict=True):
        if theirs is None:
            assert ours is None
        else:
            np.testing.assert_allclose(exact(ours), theirs.detach().numpy(), rtol=1e-5)


def test_gradients_of_several_outputs_add_up(device):
    (x, y), (a, b) = leaves(device, VALUES, VALUES + 1)
    found = vkml.grad([(x * y).sum(), x * x], [x, y], [None, vkml.ones(3, device=device)])
    expected = torch.autograd.grad([(a * b).sum(), a * a], [a, b], [None, torch.ones(3)])
    agree(found, expected)
    agree(vkml.grad(((x**2).sum(), (y**3).sum()), x, allow_unused=True), [2 * a])


def test_gradients_of_several_outputs_give_up_the_graph_once(device):
    (x,), _ = leaves(device, VALUES)
    outputs = [(x * x).sum(), (x**3).sum()]
    vkml.grad(outputs, [x], retain_graph=True)
    vkml.grad(outputs, [x])
    with pytest.raises(vkml.AutogradError):
        vkml.grad(outputs, [x])


def test_an_input_that_is_not_reached_is_an_error(device):
    (x, y), _ = leaves(device, VALUES, VALUES)
    with pytest.raises(vkml.AutogradError, match=r"do not depend on input 1, of shape \(3,\)"):
        vkml.grad(x.sum(), [x, y])
    assert vkml.grad(x.sum(), [x, y], allow_unused=True)[1] is None
    assert vkml.grad(x.sum(), [x, y], materialize_grads=True)[1].tolist() == [0, 0, 0]
    with pytest.raises(vkml.ArgumentError, match="materialize_grads"):
        vkml.grad(x.sum(), [x, y], allow_unused=False, materialize_grads=True)


def test_several_outputs_need_as_many_gradients(device):
    (x,), _ = leaves(device, VALUES)
    with pytest.raises(vkml.ArgumentError, match="1 gradients for 2 outputs"):
        vkml.grad([x.sum(), x.sum()], [x], [None])
    with pytest.raises(vkml.AutogradError, match="an output has shape"):
        vkml.grad([x.sum(), x * 2], [x])
    with pytest.raises(vkml.ShapeError, match="a gradient has shape"):
        vkml.grad([x.sum(), x * 2], [x], [None, vkml.ones(2, device=device)])


def test_batched_gradients(device):
    (x,), (a,) = leaves(device, VALUES)
    rows = inputs((4, 3), -1, 1)
    found = vkml.grad(x**3, [x], vkml.tensor(rows, device=device), is_grads_batched=True)
    agree(found, torch.autograd.grad(a**3, [a], torch.tensor(rows), is_grads_batched=True))


def test_backward_to_some_leaves(device):
    (x, y), (a, b) = leaves(device, VALUES, VALUES + 1)
    z, c = (x * y).sum(), (a * b).sum()
    z.backward(inputs=[x], retain_graph=True)
    c.backward(inputs=[a], retain_graph=True)
    z.backward(inputs=x)
    c.backward(inputs=a)
    agree([x.grad, y.grad], [a.grad, b.grad])
    with pytest.raises(vkml.AutogradError, match="no leaf"):
        (x * 2).sum().backward(inputs=[x * 2])
    with pytest.raises(vkml.ArgumentError, match="inputs is empty"):
        x.sum().backward(inputs=[])


def test_backward_of_several_outputs(device):
    (x,), (a,) = leaves(device, VALUES)
    vkml.autograd.backward([x.sum(), x * x], [None, vkml.ones(3, device=device)])
    torch.autograd.backward([a.sum(), a * a], [None, torch.ones(3)])
    agree([x.grad], [a.grad])


def test_gradients_on_the_way_are_kept_when_asked_for(device):
    (x,), (a,) = leaves(device, VALUES)
    y, b = x * 2, a * 2
    assert not y.retains_grad
    for each in (y, b):
        each.retain_grad()
        each.retain_grad()
    (y * y).sum().backward(retain_graph=True)
    (b * b).sum().backward(retain_graph=True)
    agree([x.grad, y.grad], [a.grad, b.grad])
    assert y.retains_grad
    assert not y.is_leaf
    assert not x.retains_grad
    (y * 1).sum().backward()
    (b * 1).sum().backward()
    agree([x.grad, y.grad], [a.grad, b.grad])
    y.grad = None
    assert y.grad is None


def test_what_keeps_gradients_can_be_changed_in_place(device):
    (x,), _ = leaves(device, VALUES)
    y = x * 2
    y.retain_grad()
    y.add_(1)
    (y * y).sum().backward()
    np.testing.assert_allclose(exact(x.grad), 4 * (2 * VALUES + 1), rtol=1e-6)


def test_gradients_are_kept_of_what_requires_them_alone(device):
    with pytest.raises(vkml.AutogradError, match=r"\[retain_grad\]"):
        vkml.ones(2, device=device).retain_grad()
    x = vkml.ones(2, device=device, requires_grad=True)
    x.retain_grad()  # a leaf keeps them anyway
    x.sum().backward()
    assert x.grad.tolist() == [1, 1]


def test_inference_mode_records_nothing(device):
    x = vkml.ones(2, device=device, requires_grad=True)
    with vkml.inference_mode():
        assert not (x * 2).requires_grad
    with vkml.inference_mode(False):
        assert (x * 2).requires_grad

    @vkml.inference_mode()
    def double(t):
        return t * 2

    assert not double(x).requires_grad


# autograd.functional.

Y = VALUES + 1
CASES = {
    "jacobian": lambda f, t, x, y: f.jacobian(lambda a: a.exp() * a.sum(), x),
    "jacobian forward": lambda f, t, x, y: f.jacobian(
        lambda a: a.exp() * a.sum(), x, vectorize=True, strategy="forward-mode"
    ),
    "jacobian of several": lambda f, t, x, y: f.jacobian(lambda a, b: a * b.sum(), (x, y)),
    "jacobian to several": lambda f, t, x, y: f.jacobian(lambda a: (a * 2, a.sum()), x),
    "hessian": lambda f, t, x, y: f.hessian(lambda a: (a**3).sum() * a[0], x),
    "hessian of several": lambda f, t, x, y: f.hessian(lambda a, b: (a * b * b).sum(), (x, y)),
    "vjp": lambda f, t, x, y: f.vjp(lambda a: a.exp(), x, y),
    "vjp of several": lambda f, t, x, y: f.vjp(lambda a, b: (a * b).sum(), (x, y)),
    "jvp": lambda f, t, x, y: f.jvp(lambda a: a.exp(), x, y),
    "hvp": lambda f, t, x, y: f.hvp(lambda a: (a**3).sum() * a[0], x, y),
    "vhp": lambda f, t, x, y: f.vhp(lambda a: (a**3).sum() * a[0], x, y),
    "hvp of several": lambda f, t, x, y: f.hvp(lambda a, b: (a * b * b).sum(), (x, y), (y, x)),
}


def flat(tree):
    if isinstance(tree, tuple | list):
        return [leaf for each in tree for leaf in flat(each)]
    return [tree]


@pytest.mark.filterwarnings("ignore:`torch.jit")
@pytest.mark.parametrize("name", CASES)
def test_functional_is_pytorchs(name, device):
    found = CASES[name](
        vkml.autograd.functional, vkml, *(vkml.tensor(a, device=device) for a in (VALUES, Y))
    )
    expected = CASES[name](torch.autograd.functional, torch, torch.tensor(VALUES), torch.tensor(Y))
    assert isinstance(found, tuple) == isinstance(expected, tuple)
    assert all(not leaf.requires_grad for leaf in flat(found))
    agree(flat(found), flat(expected))


def test_functional_results_can_be_differentiated(device):
    x = vkml.tensor(VALUES, device=device, requires_grad=True)
    found = vkml.autograd.functional.jacobian(lambda a: a**3, x, create_graph=True)
    found.sum().backward()
    np.testing.assert_allclose(exact(x.grad), 6 * VALUES, rtol=1e-5)


def test_functional_says_what_it_does_not_take():
    f = vkml.autograd.functional
    x = vkml.ones(2)
    with pytest.raises(vkml.ArgumentError, match="strict=True"):
        f.jacobian(lambda a: a, x, strict=True)
    with pytest.raises(vkml.ArgumentError, match="strategy is 'both'"):
        f.jacobian(lambda a: a, x, strategy="both")
    with pytest.raises(vkml.ArgumentError, match="v can be left out"):
        f.vjp(lambda a: a, x)
    with pytest.raises(vkml.ArgumentError, match="v can be left out"):
        f.jvp(lambda a: a, x)
    with pytest.raises(vkml.ShapeError, match="one element"):
        f.hessian(lambda a: a, x)


def test_gradcheck_takes_pytorchs_arguments():
    x = vkml.tensor([1.0, 2.0], dtype=vkml.float64, requires_grad=True)
    assert vkml.autograd.gradcheck(
        func=lambda a: a * a, inputs=(x,), fast_mode=True, nondet_tol=1e-3
    )
    weights = vkml.tensor([1.0, -2.0], dtype=vkml.float64)
    assert vkml.autograd.gradgradcheck(lambda a: a**3, (x,), weights, fast_mode=True)


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_vmap_in_chunks(size, device):
    x, y = vkml.tensor(inputs((7, 3), -1, 1), device=device), vkml.ones(3, device=device)

    def function(row, other):
        return row * other + row.sum(), row.max()

    whole = vkml.vmap(function, (0, None), (1, 0))(x, y)
    parts = vkml.vmap(function, (0, None), (1, 0), chunk_size=size)(x, y)
    for a, b in zip(whole, parts, strict=True):
        np.testing.assert_array_equal(exact(a), exact(b))
    with pytest.raises(vkml.ArgumentError, match="chunk_size is 0"):
        vkml.vmap(function, chunk_size=0)
    with pytest.raises(vkml.ArgumentError, match="randomness is 'different'"):
        vkml.vmap(function, randomness="different")
