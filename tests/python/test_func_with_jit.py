"""vkml.func and vkml.jit together: transforms of recorded steps, and recorded transforms."""

import numpy as np
import pytest

import vkml
from checking import assert_close, exact, inputs
from vkml import func

X = inputs((5, 3), -1, 1)
W = inputs((3, 3), -1, 1)


def loss(w: object, x: object) -> object:
    return vkml.tanh(x @ w).square().sum()


def slope(w: np.ndarray, x: np.ndarray) -> np.ndarray:
    t = np.tanh(x @ w)
    return x.T @ (2 * t * (1 - t**2))


def calls(device: object, count: int = 4) -> list[tuple]:
    """Operands of calls: the first records, later ones replay, each with other numbers."""
    return [
        (
            vkml.tensor(W * (1 + 0.1 * k), device=device),
            vkml.tensor(X - 0.05 * k, device=device),
        )
        for k in range(count)
    ]


def wide(*tensors: object) -> list[np.ndarray]:
    return [exact(tensor).astype(np.float64) for tensor in tensors]


def test_a_recorded_gradient(device: object) -> None:
    step = vkml.jit(func.grad(loss))
    for w, x in calls(device):
        assert_close(step(w, x), slope(*wide(w, x)), 32)


def test_a_recorded_value_and_gradient(device: object) -> None:
    step = vkml.jit(func.value_and_grad(loss))
    for w, x in calls(device):
        gradient, value = sorted(step(w, x), key=lambda each: -each.ndim)
        assert_close(gradient, slope(*wide(w, x)), 32)
        a, b = wide(w, x)
        assert_close(value, np.square(np.tanh(b @ a)).sum(), 32)


def test_recorded_products_with_jacobians(device: object) -> None:
    def push(w: object, x: object, direction: object) -> object:
        return func.jvp(lambda v: loss(v, x), (w,), (direction,))[1]

    def pull(w: object, x: object, cotangent: object) -> object:
        _, pullback = func.vjp(lambda v: vkml.tanh(x @ v), w)
        return pullback(cotangent)[0]

    pushed, pulled = vkml.jit(push), vkml.jit(pull)
    for k, (w, x) in enumerate(calls(device)):
        direction = vkml.tensor(inputs((3, 3), -1, 1, seed=k), device=device)
        expected = (slope(*wide(w, x)) * exact(direction)).sum()
        assert_close(pushed(w, x, direction), expected, 32)
        cotangent = vkml.tensor(inputs((5, 3), -1, 1, seed=k), device=device)
        a, b = wide(w, x)
        assert_close(pulled(w, x, cotangent), b.T @ (exact(cotangent) * (1 - np.tanh(b @ a) ** 2)))


def test_recorded_vmap(device: object) -> None:
    per_row = vkml.jit(func.vmap(func.grad(lambda row, w: loss(w, row.reshape(1, 3))), (0, None)))
    for w, x in calls(device):
        a, b = wide(w, x)
        t = np.tanh(b @ a)
        assert_close(per_row(x, w), (2 * t * (1 - t**2)) @ a.T, 32)


def test_recorded_hessian(device: object) -> None:
    step = vkml.jit(func.hessian(lambda v: (vkml.sin(v) * v).sum()))
    for k in range(4):
        v = X[0] + np.float32(0.1 * k)
        expected = np.diag(2 * np.cos(v.astype(np.float64)) - v * np.sin(v.astype(np.float64)))
        assert_close(step(vkml.tensor(v, device=device)), expected, 32)


def test_a_step_that_takes_a_gradient_and_updates(device: object) -> None:
    gradient = func.grad(loss)
    w = vkml.tensor(W, device=device)
    x = vkml.tensor(X, device=device)

    @vkml.jit
    def step() -> object:
        w.assign_(w - 0.1 * gradient(w, x))
        return loss(w, x)

    expected = W.astype(np.float64)
    losses = []
    for _ in range(5):
        losses.append(step().item())
        expected = expected - 0.1 * slope(expected, X.astype(np.float64))
    assert_close(w, expected, 64)
    assert losses == sorted(losses, reverse=True)


def test_transforms_of_recorded_functions(device: object) -> None:
    """A transform sees through a recorded function, or an error says that it cannot."""
    recorded = vkml.jit(loss)
    for w, x in calls(device):
        try:
            found = func.grad(recorded)(w, x)
        except vkml.VkmlError as error:
            assert "jit" in str(error)  # noqa: PT017
            continue
        assert_close(found, slope(*wide(w, x)), 32)


@pytest.mark.parametrize("transform", [func.grad, func.value_and_grad])
def test_recording_again_for_another_shape(transform: object, device: object) -> None:
    step = vkml.jit(transform(loss))
    for rows in (5, 2, 5, 1):
        x = X[:rows]
        found = step(vkml.tensor(W, device=device), vkml.tensor(x, device=device))
        gradient = found if isinstance(found, vkml.Tensor) else max(found, key=lambda g: g.ndim)
        assert_close(gradient, slope(W.astype(np.float64), x.astype(np.float64)), 32)
