"""vkml.autograd.Function, gradcheck and gradgradcheck. Expected values follow from calculus."""

import gc
import weakref

import numpy as np
import pytest

import vkml
from vkml.autograd import Function, GradcheckError, gradcheck, gradgradcheck, once_differentiable


class Cube(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return 3 * x * x * gradient


class Exponential(Function):
    """Saves its result."""

    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, gradient):
        (y,) = ctx.saved_tensors
        return gradient * y


class ScaledSumAndProduct(Function):
    """Two results of different shapes; an argument that is no tensor."""

    @staticmethod
    def forward(ctx, x, scale, y):
        ctx.save_for_backward(x, y)
        ctx.scale = scale
        return x * y * scale, (x + y).sum()

    @staticmethod
    def backward(ctx, product_gradient, sum_gradient):
        x, y = ctx.saved_tensors
        scaled = product_gradient * ctx.scale
        return scaled * y + sum_gradient, None, scaled * x + sum_gradient


def doubles(*values, device=vkml.cpu):
    return vkml.tensor(values, dtype=vkml.float64, device=device, requires_grad=True)


def test_value_first_and_second_derivative(device):
    x = vkml.tensor([1.0, -2.0, 3.0], device=device, requires_grad=True)
    y = Cube.apply(x)
    assert y.tolist() == [1.0, -8.0, 27.0]
    (first,) = vkml.grad(y.sum(), [x], create_graph=True)
    assert first.tolist() == [3.0, 12.0, 27.0]
    (second,) = vkml.grad(first.sum(), [x])
    assert second.tolist() == [6.0, -12.0, 18.0]
    Cube.apply(x).sum().backward()
    assert x.grad.tolist() == [3.0, 12.0, 27.0]


def test_a_saved_result_can_be_differentiated_again():
    x = doubles(0.5, -1.0)
    assert gradcheck(Exponential.apply, x)
    assert gradgradcheck(Exponential.apply, x)


def test_a_saved_result_makes_no_cycle():
    gc.collect()
    before = vkml._vkml._live_nodes()
    gc.disable()
    try:
        x = doubles(0.5)
        y = Exponential.apply(x)
        y.sum().backward()
        watched = weakref.ref(y)
        del x, y
        assert watched() is None
        assert vkml._vkml._live_nodes() == before
    finally:
        gc.enable()


def test_several_results(device):
    x = vkml.tensor([1.0, 2.0], device=device, requires_grad=True)
    y = vkml.tensor([3.0, 4.0], device=device, requires_grad=True)
    product, total = ScaledSumAndProduct.apply(x, 10.0, y)
    assert product.tolist() == [30.0, 80.0]
    assert total.item() == 10.0
    assert total.shape == ()
    (product.sum() + total).backward()
    assert x.grad.tolist() == [31.0, 41.0]
    assert y.grad.tolist() == [11.0, 21.0]
    x.grad = None
    ScaledSumAndProduct.apply(x, 10.0, y)[1].backward()
    assert x.grad.tolist() == [1.0, 1.0]
    a, b = doubles(1.0, 2.0), doubles(3.0, -1.0)
    assert gradgradcheck(lambda a, b: ScaledSumAndProduct.apply(a, 2.0, b), [a, b])


def test_without_gradients_the_plain_value():
    x = vkml.tensor(2.0, requires_grad=True)
    with vkml.no_grad():
        assert not Cube.apply(x).requires_grad
    assert not Cube.apply(vkml.tensor(2.0)).requires_grad
    assert Cube.apply(x).requires_grad


def test_saved_tensors_keep_their_values():
    x = vkml.tensor(2.0, requires_grad=True)
    y = Cube.apply(x)
    with vkml.no_grad():
        x.assign_(vkml.tensor(100.0))
    y.backward()
    assert x.grad.item() == 12.0


def test_needs_input_grad_and_marked_results():
    seen = []

    class WithIndex(Function):
        @staticmethod
        def forward(ctx, x, y):
            seen.append(ctx.needs_input_grad)
            floor = x.floor()
            ctx.mark_non_differentiable(floor)
            return x * y, floor

        @staticmethod
        def backward(ctx, gradient, floor_gradient):
            seen.append(floor_gradient)
            return gradient, None

    x = vkml.tensor(2.5, requires_grad=True)
    product, floor = WithIndex.apply(x, vkml.tensor(2.0))
    assert not floor.requires_grad
    product.backward()
    assert seen == [(True, False), None]
    assert x.grad.item() == 1.0


def test_errors():
    class WrongCount(Cube):
        @staticmethod
        def backward(ctx, gradient):
            return gradient, gradient

    class Once(Cube):
        @staticmethod
        @once_differentiable
        def backward(ctx, gradient):
            return Cube.backward(ctx, gradient)

    x = vkml.tensor(2.0, requires_grad=True)
    with pytest.raises(vkml.AutogradError, match=r"WrongCount.*2 gradients for 1"):
        WrongCount.apply(x).backward()
    Once.apply(x).backward()
    assert x.grad.item() == 12.0
    with pytest.raises(vkml.AutogradError, match="once"):
        Once.apply(x).backward(create_graph=True)


def test_gradcheck_finds_a_wrong_gradient():
    class Wrong(Cube):
        @staticmethod
        def backward(ctx, gradient):
            return Cube.backward(ctx, gradient) * 1.01

    x = doubles(1.0, 2.0)
    assert gradcheck(Cube.apply, x)
    with pytest.raises(GradcheckError, match="input 0, element 0"):
        gradcheck(Wrong.apply, x)
    assert not gradcheck(Wrong.apply, x, raise_exception=False)
    with pytest.raises(vkml.AutogradError):
        gradcheck(Cube.apply, x.detach())


def test_gradgradcheck_finds_a_wrong_second_derivative():
    class WrongSecond(Function):
        """The first derivative is right; its own gradient leaves out a factor."""

        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x * x

        @staticmethod
        def backward(ctx, gradient):
            (x,) = ctx.saved_tensors
            return 3 * x * x.detach() * gradient

    x = doubles(1.0, 2.0)
    assert gradcheck(WrongSecond.apply, x)
    assert gradgradcheck(Cube.apply, x)
    with pytest.raises(GradcheckError):
        gradgradcheck(WrongSecond.apply, x)


def test_gradcheck_of_built_in_functions():
    a = vkml.tensor(np.random.default_rng(0).normal(size=(2, 3)), requires_grad=True)
    b = vkml.tensor(np.random.default_rng(1).normal(size=(3, 2)), requires_grad=True)
    assert gradcheck(lambda a, b: (a @ b).tanh(), [a, b])
    assert gradgradcheck(lambda a, b: (a @ b).tanh(), [a, b])
