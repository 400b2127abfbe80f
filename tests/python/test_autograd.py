"""Autograd on every device: accumulation, modes, second derivatives, errors."""

import numpy as np
import pytest

import vkml
from checking import assert_close, exact, inputs
from torch_agreement import torch


def leaf(values: object, device: object) -> object:
    return vkml.tensor(values, dtype=vkml.float32, device=device, requires_grad=True)


def test_gradients_accumulate_until_they_are_cleared(device: object) -> None:
    x = leaf([1, 2], device)
    assert x.grad is None
    (x * 3).sum().backward()
    (x * x).sum().backward()
    assert x.grad.tolist() == [5, 7]
    x.grad = None
    (x * 3).sum().backward()
    assert x.grad.tolist() == [3, 3]


def test_a_leaf_used_many_times_gets_the_sum(device: object) -> None:
    x = leaf([2.0], device)
    y = x
    for _ in range(20):
        y = y + x
    y.backward()
    assert x.grad.tolist() == [21]


def test_only_leaves_keep_gradients(device: object) -> None:
    x = leaf([1, 2], device)
    middle = x * 2
    middle.sum().backward()
    assert x.is_leaf
    assert not middle.is_leaf
    assert middle.grad is None
    assert vkml.ones(2, device=device).is_leaf


def test_a_gradient_of_another_shape_is_refused(device: object) -> None:
    x = leaf([1, 2], device)
    with pytest.raises(vkml.AutogradError, match="shape"):
        (x * 2).backward()
    with pytest.raises(vkml.ShapeError, match=r"\(3,\)"):
        (x * 2).backward(vkml.ones(3, device=device))
    with pytest.raises(vkml.AutogradError, match="requires no gradient"):
        vkml.ones(1, device=device).sum().backward()
    with pytest.raises(vkml.DTypeError, match="int32"):
        vkml.tensor([1], device=device, requires_grad=True)


def test_a_second_backward_needs_retain_graph(device: object) -> None:
    x = leaf([3.0], device)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [12]
    with pytest.raises(vkml.AutogradError, match="retain_graph=True"):
        y.backward()
    assert x.grad.tolist() == [12]


def test_no_grad_records_nothing(device: object) -> None:
    x = leaf([1.0], device)
    with vkml.no_grad():
        y = x * 2
    assert not y.requires_grad
    with vkml.no_grad(), vkml.enable_grad():
        assert (x * 2).requires_grad
    (x.detach() * x).sum().backward()
    assert x.grad.tolist() == [1]


def test_grad_leaves_the_leaves_alone(device: object) -> None:
    x, w = leaf([1, 2], device), leaf([3, 4], device)
    other = leaf([1.0], device)
    y = (x * w).sum()
    gx, gw = vkml.grad(y, [x, w], retain_graph=True)
    assert (gx.tolist(), gw.tolist()) == ([3, 4], [1, 2])
    assert x.grad is None
    middle = x * w
    (gm,) = vkml.grad((middle * middle).sum(), [middle])
    assert gm.tolist() == [6, 16]
    assert vkml.grad(y, [other], allow_unused=True)[0] is None


def test_second_derivatives_through_backward(device: object) -> None:
    x = leaf([2, 3], device)
    (first,) = vkml.grad((x**3).sum(), [x], create_graph=True)
    assert first.tolist() == [12, 27]
    first.sum().backward()
    assert x.grad.tolist() == [12, 18]


