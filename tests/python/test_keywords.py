"""Keywords that choose among elementwise operators, or combine them, against NumPy."""

import numpy as np
import pytest
import scipy.special

import vkml
from checking import FLOATS, assert_ulps, check, exact, inputs

QUOTIENTS = {
    None: np.true_divide,
    "floor": np.floor_divide,
    "trunc": lambda a, b: np.trunc(a / b),
}


@pytest.mark.parametrize("mode", QUOTIENTS, ids=str)
@pytest.mark.parametrize("name", ["div", "divide"])
def test_division_rounds_as_asked(name, mode, device):
    a = np.array([7.0, -7.0, 7.0, -7.0, 6.0, -0.5, np.inf, 3.0], dtype=np.float32)
    b = np.array([2.0, 2.0, -2.0, -2.0, 3.0, 3.0, 2.0, np.inf], dtype=np.float32)
    if mode == "floor":
        a, b = a[:6], b[:6]  # NumPy and PyTorch make NaN of an infinite dividend
    x, y = vkml.tensor(a, device=device), vkml.tensor(b, device=device)
    expected = QUOTIENTS[mode](a, b)
    for result in (
        getattr(vkml, name)(x, y, rounding_mode=mode),
        getattr(x, name)(y, rounding_mode=mode),
    ):
        assert_ulps(result, expected, 2.5)
        np.testing.assert_array_equal(np.signbit(exact(result)), np.signbit(expected))


def test_integer_division_rounds_as_asked(device):
    x, y = vkml.tensor([7, -7, 7, 5], device=device), vkml.tensor([2, 2, -2, 0], device=device)
    assert vkml.div(x, y, rounding_mode="trunc").tolist() == [3, -3, -3, 0]
    assert vkml.div(x, y, rounding_mode="floor").tolist() == [3, -4, -4, 0]
    assert vkml.div(x, 2, rounding_mode="trunc").dtype == vkml.int32
    with pytest.raises(vkml.ArgumentError, match=r"\[div\] rounding_mode is 'ceil'"):
        vkml.div(x, y, rounding_mode="ceil")


@pytest.mark.parametrize("name", ["add", "sub", "subtract"])
def test_alpha_scales_the_second_operand(name, device):
    sign = 1 if name == "add" else -1
    arrays = [inputs((3, 4), -2, 2), inputs((4,), -2, 2, seed=1)]
    check(
        lambda a, b: getattr(vkml, name)(a, b, alpha=3),
        lambda a, b: a + sign * 3 * b,
        arrays,
        device,
    )
    whole = vkml.tensor([1, 2], device=device)
    assert getattr(whole, name)(whole, alpha=2).tolist() == [1 + sign * 2, 2 + sign * 4]


@pytest.mark.parametrize("decimals", [-2, -1, 0, 1, 3])
def test_round_to_decimals(decimals, device):
    x = inputs((100,), -700, 700)
    result = vkml.round(vkml.tensor(x, device=device), decimals=decimals)
    assert_ulps(result, np.round(x.astype(np.float64), decimals), 2.5)
    whole = vkml.tensor([15, 25], device=device)
    assert vkml.round(whole, decimals=decimals).tolist() == [15, 25]


def test_round_halves_to_even(device):
    x = vkml.tensor([0.25, 0.75, -0.25, 1.25], device=device)
    np.testing.assert_allclose(exact(x.round(decimals=1)), [0.2, 0.8, -0.2, 1.2], rtol=1e-6)


@pytest.mark.parametrize("name", ["clamp", "clip"])
def test_clamp_takes_either_end(name, device):
    array = np.array([[-2.0, -0.5, np.nan], [0.0, 0.5, 2.0]], dtype=np.float32)
    ends = np.array([-1.0, 0.0, 1.0], dtype=np.float32)
    x = vkml.tensor(array, device=device)
    for low, high in [(-1, 1), (-1, None), (None, 1), (ends, None), (None, ends), (ends, 0.75)]:
        expected = array
        if low is not None:
            expected = np.maximum(expected, np.float32(low))
        if high is not None:
            expected = np.minimum(expected, np.float32(high))
        settings = {
            key: vkml.tensor(end, device=device) if isinstance(end, np.ndarray) else end
            for key, end in (("min", low), ("max", high))
            if end is not None
        }
        np.testing.assert_array_equal(exact(getattr(vkml, name)(x, **settings)), expected)
        np.testing.assert_array_equal(exact(getattr(x, name)(**settings)), expected)
    assert getattr(vkml, name)(vkml.tensor([5, -5]), min=0).dtype == vkml.int32
    with pytest.raises(vkml.ArgumentError, match=r"\[clamp\] min and max are both None"):
        getattr(vkml, name)(x)


