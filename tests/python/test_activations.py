"""Activations at their edges: values, gradients and errors as PyTorch has them.

Where PyTorch is installed, every function is compared with it at the points where formulas change,
and at infinities; the shapes and errors that only we state are checked without it.
"""

import inspect

import numpy as np
import pytest
import scipy.special

import vkml
from activation_cases import POINTWISE
from checking import check, exact, inputs
from vkml import nn
from vkml.nn import functional as F

EDGES = [-6.0, -3.0, -2.0, -1.0, -0.5, -0.0, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 6.0]
# At -inf, inf and NaN, where PyTorch's formula gives NaN for an infinity and ours the limit, and
# where PyTorch's answer depends on the machine.
LIMITS = {
    "gelu": [np.nan, np.inf, np.nan],
    "hardswish": [0, np.inf, np.nan],
    "mish": [0, np.inf, np.nan],
    "softsign": [-1, 1, np.nan],
}


def function_of(case, module):
    return getattr(module, case.split(" ")[0])


@pytest.mark.parametrize("case", POINTWISE)
def test_edges_are_pytorchs(case, device):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    settings = POINTWISE[case]
    ours = vkml.tensor(EDGES, device=device, requires_grad=True)
    # In double: PyTorch's float32 loses the tails of some to cancellation, by machine.
    theirs = torch.tensor(EDGES, dtype=torch.float64, requires_grad=True)
    result = function_of(case, F)(ours, **settings)
    expected = function_of(case, torch.nn.functional)(theirs, **settings)
    np.testing.assert_allclose(exact(result), expected.detach().numpy(), rtol=2e-6, atol=2e-7)
    cotangent = np.linspace(1, 2, len(EDGES), dtype=np.float32)
    result.backward(vkml.tensor(cotangent, device=device))
    expected.backward(torch.tensor(cotangent, dtype=torch.float64))
    np.testing.assert_allclose(exact(ours.grad), theirs.grad.numpy(), rtol=3e-6, atol=3e-7)


@pytest.mark.parametrize("case", POINTWISE)
def test_infinities_and_nan_are_pytorchs(case, device):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    settings = POINTWISE[case]
    values = [-np.inf, np.inf, np.nan]
    expected = function_of(case, torch.nn.functional)(torch.tensor(values), **settings).numpy()
    if case in LIMITS:
        expected = np.array(LIMITS[case])
    result = function_of(case, F)(vkml.tensor(values, device=device), **settings)
    np.testing.assert_array_equal(exact(result), expected)


def takes_inplace(case):
    return "inplace" in inspect.signature(function_of(case, F)).parameters


@pytest.mark.parametrize("case", [*filter(takes_inplace, POINTWISE)])
def test_inplace_changes_the_input(case, device):
    function = function_of(case, F)
    array = inputs((3, 5), -4, 4)
    x = vkml.tensor(array, device=device)
    other_name = x
    expected = exact(function(x, **POINTWISE[case]))
    result = function(x, **POINTWISE[case], inplace=True)
    np.testing.assert_array_equal(exact(result), expected)
    np.testing.assert_array_equal(exact(other_name), expected)


GATES = {
    "glu": lambda x: 1 / (1 + np.exp(-x)),
    "reglu": lambda x: np.maximum(x, 0),
    "geglu": lambda x: x * 0.5 * scipy.special.erfc(-x / np.sqrt(2)),
    "swiglu": lambda x: x / (1 + np.exp(-x)),
}


@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("name", GATES)
def test_gated_units(name, dim, device):
    def oracle(x):
        values, gates = np.split(x, 2, axis=dim)
        return values * GATES[name](gates)

    check(lambda x: getattr(F, name)(x, dim), oracle, inputs((2, 4, 6), -3, 3), device)


@pytest.mark.parametrize("name", GATES)
def test_gated_units_need_an_even_extent(name):
    with pytest.raises(vkml.ShapeError, match=rf"\[{name}\].*\(2, 3\)"):
        getattr(F, name)(vkml.ones(2, 3))


