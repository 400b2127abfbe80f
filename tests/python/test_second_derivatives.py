"""Second derivatives of structural operators: differences of their first, in double precision."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import vkml
from checking import exact, inputs
from structural_cases import CASES
from torch_agreement import torch
from vkml.nn import functional

STEP = 1e-5

ZEROS = np.array([[2.0, 0.0, 3.0, 1.0], [0.0, 4.0, 0.0, 5.0]], dtype=np.float32)
MATRIX = inputs((2, 4), 0.5, 1.5)
IMAGE = inputs((1, 2, 4, 3), -1, 1)
INDEX = np.array([[0, 1, 1, 0], [1, 1, 0, 0]])

Function = Callable[..., Any]

# name: (function of float tensors, arrays)
FUNCTIONS: dict[str, tuple[Function, list[np.ndarray]]] = {
    "prod": (lambda x: x.prod(), [MATRIX]),
    "prod with zeros": (lambda x: x.prod(1), [ZEROS]),
    "cumsum": (lambda x: x.cumsum(1) ** 2, [MATRIX]),
    "cumprod": (lambda x: x.cumprod(1), [MATRIX]),
    "cumprod with zeros": (lambda x: x.cumprod(1), [ZEROS]),
    "logcumsumexp": (lambda x: x.logcumsumexp(1), [MATRIX]),
    "linear_recurrence": (vkml.linear_recurrence, [MATRIX, MATRIX + 1]),
    "cummax": (lambda x: x.cummax(1).values ** 2, [MATRIX]),
    "sort": (lambda x: x.sort(1).values ** 3, [MATRIX]),
    "quantile": (lambda x: x.quantile(0.3, 1) ** 3, [MATRIX]),
    "norm": (lambda x: x.norm(dim=1), [MATRIX]),
    "norm 3": (lambda x: x.norm(3.0), [MATRIX]),
    "std": (lambda x: x.std(1), [MATRIX]),
    "logsumexp": (lambda x: x.logsumexp((0, 1)), [MATRIX]),
    "einsum": (lambda a, b: vkml.einsum("ij,kj->ik", a, b), [MATRIX, MATRIX + 1]),
    "pad": (lambda x: functional.pad(x, (1, 2), "reflect") ** 2, [MATRIX]),
    "roll": (lambda x: x.roll(1, 1) * x, [MATRIX]),
    "diag_embed": (lambda x: vkml.diag_embed(x, 1) ** 3, [MATRIX]),
    "getitem": (lambda x: x[[0, 1, 1]] ** 3, [MATRIX]),
    "mask": (lambda x: x[x.detach() > 1] ** 3, [MATRIX]),
    "unfold": (lambda x: vkml.unfold(x, 2) ** 2, [IMAGE]),
    "fold": (lambda x: vkml.fold(x, (3, 3), 2) ** 2, [inputs((1, 4, 4), -1, 1)]),
    "conv_transpose2d": (
        lambda x, w: functional.conv_transpose2d(x, w, stride=2) ** 2,
        [IMAGE, inputs((2, 1, 2, 2), -1, 1)],
    ),
    "max_pool2d": (lambda x: functional.max_pool2d(x, 2, ceil_mode=True) ** 3, [IMAGE]),
    "interpolate": (
        lambda x: functional.interpolate(x, (3, 5), mode="bilinear") ** 2,
        [IMAGE],
    ),
    "group_norm": (lambda x: functional.group_norm(x, 1), [IMAGE]),
    "rms_norm": (lambda x: functional.rms_norm(x, (4,)), [MATRIX]),
    "attention": (
        lambda q, k: functional.scaled_dot_product_attention(q, k, k),
        [MATRIX, MATRIX[::-1].copy()],
    ),
}
FUNCTIONS |= {
    f"scatter_reduce {how}": (
        lambda x, s, h=how: (
            vkml.scatter_reduce(x, 0, vkml.tensor(INDEX, device=x.device), s, h) ** 2
        ),
        [MATRIX, MATRIX[::-1].copy() * 1.1],
    )
    for how in ("sum", "prod", "amax", "amin", "mean")
}
FUNCTIONS["scatter_reduce prod with zeros"] = (
    lambda x, s: vkml.scatter_reduce(
        x, 1, vkml.tensor(INDEX[:, [0, 1, 1, 1]], device=x.device), s, "prod"
    ),
    [ZEROS, ZEROS[::-1].copy()],
)


def first_gradients(function: Function, arrays: list[np.ndarray], device: object) -> list:
    """Gradients of a weighted sum of the results, as tensors that have gradients themselves."""
    tensors = [
        vkml.tensor(array, dtype=vkml.float64, device=device, requires_grad=True)
        for array in arrays
    ]
    result = function(*tensors)
    weights = vkml.tensor(inputs(result.shape, 0.5, 1.5), device=device).to(vkml.float64)
    total = (result * weights).sum()
    return [tensors, vkml.grad(total, tensors, create_graph=True, allow_unused=True)]


def check_second(function: Function, arrays: list[np.ndarray], device: object) -> None:
    """The Hessian times a direction is the change of the gradient along it."""
    wide = [array.astype(np.float64) for array in arrays]
    tensors, gradients = first_gradients(function, wide, device)
    directions = [inputs(array.shape, -1, 1, seed=9).astype(np.float64) for array in arrays]
    along = sum(
        (g * vkml.tensor(d, device=device)).sum()
        for g, d in zip(gradients, directions, strict=True)
        if g is not None
    )
    # Of linear functions it is 0, which the differences have to confirm.
    second = (
        vkml.grad(along, tensors, allow_unused=True)
        if along.requires_grad
        else [None] * len(tensors)
    )
    moved = []
    for step in (STEP, -STEP):
        places = [array + step * d for array, d in zip(wide, directions, strict=True)]
        moved.append(first_gradients(function, places, device)[1])
    for mine, after, before in zip(second, *moved, strict=True):
        if after is None:
            continue
        expected = (exact(after) - exact(before)) / (2 * STEP)
        actual = np.zeros_like(expected) if mine is None else exact(mine)
        scale = np.abs(expected).max(initial=1.0)
        np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-6 * scale)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_second_derivatives(name: str, device: object) -> None:
    function, arrays = FUNCTIONS[name]
    assert first_gradients(function, arrays, device)[1][0].requires_grad
    check_second(function, arrays, device)


@pytest.mark.parametrize("name", sorted({c.name for c in CASES if c.gradient and len(c.arrays)}))
def test_second_derivatives_of_every_operator(name: str, device: object) -> None:
    case = next(c for c in CASES if c.name == name and c.gradient and len(c.arrays))
    is_float = [np.issubdtype(array.dtype, np.floating) for array in case.arrays]
    given = [vkml.tensor(array, device=device) for array in case.arrays]

    def function(*floating: Any) -> Any:
        rest = iter(floating)
        return case.function(
            *(next(rest) if f else t for t, f in zip(given, is_float, strict=True))
        )

    floating = [array for array, f in zip(case.arrays, is_float, strict=True) if f]
    check_second(function, floating, device)


AT_KINKS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "logaddexp": lambda m, x, y: m.logaddexp(x, y),
    "logaddexp2": lambda m, x, y: m.logaddexp2(x, y),
    "huber_loss": lambda m, x, y: m.nn.functional.huber_loss(x, y),
    "huber_loss, delta 0.5": lambda m, x, y: m.nn.functional.huber_loss(x, y, delta=0.5),
    "smooth_l1_loss": lambda m, x, y: m.nn.functional.smooth_l1_loss(x, y, beta=2.0),
    "xlogy": lambda m, x, y: m.xlogy(x - x.detach(), y.exp()),
    "xlog1py": lambda m, x, y: m.special.xlog1py(x - x.detach(), y.exp()),
}


@pytest.mark.parametrize("name", AT_KINKS)
def test_second_derivatives_where_operands_are_equal(name: str, device: object) -> None:
    """Formulas that leave out a point for its first derivative keep the second one."""
    values = np.array([0.0, 1.0, -2.0, 40.0], dtype=np.float64)
    results = []
    for module in (vkml, torch):
        # Vulkan devices need not have float64.
        where = {"device": device} if module is vkml else {}
        wide = module.float32 if module is vkml else module.float64
        x = module.tensor(values.tolist(), dtype=wide, requires_grad=True, **where)
        y = module.tensor(values.tolist(), dtype=wide, requires_grad=True, **where)
        first = vkml.grad if module is vkml else torch.autograd.grad
        of_x, of_y = first(AT_KINKS[name](module, x, y).sum(), [x, y], create_graph=True)
        found = [of_x, of_y]
        for gradient in (of_x, of_y):
            found += first(gradient.sum(), [x, y], retain_graph=True, materialize_grads=True)
        results.append([np.asarray(exact(t) if module is vkml else t.detach()) for t in found])
    for mine, wanted in zip(*results, strict=True):
        np.testing.assert_allclose(mine, wanted, rtol=1e-5, atol=1e-6)


def test_equal_infinities_share_the_gradient(device: object) -> None:
    for function in (vkml.logaddexp, vkml.logaddexp2):
        infinity = float("inf")
        x, y = (
            vkml.tensor([infinity, -infinity], device=device, requires_grad=True) for _ in range(2)
        )
        function(x, y).sum().backward()
        assert x.grad.tolist() == y.grad.tolist() == [0.5, 0.5]


POINTS = np.array(list(itertools.product([-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0], repeat=2)))
BINARY = ["add", "atan2", "div", "fmod", "hypot", "logaddexp", "logaddexp2", "maximum", "minimum"]
BINARY += ["mul", "pow", "remainder", "sub", "xlog1py", "xlogy"]


@pytest.mark.parametrize("name", BINARY)
def test_every_second_derivative_of_two_operands(name: str) -> None:
    """At zeros, ones, ties and signs of all kinds: as PyTorch's, where PyTorch's is a number."""
    results = []
    for module in (vkml, torch):
        function = getattr(module, name, None) or getattr(module.special, name)
        differentiate = vkml.grad if module is vkml else torch.autograd.grad
        operands = [
            module.tensor(column.tolist(), dtype=module.float64, requires_grad=True)
            for column in POINTS.T
        ]
        options = {"materialize_grads": True, "retain_graph": True}
        first = differentiate(function(*operands).sum(), operands, create_graph=True, **options)
        found = list(first)
        for gradient in first:
            if gradient.requires_grad:
                found += differentiate(gradient.sum(), operands, **options)
            else:
                found += [module.zeros_like(operand) for operand in operands]
        results.append([np.array(each.tolist()) for each in found])
    compared = 0
    for mine, wanted in zip(*results, strict=True):
        known = np.isfinite(wanted)
        compared += known.sum()
        np.testing.assert_allclose(mine[known], wanted[known], rtol=1e-6, atol=1e-9)
    assert compared > 100