def test_clamped_numbers_at_an_end_keep_their_gradient(device):
    for settings in ({"min": 0.0}, {"max": 0.0}, {"min": 0.0, "max": 0.0}):
        x = vkml.tensor([0.0], device=device, requires_grad=True)
        x.clamp(**settings).sum().backward()
        assert x.grad.tolist() == [1.0]


@pytest.mark.parametrize("dtype", list(FLOATS), ids=str)
def test_nan_to_num_knows_the_ends_of_the_dtype(dtype, device):
    x = vkml.tensor([np.nan, np.inf, -np.inf, 1.5], dtype=dtype, device=device)
    largest = FLOATS[dtype][2]
    assert exact(vkml.nan_to_num(x)).tolist() == [0.0, largest, -largest, 1.5]
    assert exact(x.nan_to_num(2.0, posinf=3.0)).tolist() == [2.0, 3.0, -largest, 1.5]
    assert exact(vkml.nan_to_num(x, neginf=-1.0)).tolist() == [0.0, largest, -1.0, 1.5]
    assert vkml.nan_to_num(vkml.tensor([7], device=device)).tolist() == [7]


def test_logit_within_eps(device):
    x = np.array([0.0, 0.25, 0.75, 1.0], dtype=np.float32)
    expected = scipy.special.logit(np.clip(x.astype(np.float64), 0.1, 0.9))
    for result in (
        vkml.logit(vkml.tensor(x, device=device), 0.1),
        vkml.tensor(x, device=device).logit(eps=0.1),
    ):
        np.testing.assert_allclose(exact(result), expected, rtol=1e-6)


@pytest.mark.parametrize("n", [*range(8), 20])
def test_polygamma(n, device):
    x = inputs((50,), 0.5, 20)
    result = vkml.polygamma(n, vkml.tensor(x, device=device))
    expected = scipy.special.polygamma(n, x.astype(np.float64))
    # From order 4 on, a power of n + 1 carries its base's rounding.
    np.testing.assert_allclose(exact(result), expected, rtol=2e-6 if n < 4 else 1e-7 * (n + 12))
    assert exact(vkml.tensor(x, device=device).polygamma(n)).tolist() == exact(result).tolist()


@pytest.mark.parametrize("n", range(1, 8))
def test_polygamma_in_double_precision(n):
    """Below 0 by the recurrence, the difference of orders and signs that SciPy lacks."""
    x = np.array([-3.7, -2.3, -1.25, -0.4, -1e-3, 1e-3, 0.3, 1.0, 2.5, 30.0, 1e4])
    shifted = np.where(x < 0, x + 4, x)
    expected = scipy.special.polygamma(n, shifted)
    for k in range(4):
        term = (-1.0) ** (n + 1) * scipy.special.factorial(n) / (x + k) ** (n + 1)
        expected = expected + np.where(x < 0, term, 0)
    found = exact(vkml.polygamma(n, vkml.tensor(x)))
    np.testing.assert_allclose(found, expected, rtol=2e-13)


def test_polygamma_at_its_ends(device):
    x = vkml.tensor([0.0, -1.0, -2.0, np.inf, np.nan, 1e30], device=device)
    assert str(exact(vkml.polygamma(4, x)).tolist()) == "[-inf, -inf, -inf, -0.0, nan, -0.0]"
    assert str(exact(vkml.polygamma(5, x)).tolist()) == "[inf, inf, inf, 0.0, nan, 0.0]"
    half = vkml.tensor([1.0], dtype=vkml.float16, device=device)
    assert vkml.polygamma(4, half).dtype == vkml.float16
    assert vkml.polygamma(4, vkml.tensor([1], device=device)).dtype == vkml.float32
    for n in (-1, 101):
        with pytest.raises(vkml.ArgumentError, match=rf"\[polygamma\] the order {n} is not in"):
            vkml.polygamma(n, x)


@pytest.mark.parametrize("n", range(5))
def test_polygamma_has_derivatives_of_any_order(n):
    x = vkml.tensor([0.4, 1.5, -0.7], dtype=vkml.float64, requires_grad=True)
    y = vkml.polygamma(n, x)
    for order in range(n + 1, n + 5):
        (y,) = vkml.grad(y.sum(), [x], create_graph=True)
        assert y.requires_grad
        np.testing.assert_allclose(exact(y), exact(vkml.polygamma(order, x)), rtol=1e-13)
    assert vkml.autograd.gradgradcheck(
        lambda t: vkml.polygamma(n, t), [x[:2].detach().requires_grad_()]
    )


