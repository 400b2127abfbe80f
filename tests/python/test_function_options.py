"""Custom functions in the forms of PyTorch's documentation, compared with PyTorch."""

import numpy as np
import pytest

import vkml
from checking import exact, inputs
from torch_agreement import torch

VALUES = inputs((3,), 0.5, 2)


def cube_with_setup(library):
    class Cube(library.autograd.Function):
        @staticmethod
        def forward(x, scale):
            return x**3 * scale, x**2

        @staticmethod
        def setup_context(ctx, inputs, output):
            x, scale = inputs
            ctx.save_for_backward(x)
            ctx.save_for_forward(x)
            ctx.set_materialize_grads(True)
            ctx.mark_non_differentiable(output[1])
            ctx.scale = scale

        @staticmethod
        def backward(ctx, gradient, _):
            (x,) = ctx.saved_tensors
            return 3 * x * x * ctx.scale * gradient, None

    return Cube


def test_a_context_that_is_set_up_apart(device):
    results = []
    for library, make in ((vkml, lambda a: vkml.tensor(a, device=device)), (torch, torch.tensor)):
        x = make(VALUES).requires_grad_()
        y, squares = cube_with_setup(library).apply(x, 2.0)
        assert not squares.requires_grad
        (first,) = library.autograd.grad(y.sum(), [x], create_graph=True)
        (second,) = library.autograd.grad(first.sum(), [x])
        results.append([part.detach() for part in (y, squares, first, second)])
    for ours, theirs in zip(*results, strict=True):
        np.testing.assert_allclose(exact(ours), theirs.numpy(), rtol=1e-5)


def exponential_in_place(library):
    class Exponential(library.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            x.exp_()
            ctx.mark_dirty(x)
            ctx.save_for_backward(x)
            return x

        @staticmethod
        def backward(ctx, gradient):
            (y,) = ctx.saved_tensors
            return gradient * y

    return Exponential


def test_an_argument_that_is_changed_in_place(device):
    results = []
    for library, make in ((vkml, lambda a: vkml.tensor(a, device=device)), (torch, torch.tensor)):
        leaf = make(VALUES).requires_grad_()
        x = leaf * 2
        y = exponential_in_place(library).apply(x)
        assert y is x
        (x * x).sum().backward()
        results.append([part.detach() for part in (x, leaf.grad)])
    for ours, theirs in zip(*results, strict=True):
        np.testing.assert_allclose(exact(ours), theirs.numpy(), rtol=1e-5)


def test_an_argument_without_gradient_is_changed_in_place(device):
    x = vkml.tensor(VALUES, device=device)
    assert exponential_in_place(vkml).apply(x) is x
    np.testing.assert_allclose(exact(x), np.exp(VALUES), rtol=1e-6)


def test_what_is_dirty_has_to_be_returned():
    class Wrong(vkml.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x + 1

        @staticmethod
        def backward(ctx, gradient):
            return gradient

    with pytest.raises(vkml.AutogradError, match="did not return it"):
        Wrong.apply(vkml.ones(2))


def test_gradients_that_do_not_arrive_are_zeros():
    class Pair(vkml.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(True)  # as without it; test_idioms.py has the other
            return x * 1, x * 2

        @staticmethod
        def backward(ctx, first, second):
            return first + 2 * second

    x = vkml.ones(2, requires_grad=True)
    Pair.apply(x)[1].sum().backward()
    assert x.grad.tolist() == [2, 2]