SECOND = {
    "matmul": lambda x: (x @ x.T).tanh().sum(),
    "softmax": lambda x: (vkml.softmax(x, 1) * x).sum(),
    "log_softmax": lambda x: (vkml.log_softmax(x, 0) ** 2).sum(),
    "logsumexp": lambda x: (vkml.logsumexp(x, 1) ** 2).sum(),
    "layer_norm": lambda x: (vkml.layer_norm(x, x.shape[-1]) ** 3).sum(),
    "conv2d": lambda x: (
        vkml.conv2d(x.reshape(1, 1, *x.shape), x[:2, :2].reshape(1, 1, 2, 2)) ** 2
    ).sum(),
    "max_pool2d": lambda x: (vkml.max_pool2d(x.reshape(1, 1, *x.shape), 2) ** 3).sum(),
    "avg_pool2d": lambda x: (vkml.avg_pool2d(x.reshape(1, 1, *x.shape), 2) ** 3).sum(),
    "amax": lambda x: (vkml.amax(x, 1) ** 3).sum(),
    "prod": lambda x: vkml.prod(x, 1).sum(),
    "cat": lambda x: (vkml.cat([x, x * x], 1) ** 2).sum(),
    "getitem": lambda x: (x[1:, ::2] ** 3).sum(),
    "pad": lambda x: (vkml.pad(x, (1, 1)) ** 3).sum(),
    "var": lambda x: (vkml.var(x, 1) ** 2).sum(),
    "cross_entropy": lambda x: vkml.cross_entropy(
        x * x, vkml.tensor([0, 2, 1, 1], device=x.device)
    ),
    "gather": lambda x: (
        vkml.gather(x, 1, vkml.tensor([[0, 0], [1, 2], [2, 2], [0, 1]], device=x.device)) ** 3
    ).sum(),
    "where": lambda x: vkml.where(x > 0, x**3, x * x).sum(),
}


@pytest.mark.parametrize("name", list(SECOND))
def test_second_derivatives_of_structural_operators(name: str, device: object) -> None:
    """The derivative of a directional derivative, against differences of first gradients."""
    function = SECOND[name]
    array = inputs((4, 4), 0.3, 1.5, seed=3).astype(np.float64)
    direction = inputs((4, 4), -1, 1, seed=4).astype(np.float64)

    def first(values: np.ndarray) -> np.ndarray:
        x = vkml.tensor(values, device=device, requires_grad=True)
        return exact(vkml.grad(function(x), [x])[0])

    x = vkml.tensor(array, device=device, requires_grad=True)
    (gradient,) = vkml.grad(function(x), [x], create_graph=True)
    (second,) = vkml.grad((gradient * vkml.tensor(direction, device=device)).sum(), [x])
    step = 1e-5
    expected = (first(array + step * direction) - first(array - step * direction)) / (2 * step)
    np.testing.assert_allclose(exact(second), expected, atol=1e-6 * max(1, np.abs(expected).max()))


def test_in_place_changes_of_leaves(device: object) -> None:
    x = leaf([1.0], device)
    with pytest.raises(vkml.AutogradError, match="no_grad"):
        x += 1
    with vkml.no_grad():
        x += 1
    assert x.is_leaf
    assert x.requires_grad
    (x * x).sum().backward()
    assert x.grad.tolist() == [4]


def test_changes_in_place_are_differentiated_through(device: object) -> None:
    x = leaf([1, 2, 3], device)
    y = x * 2
    y[1:] *= 5
    y[0] = 7
    y.sum().backward()
    assert x.grad.tolist() == [0, 10, 10]


def test_gradients_of_halves(device: object) -> None:
    x = vkml.tensor(inputs((4, 8), -1, 1), device=device).to(vkml.float16).requires_grad_()
    vkml.softmax(x, 1).log().sum().backward()
    assert x.grad.dtype == vkml.float16
    wide = x.detach().to(vkml.float32).requires_grad_()
    vkml.softmax(wide, 1).log().sum().backward()
    assert_close(x.grad.to(vkml.float32), exact(wide.grad), units=2.0**13 * 4)


def test_a_cast_passes_gradients_on(device: object) -> None:
    x = leaf([1.5, 2.5], device)
    y = x.to(vkml.float64) * 3
    y.sum().backward()
    assert x.grad.dtype == vkml.float32
    assert x.grad.tolist() == [3, 3]


def test_a_value_overwritten_before_backward(device: object) -> None:
    """The gradient uses the value that was recorded, kept while a backward pass may need it."""
    w = leaf([2.0], device)
    y = (w * w).sum()
    y.realize()
    with vkml.no_grad():
        w.assign_(w * 10)
    w.realize()
    y.backward()
    assert w.grad.tolist() == [4]
    assert w.tolist() == [20]