@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_gelu_by_keyword(approximate, device):
    x = vkml.tensor(inputs((20,), -3, 3), device=device)
    expected = (vkml.gelu if approximate == "none" else vkml.gelu_tanh)(x)
    assert vkml.gelu(x, approximate=approximate).tolist() == expected.tolist()
    with pytest.raises(vkml.ArgumentError, match=r"\[gelu\] approximate is 'erf'"):
        vkml.gelu(x, approximate="erf")


def test_where_as_a_method(device):
    x = vkml.tensor([1.0, 2.0, 3.0], device=device)
    assert x.where(x > 1.5, -1.0).tolist() == [-1.0, 2.0, 3.0]


def test_shift_operators(device):
    x = vkml.tensor([1, -8, 3], device=device)
    assert (x << 2).tolist() == [4, -32, 12]
    assert (x >> 1).tolist() == [0, -4, 1]
    assert (1 << vkml.tensor([0, 3], device=device)).tolist() == [1, 8]
    x <<= 1
    assert x.tolist() == [2, -16, 6]
    x >>= 2
    assert x.tolist() == [0, -4, 1]
    with pytest.raises(vkml.DTypeError, match="bitwise_left_shift"):
        vkml.tensor([1.0], device=device) << 1


def test_in_place_operators(device):
    x = vkml.tensor([7.0, -7.0], device=device)
    other_name = x
    x //= 2
    assert other_name.tolist() == [3.0, -4.0]
    x **= 2
    assert other_name.tolist() == [9.0, 16.0]
    x %= 5
    assert other_name.tolist() == [4.0, 1.0]


def test_closeness(device):
    a = vkml.tensor([1.0, np.nan, np.inf, -np.inf, 1.0], device=device)
    b = vkml.tensor([1.0 + 1e-6, np.nan, np.inf, np.inf, 1.1], device=device)
    assert vkml.isclose(a, b).tolist() == [True, False, True, False, False]
    assert a.isclose(b, rtol=0.2, equal_nan=True).tolist() == [True, True, True, False, True]
    assert vkml.isclose(a, b, atol=0.5).tolist() == [True, False, True, False, True]
    assert vkml.isclose(vkml.tensor([1, 2], device=device), 2).tolist() == [False, True]
    assert vkml.allclose(a, b) is False
    assert vkml.allclose(a[1:3], b[1:3], equal_nan=True) is True
    assert a[:1].allclose(b[:1]) is True
    assert vkml.allclose(a[:0], b[:0]) is True


def test_equal(device):
    a = vkml.tensor([1, 2, 3], device=device)
    assert vkml.equal(a, vkml.tensor([1.0, 2.0, 3.0], device=device)) is True
    assert vkml.equal(a, a[:1].expand(3)) is False
    assert vkml.equal(a, a[:2]) is False
    assert a.equal(a.clone()) is True


def test_float_power_is_wide(device):
    x = vkml.tensor([2, 3, -2], device=device)
    result = vkml.float_power(x, 31)
    assert result.dtype == vkml.float64
    assert_ulps(result, np.array([2.0**31, 3.0**31, -(2.0**31)]), 4)
    y = vkml.tensor([0.5, 2.0], device=device, requires_grad=True)
    y.float_power(vkml.tensor([2.0, -1.0], device=device)).sum().backward()
    assert_ulps(y.grad, np.array([1.0, -0.25]), 4)


def test_reversed_subtraction(device):
    x = vkml.tensor([1, 2], device=device)
    assert vkml.rsub(x, 5).tolist() == [4, 3]
    assert x.rsub(vkml.tensor([5, 5], device=device), alpha=2).tolist() == [3, 1]


def test_multivariate_gamma(device):
    for p in (1, 2, 5):
        x = inputs((7,), p / 2 + 0.1, 9)
        check(
            lambda t, p=p: vkml.mvlgamma(t, p),
            lambda a, p=p: np.array([scipy.special.multigammaln(v, p) for v in a]),
            x,
            device,
        )
    with pytest.raises(vkml.ArgumentError, match=r"\[mvlgamma\] p is 0"):
        vkml.mvlgamma(vkml.ones(2), 0)