@pytest.mark.parametrize("shape", [(4,), (2, 3), (2, 3, 4), (2, 3, 2, 2)])
@pytest.mark.parametrize("weights", [1, 3])
def test_prelu(shape, weights, device):
    if weights == 3 and len(shape) == 1:
        with pytest.raises(vkml.ShapeError, match="3 weights for the 1 channels"):
            F.prelu(vkml.ones(*shape), vkml.ones(3))
        return

    def oracle(x, weight):
        slopes = weight if len(shape) < 2 else weight.reshape(-1, *[1] * (len(shape) - 2))
        return np.where(x > 0, x, slopes * x)

    check(vkml.prelu, oracle, [inputs(shape, -2, 2), inputs((weights,), 0.1, 0.5)], device)


def test_prelu_layer_learns_its_weights(device):
    layer = nn.PReLU(3, init=0.5, device=device)
    layer(vkml.full((2, 3, 4), -1.0, device=device)).sum().backward()
    assert layer.weight.grad.tolist() == [-8.0, -8.0, -8.0]
    assert repr(layer) == "PReLU(num_parameters=3)"


def test_rrelu_draws_slopes_in_training(device):
    vkml.manual_seed(3)
    x = vkml.full((4000,), -1.0, device=device)
    slopes = -exact(F.rrelu(x, 0.2, 0.6, training=True))
    assert slopes.min() >= 0.2
    assert slopes.max() <= 0.6
    assert abs(slopes.mean() - 0.4) < 0.01
    assert len(np.unique(slopes)) > 1000
    layer = nn.RReLU(0.2, 0.6)
    assert np.unique(exact(layer.eval()(x))).tolist() == [np.float32(-0.4)]


MODULES = {
    nn.ReLU: ((), "relu"),
    nn.ReLU6: ((), "relu6"),
    nn.Sigmoid: ((), "sigmoid"),
    nn.Tanh: ((), "tanh"),
    nn.SiLU: ((), "silu"),
    nn.Mish: ((), "mish"),
    nn.SELU: ((), "selu"),
    nn.GELU: (("tanh",), "gelu"),
    nn.Hardsigmoid: ((), "hardsigmoid"),
    nn.Hardswish: ((), "hardswish"),
    nn.Softsign: ((), "softsign"),
    nn.Tanhshrink: ((), "tanhshrink"),
    nn.LogSigmoid: ((), "logsigmoid"),
    nn.Hardtanh: ((-0.5, 2.0), "hardtanh"),
    nn.Threshold: ((0.3, -1.0), "threshold"),
    nn.LeakyReLU: ((0.3,), "leaky_relu"),
    nn.ELU: ((0.5,), "elu"),
    nn.CELU: ((0.5,), "celu"),
    nn.Hardshrink: ((1.0,), "hardshrink"),
    nn.Softshrink: ((1.0,), "softshrink"),
    nn.Softplus: ((2.0, 3.0), "softplus"),
    nn.GLU: ((1,), "glu"),
    nn.Softmin: ((1,), "softmin"),
    nn.Softmax: ((1,), "softmax"),
    nn.LogSoftmax: ((1,), "log_softmax"),
}


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_modules_pass_their_settings(module):
    settings, name = MODULES[module]
    x = vkml.tensor(inputs((3, 4), -4, 4))
    layer = module(*settings)
    np.testing.assert_array_equal(exact(layer(x)), exact(getattr(F, name)(x, *settings)))
    for setting in settings:
        assert str(setting) in repr(layer)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: F.hardtanh(x, 1.0, -1.0), r"\[hardtanh\] min_val 1.0 exceeds max_val -1.0"),
        (lambda x: F.softshrink(x, -1.0), r"\[softshrink\] lambd -1.0"),
        (lambda x: F.celu(x, 0.0), r"\[celu\] alpha is 0"),
        (lambda x: F.rrelu(x, 0.5, 0.1), r"\[rrelu\] lower 0.5 exceeds upper 0.1"),
        (lambda x: F.gelu(x, "erf"), r"\[gelu\] approximate is 'erf'"),
    ],
)
def test_settings_without_a_meaning(call, message):
    with pytest.raises(vkml.ArgumentError, match=message):
        call(vkml.ones(2))
