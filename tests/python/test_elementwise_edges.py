"""Gradients of elementwise operators where formulas change, end or have no value."""

import numpy as np
import pytest
import scipy.special

import vkml
from checking import exact
from elementwise_references import stated_rows

DIFFERENTIABLE = [row for row in stated_rows() if row.differentiable]
# At, on and past the ends of every domain.
POINTS = np.array([-3.0, -2.0, -1.0, -0.5, -0.0, 0.0, 0.5, 1.0, 2.0, 3.0, 60.0], np.float32)


def gradients_at(function, arguments, device, cotangent=1.0):
    tensors = [vkml.tensor([x], device=device, requires_grad=True) for x in arguments]
    result = function(*tensors)
    result.backward(vkml.full_like(result, cotangent))
    return [None if tensor.grad is None else tensor.grad.item() for tensor in tensors]


@pytest.mark.parametrize("row", DIFFERENTIABLE, ids=lambda row: row.name)
def test_no_gradient_leaves_where_none_arrives(row, device):
    grids = np.meshgrid(*[POINTS] * min(row.arity, 2))
    arrays = [grid.ravel() for grid in grids]
    arrays += [np.ones_like(arrays[0])] * (row.arity - len(arrays))
    tensors = [vkml.tensor(array, device=device, requires_grad=True) for array in arrays]
    if row.name == "where":
        tensors[0] = tensors[0].detach()
    result = getattr(vkml, row.name)(*tensors)
    result.backward(vkml.zeros_like(result))
    for tensor in tensors:
        if tensor.grad is not None:
            np.testing.assert_array_equal(exact(tensor.grad), 0.0)


STATED = [
    ("maximum", (1.0, 1.0), (0.5, 0.5)),
    ("minimum", (1.0, 1.0), (0.5, 0.5)),
    ("fmax", (1.0, 1.0), (1.0, 0.0)),
    ("fmin", (1.0, 1.0), (1.0, 0.0)),
    ("fmin", (np.nan, np.nan), (1.0, 0.0)),
    ("fmax", (np.nan, 1.0), (0.0, 1.0)),
    ("fmin", (1.0, np.nan), (1.0, 0.0)),
    ("abs", (0.0,), (0.0,)),
    ("sqrt", (0.0,), (np.inf,)),
    ("pow", (0.0, 0.0), (0.0, 0.0)),
    ("pow", (0.0, 2.0), (0.0, 0.0)),
    ("hypot", (0.0, 0.0), (0.0, 0.0)),
    ("hypot", (3.0e30, 4.0e30), (0.6, 0.8)),
    ("atan2", (0.0, 0.0), (0.0, 0.0)),
    ("atan2", (0.0, 2.0e30), (0.5e-30, 0.0)),
    ("copysign", (2.0, -1.0), (-1.0, 0.0)),
    ("copysign", (0.0, -1.0), (0.0, 0.0)),
    ("logaddexp", (np.inf, np.inf), (0.5, 0.5)),
    ("logaddexp", (-np.inf, 1.0), (0.0, 1.0)),
    ("xlogy", (0.0, 0.0), (0.0, 0.0)),
    ("xlogy", (0.0, 2.0), (np.float32(np.log(2.0)), 0.0)),
    ("xlog1py", (0.0, -1.0), (0.0, 0.0)),
    ("lerp", (1.0, 3.0, 0.25), (0.75, 0.25, 2.0)),
    ("addcmul", (1.0, 2.0, 3.0, 4.0), (1.0, 12.0, 8.0, 6.0)),
    ("addcdiv", (1.0, 2.0, 4.0, 8.0), (1.0, 2.0, -1.0, 0.5)),
    ("nan_to_num", (np.nan, 1.0, 2.0, 3.0), (0.0, 1.0, 0.0, 0.0)),
    ("nan_to_num", (-np.inf, 1.0, 2.0, 3.0), (0.0, 0.0, 0.0, 1.0)),
    ("sinc", (0.0,), (0.0,)),
    ("sinc", (1.0,), (-1.0,)),
    ("i0", (0.0,), (0.0,)),
    ("i1", (0.0,), (0.5,)),
    ("asin", (1.0,), (np.inf,)),
    ("acos", (-1.0,), (-np.inf,)),
    ("acosh", (1.0,), (np.inf,)),
    ("atanh", (0.0,), (1.0,)),
    ("asinh", (1.0e30,), (1.0e-30,)),
    ("erfinv", (1.0,), (np.inf,)),
    ("logit", (0.5,), (4.0,)),
    ("clamp", (1.0, 1.0, 1.0), (1.0, 0.0, 0.0)),
    ("clamp", (3.0, 2.0, 1.0), (0.0, 0.0, 1.0)),
    ("clamp_min", (1.0, 1.0), (1.0, 0.0)),
    ("clamp_max", (1.0, 1.0), (1.0, 0.0)),
    ("softplus", (0.0, 1.0, 20.0), (0.5, -np.float32(np.log(2.0)), None)),
    ("softplus", (30.0, 1.0, 20.0), (1.0, 0.0, None)),
    ("log_sigmoid", (0.0,), (0.5,)),
    ("frac", (-1.5,), (1.0,)),
]


