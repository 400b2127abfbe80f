"""Hooks of modules on gradients and on state dicts, against PyTorch's, on every device."""

from typing import Any

import numpy as np
import pytest

import vkml
from checking import assert_close, exact, inputs
from torch_agreement import torch
from vkml import nn

X = inputs((4, 3), -1, 1)
WEIGHTS = [inputs((5, 3), -1, 1), inputs((5,), -1, 1), inputs((2, 5), -1, 1), inputs((2,), -1, 1)]


def network(library: Any, **options: Any) -> Any:
    """Two layers with the same weights in both libraries."""
    net = library.nn.Sequential(library.nn.Linear(3, 5), library.nn.Tanh(), library.nn.Linear(5, 2))
    for parameter, values in zip(net.parameters(), WEIGHTS, strict=True):
        parameter.data = library.tensor(values, **options)
    return net


def run(library: Any, register: Any, **options: Any) -> tuple[list, list]:
    """What hooks saw, and all gradients."""
    net = network(library, **options)
    seen: list = []
    register(net, seen)
    x = library.tensor(X, **options)
    x.requires_grad_()
    (net(x) ** 2).sum().backward()
    return seen, [x.grad, *(parameter.grad for parameter in net.parameters())]


def agree(register: Any, device: object) -> None:
    ours = run(vkml, register, device=device)
    theirs = run(torch, register, dtype=torch.float64)
    for mine, expected in zip(ours, theirs, strict=True):
        assert len(mine) == len(expected)
        for found, wanted in zip(mine, expected, strict=True):
            assert_close(found, wanted.detach().numpy(), 32)


def test_backward_hooks_see_gradients(device: object) -> None:
    def register(net: Any, seen: list) -> None:
        for layer in net:
            layer.register_full_backward_hook(lambda m, g_in, g_out: seen.extend((*g_in, *g_out)))
        net.register_full_backward_pre_hook(lambda m, g_out: seen.extend(g_out))

    agree(register, device)


def test_backward_hooks_replace_gradients(device: object) -> None:
    def register(net: Any, seen: list) -> None:
        net[0].register_full_backward_hook(lambda m, g_in, g_out: (g_in[0] * 3,))
        net[0].register_full_backward_hook(lambda m, g_in, g_out: seen.append(g_in[0]))
        net[1].register_full_backward_pre_hook(lambda m, g_out: (g_out[0] * 2,))
        net[1].register_full_backward_hook(lambda m, g_in, g_out: seen.append(g_out[0]))
        net[2].register_full_backward_pre_hook(lambda m, g_out: (g_out[0] * 0.5,))

    agree(register, device)


class Two(nn.Module):
    def forward(self, x: Any, number: float, y: Any) -> Any:
        return {"sum": x + y * number, "product": x * y}


def test_several_inputs_and_results(device: object) -> None:
    seen: list = []
    layer = Two()
    layer.register_full_backward_hook(lambda m, g_in, g_out: seen.append((g_in, g_out)))
    x = vkml.tensor([1.0, 2.0], device=device, requires_grad=True)
    y = vkml.tensor([3.0, 4.0], device=device)
    found = layer(x, 5.0, y)
    (found["sum"] * 2 + found["product"]).sum().backward()
    ((of_inputs, of_results),) = seen
    assert of_inputs[1:] == (None, None)
    assert of_inputs[0].tolist() == x.grad.tolist() == [5.0, 6.0]
    assert [each.tolist() for each in of_results] == [[2.0, 2.0], [1.0, 1.0]]


def test_inputs_without_gradients_and_removed_hooks(device: object) -> None:
    seen: list = []
    layer = nn.Linear(3, 2).to(device)
    handle = layer.register_full_backward_hook(lambda m, g_in, g_out: seen.append((g_in, g_out)))
    x = vkml.tensor(X, device=device)
    layer(x).sum().backward()
    assert seen[0][0] == (None,)
    assert seen[0][1][0].tolist() == [[1.0, 1.0]] * 4
    with vkml.no_grad():
        layer(x)
    handle.remove()
    layer(x).sum().backward()
    assert len(seen) == 1


def second(library: Any, grad: Any, **options: Any) -> list:
    """First and second derivative of a layer with a hook, which the first pass alone calls."""
    layer = library.nn.Tanh()
    layer.register_full_backward_hook(lambda m, g_in, g_out: (g_in[0] * 2,))
    x = library.tensor([0.3, -0.7], **options).requires_grad_()
    first = grad(layer(x).sum(), [x], create_graph=True)[0]
    return [first, grad(first.sum(), [x])[0]]


