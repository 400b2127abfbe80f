"""Anomaly mode names the operator and the line of a NaN gradient."""

import inspect

import pytest

import vkml
from vkml import autograd, nn


def here() -> int:
    """The caller's line."""
    return inspect.currentframe().f_back.f_lineno


def test_the_operator_and_its_line_are_named(device):
    x = vkml.tensor([0.0, 4.0], device=device, requires_grad=True)
    with autograd.detect_anomaly():
        line = here() + 1
        root = x.sqrt()
        loss = (root * 0.0 / root).sum()
        with pytest.raises(vkml.AutogradError) as caught:
            loss.backward()
    message = str(caught.value)
    assert "the gradient of div is NaN for its operand 1 of shape (2,)" in message
    assert f"{__file__}:{line + 1}, in test_the_operator_and_its_line_are_named" in message
    assert "loss = (root * 0.0 / root).sum()" in message


def test_the_line_is_that_of_the_users_program(device):
    class Broken(autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, gradient):
            return gradient * float("nan")

    layer = nn.Linear(2, 2, device=device)
    with autograd.set_detect_anomaly(True):
        line = here() + 1
        y = Broken.apply(layer(vkml.ones((1, 2), device=device)))
        with pytest.raises(vkml.AutogradError, match=rf"gradient of Broken .*{line}, in test_the"):
            vkml.grad(y.sum(), [layer.weight])


def test_the_mode_ends_with_its_block(device):
    x = vkml.tensor([0.0], device=device, requires_grad=True)

    def nan():
        return (x.sqrt() * 0.0 / x).sum()

    assert not vkml.is_anomaly_enabled()
    with autograd.detect_anomaly():
        assert vkml.is_anomaly_enabled()
        with autograd.set_detect_anomaly(False):
            nan().backward()
        with autograd.detect_anomaly(check_nan=False):
            assert not vkml.is_anomaly_check_nan_enabled()
            nan().backward()
        assert vkml.is_anomaly_check_nan_enabled()
        with pytest.raises(vkml.AutogradError, match="called at"):
            nan().backward()
    nan().backward()
    assert not vkml.is_anomaly_enabled()
    autograd.set_detect_anomaly(True)
    assert vkml.is_anomaly_enabled()
    autograd.set_detect_anomaly(False)
    assert not vkml.is_anomaly_enabled()


def test_gradients_are_as_without_it(device):
    model = nn.Sequential(nn.Linear(3, 4, device=device), nn.Tanh(), nn.Linear(4, 1, device=device))
    x = vkml.ones((2, 3), device=device)
    model(x).sum().backward()
    expected = [p.grad.tolist() for p in model.parameters()]
    model.zero_grad()
    with autograd.detect_anomaly():
        model(x).sum().backward()
        per_example = vkml.func.vmap(vkml.func.grad(lambda a: model(a).sum()))(x)
    for parameter, wanted in zip(model.parameters(), expected, strict=True):
        assert parameter.grad.numpy() == pytest.approx(vkml.tensor(wanted).numpy(), rel=1e-5)
    assert per_example.shape == (2, 3)


def test_operands_without_gradient_are_left_alone(device):
    """What a rule states for a number is nobody's gradient, NaN or not."""
    with autograd.detect_anomaly():
        x = vkml.tensor([float("nan"), 1.0], device=device, requires_grad=True)
        (x * 2).sum().backward()
        assert x.grad.tolist() == [2, 2]
        negative = vkml.tensor([-1.0], device=device, requires_grad=True)
        with pytest.raises(vkml.AutogradError, match=r"gradient of sqrt is NaN for its operand 0"):
            (negative.sqrt() * 2).sum().backward()
