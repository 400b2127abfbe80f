"""Structural operators and losses in the default registry: applied, recorded, differentiated."""

import numpy as np
import pytest

import vkml
from vkml import autograd
from vkml.autograd import ComputationGraph
from vkml.autograd.loss_operators import LOSSES


def leaf(value, device):
    return vkml.tensor(value, dtype=vkml.float32, device=device, requires_grad=True)


def tensors_for_loss(name, device):
    """Inputs that a loss takes, as PyTorch's documentation describes them."""
    rng = np.random.default_rng(3)

    def floats(*shape, low=-1.0, high=1.0):
        return leaf(rng.uniform(low, high, shape), device)

    def whole(values):
        return vkml.tensor(values, device=device)

    signs = vkml.tensor([1.0, -1.0, 1.0], device=device)
    return {
        "binary_cross_entropy": lambda: [floats(3, low=0.1, high=0.9), floats(3, low=0, high=1)],
        "cosine_embedding_loss": lambda: [floats(3, 4), floats(3, 4), signs],
        "ctc_loss": lambda: [
            vkml.log_softmax(floats(5, 2, 4), -1),
            whole([[1, 2], [3, 1]]),
            whole([5, 4]),
            whole([2, 1]),
        ],
        "gaussian_nll_loss": lambda: [floats(3), floats(3), floats(3, low=0.5, high=2)],
        "margin_ranking_loss": lambda: [floats(3), floats(3), signs],
        "hinge_embedding_loss": lambda: [floats(3), signs],
        "soft_margin_loss": lambda: [floats(3), signs],
        "multi_margin_loss": lambda: [floats(3, 4), whole([0, 3, 1])],
        "multilabel_margin_loss": lambda: [floats(2, 3), whole([[2, -1, 0], [0, 1, -1]])],
        "multilabel_soft_margin_loss": lambda: [floats(2, 3), floats(2, 3, low=0, high=1)],
        "nll_loss": lambda: [vkml.log_softmax(floats(3, 4), -1), whole([0, 3, 1])],
        "triplet_margin_loss": lambda: [floats(3, 4), floats(3, 4), floats(3, 4)],
    }.get(name, lambda: [floats(3), floats(3, low=0.1)])()


@pytest.mark.parametrize("name", LOSSES)
def test_losses_are_operators_of_the_registry(name, device):
    inputs = tensors_for_loss(name, device)
    function = getattr(vkml.nn.functional, name)
    expected = function(*inputs)
    with_gradients = [x for x in inputs if x.requires_grad]
    wanted = vkml.grad(expected, with_gradients)
    graph = ComputationGraph()
    inputs = [x.detach().requires_grad_() if x.requires_grad else x for x in inputs]
    found = graph.apply(name, *inputs)
    assert found.item() == pytest.approx(expected.item(), rel=1e-6)
    graph.backward(found)
    leaves = [x for x in inputs if x.requires_grad]
    for tensor, gradient in zip(leaves, wanted, strict=True):
        np.testing.assert_allclose(tensor.grad.numpy(), gradient.numpy(), rtol=1e-5, atol=1e-6)


def test_a_loss_of_the_registry_is_twice_differentiable_and_of_one_tensor_twice(device):
    x, y = leaf([0.5, 1.5], device), leaf([1.0, -2.0], device)
    loss = autograd.apply("mse_loss", x, y)
    (first,) = vkml.grad(loss, [x], create_graph=True)
    (second,) = vkml.grad(first.sum(), [x])
    assert second.tolist() == [1, 1]
    assert vkml.grad(autograd.apply("mse_loss", x, x), [x])[0].tolist() == [0, 0]


@pytest.mark.parametrize(
    ("name", "shapes", "function"),
    [
        ("bmm", [(2, 2, 3), (2, 3, 2)], vkml.bmm),
        ("cat", [(2, 3), (1, 3)], lambda *x: vkml.cat(x)),
        ("sort", [(3, 4)], lambda x: vkml.sort(x)[0]),
        ("conv_transpose2d", [(1, 2, 3, 3), (2, 2, 2, 2)], vkml.nn.functional.conv_transpose2d),
        ("topk", [(3, 4)], lambda x: vkml.topk(x, 2)[0]),
    ],
)
def test_structural_operators_by_their_usual_names(name, shapes, function, device):
    rng = np.random.default_rng(5)
    inputs = [leaf(rng.uniform(-1, 1, shape), device) for shape in shapes]
    expected = function(*inputs)
    wanted = vkml.grad((expected * expected).sum(), inputs)
    graph = ComputationGraph()
    if name == "topk":  # has a parameter: computed first, then recorded
        found = function(*inputs)
        graph.record(name, inputs, found)
        with pytest.raises(vkml.ArgumentError, match=r"\[topk\] has parameters without defaults"):
            graph.apply(name, *inputs)
    else:
        found = graph.apply(name, *inputs)
    np.testing.assert_array_equal(found.numpy(), expected.numpy())
    total = graph.apply("sum", graph.apply("mul", found, found))
    graph.backward(total)
    for tensor, gradient in zip(inputs, wanted, strict=True):
        np.testing.assert_allclose(tensor.grad.numpy(), gradient.numpy(), rtol=1e-5, atol=1e-6)