def test_second_derivatives_pass_hooks(device: object) -> None:
    ours = second(vkml, vkml.grad, device=device)
    theirs = second(torch, torch.autograd.grad, dtype=torch.float64)
    for found, wanted in zip(ours, theirs, strict=True):
        assert_close(found, wanted.detach().numpy())


def test_hooks_say_what_they_gave_too_few_of(device: object) -> None:
    layer = nn.Tanh()
    layer.register_full_backward_hook(lambda m, g_in, g_out: (g_in[0], g_in[0]))
    x = vkml.tensor([1.0], device=device, requires_grad=True)
    with pytest.raises(vkml.AutogradError, match=r"\[Tanh\] a hook gave 2 gradients of 1 inputs"):
        layer(x).sum().backward()


def renamed(module: Any, state: dict, prefix: str, *_: Any) -> None:
    """Takes a state whose weight has an older name."""
    if prefix + "w" in state:
        state[prefix + "weight"] = state.pop(prefix + "w")


def test_hooks_of_state_dicts() -> None:
    calls: list = []
    net = nn.Sequential(nn.Linear(2, 2, bias=False), nn.Linear(2, 1))
    net[0].register_state_dict_pre_hook(lambda m, prefix, keep: calls.append(("pre", prefix, keep)))
    net[0].register_state_dict_post_hook(
        lambda m, state, prefix, metadata: state.__setitem__(
            prefix + "w", state.pop(prefix + "weight")
        )
    )
    state = net.state_dict()
    assert calls == [("pre", "0.", False)]
    assert list(state) == ["0.w", "1.weight", "1.bias"]

    other = nn.Sequential(nn.Linear(2, 2, bias=False), nn.Linear(2, 1))
    with pytest.raises(vkml.ArgumentError, match=r"missing keys: 0\.weight"):
        other.load_state_dict(state)
    handle = other[0].register_load_state_dict_pre_hook(renamed)
    other.register_load_state_dict_post_hook(
        lambda m, keys: calls.append((m is other, *map(tuple, keys)))
    )
    assert other.load_state_dict(state) == ([], [])
    assert calls[1:] == [(True, (), ())]
    assert "0.w" in state, "a hook changes a copy"
    np.testing.assert_array_equal(exact(other[0].weight), exact(net[0].weight))
    handle.remove()
    assert other.load_state_dict(state, strict=False) == (["0.weight"], ["0.w"])


def test_hooks_may_refuse_a_state() -> None:
    layer = nn.Linear(2, 2)
    before = exact(layer.weight)
    layer.register_load_state_dict_pre_hook(
        lambda m, state, prefix, meta, strict, missing, unexpected, errors: errors.append("too old")
    )
    state = {"weight": np.zeros((2, 2)), "bias": np.zeros(2)}
    with pytest.raises(vkml.ArgumentError, match="too old"):
        layer.load_state_dict(state)
    np.testing.assert_array_equal(exact(layer.weight), before)


class Counter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def get_extra_state(self) -> Any:
        return {"count": self.count}

    def set_extra_state(self, state: Any) -> None:
        self.count = state["count"]


def test_extra_state() -> None:
    net = nn.Sequential(nn.Linear(1, 1), Counter())
    net[1].count = 7
    state = net.state_dict()
    assert list(state) == ["0.weight", "0.bias", "1._extra_state"]
    other = nn.Sequential(nn.Linear(1, 1), Counter())
    other.load_state_dict(state)
    assert other[1].count == 7
    del state["1._extra_state"]
    with pytest.raises(vkml.ArgumentError, match=r"missing keys: 1\._extra_state"):
        other.load_state_dict(state)
    with pytest.raises(NotImplementedError, match="Linear has no extra state"):
        net[0].get_extra_state()


def test_submodules_are_replaced_by_name() -> None:
    net = nn.Sequential(nn.Sequential(nn.Linear(1, 1)), nn.Tanh())
    layer = nn.Linear(1, 2)
    net.set_submodule("0.0", layer)
    assert net.get_submodule("0.0") is layer
    net.set_submodule("0.last", nn.ReLU())
    assert [name for name, _ in net[0].named_children()] == ["0", "last"]
    with pytest.raises(AttributeError, match="no submodule"):
        net.set_submodule("5.x", layer)
