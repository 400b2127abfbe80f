"""Weight and spectral normalisation against PyTorch's, value, gradients and state."""

import warnings
from typing import Any

import numpy as np
import pytest

import vkml
from checking import assert_close, exact, inputs
from torch_agreement import torch
from vkml import nn
from vkml.nn import utils

LAYERS: list[tuple[str, tuple, tuple[int, ...]]] = [
    ("Linear", (4, 5), (3, 4)),
    ("Conv2d", (2, 3, 2), (1, 2, 4, 4)),
    ("ConvTranspose2d", (2, 3, 2), (1, 2, 4, 4)),
]


def pair(name: str, arguments: tuple, device: object) -> tuple[Any, Any]:
    """The same layer in both libraries, with the same weights."""
    mine = getattr(nn, name)(*arguments).to(device)
    theirs = getattr(torch.nn, name)(*arguments).double()
    state = {key: torch.tensor(exact(value)) for key, value in mine.state_dict().items()}
    theirs.load_state_dict(state)
    return mine, theirs


def copy_state(mine: Any, theirs: Any) -> None:
    """Gives PyTorch's layer vkML's parameters and buffers."""
    state = {key: torch.tensor(exact(value)) for key, value in mine.state_dict().items()}
    theirs.load_state_dict(state)


def agree(mine: Any, theirs: Any, shape: tuple[int, ...], device: object) -> None:
    """Results and all gradients of one call."""
    x = inputs(shape, -1, 1)
    for parameter in (*mine.parameters(), *theirs.parameters()):
        parameter.grad = None
    found = mine(vkml.tensor(x, device=device))
    expected = theirs(torch.tensor(x, dtype=torch.float64))
    assert_close(found, expected.detach().numpy(), 64)
    (found * found).sum().backward()
    (expected * expected).sum().backward()
    ours, others = dict(mine.named_parameters()), dict(theirs.named_parameters())
    assert set(ours) == set(others)
    for key, parameter in ours.items():
        assert_close(parameter.grad, others[key].grad.numpy(), 128)


@pytest.fixture(autouse=True)
def _quiet() -> Any:
    """PyTorch prefers its newer names of the same."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.mark.parametrize("dim", [0, 1, None])
@pytest.mark.parametrize(("name", "arguments", "shape"), LAYERS)
def test_weight_norm(
    name: str, arguments: tuple, shape: tuple[int, ...], dim: int | None, device: object
) -> None:
    mine, theirs = pair(name, arguments, device)
    before = exact(mine.weight)
    assert utils.weight_norm(mine, dim=dim) is mine
    torch.nn.utils.weight_norm(theirs, dim=dim)
    assert list(mine.state_dict()) == list(theirs.state_dict())
    for key, value in mine.state_dict().items():
        assert value.shape == tuple(theirs.state_dict()[key].shape)
    np.testing.assert_allclose(exact(mine.weight), before, rtol=1e-6)
    agree(mine, theirs, shape, device)
    with vkml.no_grad():
        mine.weight_g.mul_(2.0)
    utils.remove_weight_norm(mine)
    assert set(mine.state_dict()) == {"weight", "bias"}
    np.testing.assert_allclose(exact(mine.weight), 2 * before, rtol=1e-6)
    mine(vkml.tensor(inputs(shape, -1, 1), device=device))


@pytest.mark.parametrize(("name", "arguments", "shape"), LAYERS)
def test_spectral_norm(name: str, arguments: tuple, shape: tuple[int, ...], device: object) -> None:
    mine, theirs = pair(name, arguments, device)
    before = exact(mine.weight)
    assert utils.spectral_norm(mine, n_power_iterations=3) is mine
    torch.nn.utils.spectral_norm(theirs, n_power_iterations=3)
    assert set(mine.state_dict()) == set(theirs.state_dict())
    copy_state(mine, theirs)
    agree(mine, theirs, shape, device)
    for key, buffer in mine.named_buffers():
        assert_close(buffer, dict(theirs.named_buffers())[key].numpy(), 64)
    mine.eval()
    theirs.eval()
    agree(mine, theirs, shape, device)
    axis = 1 if name.startswith("ConvT") else 0
    rows = np.moveaxis(before, axis, 0).reshape(before.shape[axis], -1)
    for _ in range(60):
        mine.train()(vkml.tensor(inputs(shape, -1, 1), device=device))
    largest = np.linalg.svd(rows)[1][0]
    np.testing.assert_allclose(exact(mine.weight), before / largest, rtol=1e-4)
    utils.remove_spectral_norm(mine)
    assert set(mine.state_dict()) == {"weight", "bias"}
    np.testing.assert_allclose(exact(mine.weight), before / largest, rtol=1e-4)


def test_a_recorded_step_trains_normalised_weights(device: object) -> None:
    net = utils.weight_norm(nn.Linear(3, 2)).to(device)
    optimizer = vkml.optim.SGD(net.parameters(), lr=0.1)
    x = vkml.tensor(inputs((8, 3), -1, 1), device=device)

    def step() -> Any:
        optimizer.zero_grad()
        loss = ((net(x) - 1) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    recorded = vkml.jit(step)
    losses = [recorded().item() for _ in range(6)]
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < losses[0] * 0.9


def test_what_does_not_fit_is_said() -> None:
    layer = nn.Linear(2, 2)
    with pytest.raises(vkml.ArgumentError, match=r"\[weight_norm\] Linear has no parameter 'w'"):
        utils.weight_norm(layer, "w")
    with pytest.raises(vkml.ArgumentError, match=r"\[remove_weight_norm\] 'weight' of Linear"):
        utils.remove_weight_norm(layer)
    with pytest.raises(vkml.ArgumentError, match=r"\[spectral_norm\] n_power_iterations is 0"):
        utils.spectral_norm(layer, n_power_iterations=0)


def test_norms_of_gradients() -> None:
    tensors = [vkml.tensor([3.0, 0.0]), vkml.tensor([[4.0]])]
    assert utils.get_total_norm(tensors).item() == 5
    assert utils.get_total_norm(tensors, float("inf")).item() == 4
    assert utils.get_total_norm([]).item() == 0
    with pytest.raises(vkml.ArgumentError, match=r"\[get_total_norm\] the norm is inf"):
        utils.get_total_norm([vkml.tensor([np.inf])], error_if_nonfinite=True)
    p = vkml.ones(2, requires_grad=True)
    p.grad = vkml.tensor([6.0, 8.0])
    utils.clip_grads_with_norm_([p], 5.0, vkml.tensor(10.0))
    np.testing.assert_allclose(exact(p.grad), [3, 4], rtol=1e-6)
    utils.clip_grads_with_norm_([p], 50.0, vkml.tensor(5.0))
    np.testing.assert_allclose(exact(p.grad), [3, 4], rtol=1e-6)