@pytest.mark.parametrize(("name", "arguments", "expected"), STATED)
def test_stated_gradients(name, arguments, expected, device):
    actual = gradients_at(getattr(vkml, name), arguments, device)
    for found, stated in zip(actual, expected, strict=True):
        if stated is None:
            assert found is None
        else:
            assert found == pytest.approx(stated, rel=2e-6)


@pytest.mark.parametrize("x", [1e-3, 0.1, 0.49, 0.51, 3.3])
def test_slope_of_sinc_has_no_cancellation(x, device):
    angle = np.pi * x
    small = -(np.pi**2) * x / 3 * (1 - angle**2 / 10 + angle**4 / 280)
    exact_slope = small if x < 0.01 else (np.cos(angle) - np.sinc(x)) / x
    (slope,) = gradients_at(vkml.sinc, (x,), device)
    assert slope == pytest.approx(exact_slope, rel=3e-6)


@pytest.mark.parametrize(("order", "name"), [*enumerate(["lgamma", "digamma", "trigamma"])])
def test_gamma_family_chains_its_derivatives(order, name, device):
    x = vkml.tensor([0.3, 1.4616321, 2.5, 20.0, -0.7], device=device, requires_grad=True)
    first = vkml.grad(getattr(vkml, name)(x).sum(), [x], create_graph=True)[0]
    second = vkml.grad(first.sum(), [x])[0]
    assert exact(first).tolist() == exact(vkml.polygamma(order, x)).tolist()
    assert exact(second).tolist() == exact(vkml.polygamma(order + 1, x)).tolist()


@pytest.mark.parametrize("x", [1e-5, 1e-3, 0.1, 0.9, 1.1, -0.3, 0.0])
def test_second_derivative_of_bessel_functions_has_no_cancellation(x, device):
    """i1'' = (3 i1 + i3) / 4, and of i1e the same with exp(-|x|)."""
    wide = np.float64(np.float32(x))
    curve = (3 * scipy.special.iv(1, wide) + scipy.special.iv(3, wide)) / 4
    slope = (scipy.special.iv(0, wide) + scipy.special.iv(2, wide)) / 2
    sign, scale = np.sign(wide), np.exp(-abs(wide))
    scaled = scale * (curve - 2 * sign * slope + sign**2 * scipy.special.iv(1, wide))
    for name, expected in (("i1", curve), ("i1e", scaled)):
        t = vkml.tensor([x], device=device, requires_grad=True)
        (first,) = vkml.grad(getattr(vkml, name)(t).sum(), [t], create_graph=True)
        (second,) = vkml.grad(first.sum(), [t])
        assert second.item() == pytest.approx(expected, rel=4e-6, abs=1e-12)
