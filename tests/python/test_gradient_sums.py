"""Gradients that several uses of one value send back: windows side by side, products, row sums."""

import numpy as np
import pytest

import vkml
from checking import assert_close


def normal(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def kernels_of(run: object) -> list[str]:
    """Names of the kernels of a second run, when everything is planned."""
    run()
    with vkml.profile() as p:
        run()
    return [kernel.name for kernel in p.runs]


WINDOWS = {
    "side by side": [np.s_[:, 0:2], np.s_[:, 2:5], np.s_[:, 5:6]],
    "out of order": [np.s_[:, 4:6], np.s_[:, 0:4]],
    "with gaps": [np.s_[:, 1:2], np.s_[:, 3:5]],
    "overlapping": [np.s_[:, 0:4], np.s_[:, 2:6], np.s_[:, 4:6], np.s_[:, 0:2]],
    "the same twice": [np.s_[:, 1:3], np.s_[:, 1:3]],
    "rows": [np.s_[0:1], np.s_[1:4]],
    "one index": [np.s_[2], np.s_[0], np.s_[3], np.s_[1]],
    "two axes": [np.s_[:, 0:3], np.s_[1:2], np.s_[:, 3:6], np.s_[0:1]],
    "steps": [np.s_[:, ::2], np.s_[:, 1::2], np.s_[::-1]],
    "empty": [np.s_[:, 2:2], np.s_[:, 0:3], np.s_[:, 3:6]],
    "with the whole": [np.s_[:], np.s_[:, 0:3], np.s_[:, 3:6]],
}


@pytest.mark.parametrize("windows", WINDOWS.values(), ids=WINDOWS)
def test_windows(windows: list[object], device: object) -> None:
    values = normal(0, 4, 6)
    expected = np.zeros((4, 6))
    x = vkml.tensor(values, device=device, requires_grad=True)
    base = x * 2
    total = vkml.zeros((), device=device)
    for i, window in enumerate(windows):
        # d/dx sum((2x)^2 * (i + 1)) = 8 (i + 1) x inside the window.
        total = total + (base[window] ** 2 * (i + 1)).sum()
        expected[window] += 8.0 * (i + 1) * values[window].astype(np.float64)
    total.backward()
    assert_close(x.grad, expected)


def test_second_derivatives_pass_through_windows(device: object) -> None:
    values = normal(1, 3, 4)
    x = vkml.tensor(values, device=device, requires_grad=True)
    a, b = (x * 1.0).chunk(2, -1)
    (g,) = vkml.grad((a**3).sum() + (b**2 * a).sum(), [x], create_graph=True)
    (g**2).sum().backward()
    a, b = values[:, :2].astype(np.float64), values[:, 2:].astype(np.float64)
    of_a, of_b = 3 * a**2 + b**2, 2 * a * b
    expected = np.concatenate(
        [2 * of_a * 6 * a + 2 * of_b * 2 * b, 2 * of_a * 2 * b + 2 * of_b * 2 * a], axis=1
    )
    assert_close(x.grad, expected)


def recurrence(weight: object, bias: object, inputs: object) -> object:
    """h_t = tanh(x_t + h_(t-1) @ weight.T + bias), summed over all t."""
    state = vkml.zeros(inputs.shape[1:], device=inputs.device)
    total = vkml.zeros((), device=inputs.device)
    for time in range(inputs.shape[0]):
        state = (inputs[time] + state @ weight.transpose(0, 1) + bias).tanh()
        total = total + state.sum()
    return total


def gradients_of_recurrence(
    weight: np.ndarray, bias: np.ndarray, inputs: np.ndarray
) -> tuple[np.ndarray, ...]:
    """In double precision, step by step backwards."""
    states = [np.zeros(inputs.shape[1:])]
    for x in inputs:
        states.append(np.tanh(x + states[-1] @ weight.T + bias))
    of_weight, of_bias, of_inputs = np.zeros(weight.shape), np.zeros(bias.shape), []
    arriving = np.zeros(inputs.shape[1:])
    for t in reversed(range(len(inputs))):
        before = (arriving + 1) * (1 - states[t + 1] ** 2)
        of_weight += before.T @ states[t]
        of_bias += before.sum(0)
        of_inputs.append(before)
        arriving = before @ weight
    return of_weight, of_bias, np.stack(of_inputs[::-1])


@pytest.mark.parametrize("recorded", [False, True])
def test_a_recurrence(recorded: bool, device: object) -> None:
    width, batch, times = 24, 3, 7
    values = (normal(2, width, width) / 5, normal(3, width), normal(4, times, batch, width))
    weight, bias, inputs = (vkml.tensor(v, device=device, requires_grad=True) for v in values)

    def step() -> tuple[object, ...]:
        loss = recurrence(weight, bias, inputs)
        return tuple(vkml.grad(loss, [weight, bias, inputs]))

    run = vkml.jit(step) if recorded else step
    for _ in range(3):
        for got, expected in zip(
            run(), gradients_of_recurrence(*(v.astype(np.float64) for v in values)), strict=True
        ):
            assert_close(got, expected, units=64)


def test_a_recurrence_has_one_product_for_its_weight(device: object) -> None:
    width, batch, times = 64, 2, 9
    weight, bias, inputs = (
        vkml.tensor(v, device=device, requires_grad=True)
        for v in (normal(5, width, width) / 9, normal(6, width), normal(7, times, batch, width))
    )

    def run() -> None:
        gradients = vkml.grad(recurrence(weight, bias, inputs), [weight, bias, inputs])
        sum(g.sum() for g in gradients).realize()

    names = kernels_of(run)
    # One product for each time forward (the first reads zeros) and backward, one for the weight.
    assert sum("matmul" in name for name in names) == 2 * times - 1 + 1
    assert not any("view_update" in name for name in names)


def test_products_with_a_long_inner_axis_are_added(device: object) -> None:
    """Two uses of a small weight by many rows: joining them would copy the rows."""
    weight = vkml.tensor(normal(8, 4, 4), device=device, requires_grad=True)
    a, b = (vkml.tensor(normal(seed, 32, 4), device=device) for seed in (9, 10))
    (a @ weight).sum().backward()
    expected = weight.grad.numpy().astype(np.float64)
    weight.grad = None
    ((a @ weight).sum() + (b @ weight).sum()).backward()
    expected += np.repeat(b.numpy().astype(np.float64).sum(0)[:, None], 4, 1)
    assert_close(weight.grad, expected)


def test_a_gradient_that_somebody_holds_is_added(device: object) -> None:
    held = []

    class Double(vkml.autograd.Function):
        @staticmethod
        def forward(ctx: object, x: object) -> object:
            return x * 2

        @staticmethod
        def backward(ctx: object, gradient: object) -> object:
            held.append(gradient @ vkml.eye(4, device=gradient.device) * 1.0)
            held.append(gradient @ vkml.eye(4, device=gradient.device))
            return held[-1] + held[-1]

    x = vkml.tensor(normal(11, 4, 4), device=device, requires_grad=True)
    (Double.apply(x) + Double.apply(x)).sum().backward()
    assert x.grad.tolist() == [[4.0] * 4] * 4
    assert held[-1].tolist() == [[1.0] * 4] * 4