def test_a_second_pass_raises_whoever_else_holds_a_value(device: object) -> None:
    for keep_alive in (True, False):
        x = vkml.tensor([1.0, 2.0], requires_grad=True)
        h = x * x
        first, second = (h * h).sum(), (h + 1).sum()
        if not keep_alive:
            del h
        first.backward()
        with pytest.raises(vkml.AutogradError, match="retain_graph"):
            second.backward()
        np.testing.assert_array_equal(x.grad.numpy(), [4, 32])


def test_a_pass_has_nothing_to_do_with_assignments_elsewhere(device: object) -> None:
    other = vkml.zeros(3)
    other.assign_(other + vkml.ones(2).gather(0, vkml.tensor([9, 0, 0])))
    w = vkml.ones(2, requires_grad=True)
    (w * 2).sum().backward()
    np.testing.assert_array_equal(w.grad.numpy(), [2, 2])
    with pytest.raises(vkml.VkmlError, match="9"):
        other.numpy()


def test_a_gradient_has_the_layout_of_its_leaf(device: object) -> None:
    w = vkml.ones((3, 4), requires_grad=True)
    x = vkml.ones((2, 5, 4))
    (x @ w.transpose(0, 1).broadcast_to((2, 4, 3))).sum().backward()
    assert w.grad.strides == w.strides
    w.grad.copy_(vkml.zeros(3, 4))
    assert w.grad.sum().item() == 0


def test_assignments_outlive_a_pass_that_fails(device: object) -> None:
    counter = vkml.zeros(3)
    counter.assign_(counter + 1)
    w = vkml.ones(2).realize().requires_grad_()

    def gradient_through_a_bad_index() -> None:
        w.gather(0, vkml.tensor([9])).sum().backward()
        w.grad.numpy()  # where the device runs ahead of the host

    with pytest.raises(vkml.IndexError, match="9"):
        gradient_through_a_bad_index()
    w.grad = None
    (w * 2).sum().backward()
    assert counter.is_computed
    assert counter.tolist() == [1, 1, 1]


def test_a_second_gradient_needs_retain_graph(device: object) -> None:
    x = vkml.tensor([1.0, 2.0], device=device, requires_grad=True)
    y = (x * x).sum()
    (first,) = vkml.grad(y, [x], retain_graph=True)
    assert vkml.grad(y, [x])[0].tolist() == first.tolist() == [2, 4]
    with pytest.raises(vkml.AutogradError, match="retain_graph=True"):
        vkml.grad(y, [x])


def test_gradients_reach_a_leaf_that_was_given_other_data(device: object) -> None:
    layer = vkml.nn.Linear(2, 1).to(device)
    layer.weight.register_hook(lambda gradient: gradient * 10)
    loss = layer(vkml.tensor([[1.0, 2.0]], device=device)).sum()
    layer.weight.data = layer.weight.data * 2
    layer.to(device)
    layer.float()
    loss.backward()
    assert layer.weight.grad.tolist() == [[10, 20]]
    assert layer.bias.grad.tolist() == [1]


def test_gradients_are_those_of_the_dtype_that_a_leaf_has_now(device: object) -> None:
    layer = vkml.nn.Linear(2, 1).to(device)
    layer(vkml.ones(1, 2, device=device)).sum().backward()
    loss = layer(vkml.tensor([[1.0, 2.0]], device=device)).sum()
    layer.half()
    assert layer.weight.grad.dtype == vkml.float16
    layer.zero_grad()
    loss.backward()
    assert layer.weight.grad.dtype == vkml.float16
    assert layer.weight.grad.tolist() == [[1, 2]]


@pytest.mark.parametrize("dtype", [vkml.float16, vkml.float32, vkml.float64], ids=str)
def test_deviations_of_equal_elements_have_the_gradient_0(dtype, device):
    """Like norms of zeros: PyTorch's choice among the subgradients."""
    for function in (
        lambda x: x.std(),
        lambda x: x.std(1).sum(),
        lambda x: vkml.std_mean(x, 0)[0].sum(),
        lambda x: x[0, :1].std(correction=0),
    ):
        x = vkml.full((2, 3), 2.5, dtype=dtype, device=device, requires_grad=True)
        y = function(x)
        y.backward()
        assert y.item() == 0
        assert x.grad.tolist() == [[0, 0, 0]] * 2
    mixed = vkml.tensor([[1.0, 1.0], [1.0, 3.0]], dtype=dtype, device=device, requires_grad=True)
    mixed.std(1).sum().backward()
    np.testing.assert_allclose(
        mixed.grad.to(vkml.float64).numpy(), [[0, 0], [-(0.5**0.5), 0.5**0.5]], rtol=1e-3
    )


STEPS = {
    "round": lambda x: x.round(),
    "floor": lambda x: x.floor(),
    "ceil": lambda x: x.ceil(),
    "trunc": lambda x: x.trunc(),
    "sign": lambda x: x.sign(),
    "round decimals": lambda x: vkml.round(x, decimals=1),
    "floor division": lambda x: vkml.div(x, 0.3, rounding_mode="floor"),
    "truncated division": lambda x: vkml.div(2.0, x, rounding_mode="trunc"),
    "zero norm": lambda x: x.norm(0),
    "zeroth power": lambda x: vkml.linalg.matrix_power(x.reshape(2, 2), 0),
}


@pytest.mark.parametrize("name", STEPS)
def test_steps_have_a_gradient_of_zero(name: str, device: object) -> None:
    x = leaf([0.25, -1.5, 2.75, float("inf")], device)
    y = STEPS[name](x)
    assert y.requires_grad
    y.sum().backward(create_graph=True)
    assert x.grad.tolist() == [0, 0, 0, 0]
    with vkml.no_grad():
        assert not STEPS[name](x).requires_grad


@pytest.mark.parametrize("name", ["max", "min"])
@pytest.mark.parametrize("dim", [0, -1])
def test_the_first_of_equal_extremes_has_the_gradient(name: str, dim: int, device: object) -> None:
    """Along an axis, where it has an index too; over all, or by amax, equal ones share."""
    values = [[2.0, 2.0, 1.0], [1.0, 1.0, 1.0], [2.0, 0.0, 2.0]]
    x = leaf(values, device)
    wanted = torch.tensor(values, requires_grad=True)
    mine, theirs = getattr(x, name)(dim), getattr(wanted, name)(dim)
    assert mine.indices.tolist() == theirs.indices.tolist()
    mine.values.square().sum().backward()
    theirs.values.square().sum().backward()
    assert x.grad.tolist() == wanted.grad.tolist()
    assert vkml.ones(3, 2, dtype=vkml.bool, device=device).max(1).values.tolist() == [True] * 3


HIDDEN_WRITES = {
    "an element": lambda y: y.__setitem__(0, 5.0),
    "a slice of a slice": lambda y: y[1:][:1].fill_(7.0),
    "a mask": lambda y: y.masked_fill_(y > 2, 1.0),
    "all": lambda y: y.clamp_(0, 1),
    "twice": lambda y: (y.mul_(2.0), y.__setitem__(slice(0, 2), -1.0)),
    "copied": lambda y: y.copy_(y + 1),
}


@pytest.mark.parametrize("is_computed", [False, True])
@pytest.mark.parametrize("name", HIDDEN_WRITES)
def test_writes_under_no_grad_leave_the_history(
    name: str, is_computed: bool, device: object
) -> None:
    """The value changes, and gradients go where they would have gone: PyTorch's rule."""
    grads, values = [], []
    for module in (vkml, torch):
        where = {"device": device} if module is vkml else {}
        x = module.tensor([1.0, 2.0, 3.0], requires_grad=True, **where)
        y = x * 2
        if is_computed:
            y.tolist()
        with module.no_grad():
            HIDDEN_WRITES[name](y)
        assert y.requires_grad
        (y.exp() + x).sum().backward()
        grads.append(x.grad.tolist())
        values.append(y.tolist())
    assert values[0] == values[1]
    np.testing.assert_allclose(grads[0], grads[1], rtol=1e-5)
