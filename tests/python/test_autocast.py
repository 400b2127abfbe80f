"""Mixed precision: the dtype each operator takes under autocast, gradients, and loss scaling."""

import threading
from collections.abc import Callable

import numpy as np
import pytest

import vkml
from torch_agreement import torch
from vkml import Tensor, nn
from vkml.nn import functional as F

HALF = [vkml.bfloat16, vkml.float16]

# Of float32 operands: these give the mode's dtype.
PRODUCTS: dict[str, Callable[[Tensor], Tensor]] = {
    "matmul": lambda x: x @ x,
    "mv": lambda x: x @ x[0],
    "einsum": lambda x: vkml.einsum("ij,jk->ik", x, x),
    "linear": lambda x: F.linear(x, x),
    "conv1d": lambda x: F.conv1d(x.reshape((1, 4, 4)), x.reshape((2, 4, 2))),
    "conv2d": lambda x: F.conv2d(x.reshape((1, 1, 4, 4)), x.reshape((4, 1, 2, 2))),
    "conv_transpose2d": lambda x: F.conv_transpose2d(
        x.reshape((1, 1, 4, 4)), x.reshape((1, 4, 2, 2))
    ),
    "attention": lambda x: F.scaled_dot_product_attention(
        x.reshape((1, 1, 4, 4)), x.reshape((1, 1, 4, 4)), x.reshape((1, 1, 4, 4))
    ),
}
# Of half-precision operands: these give float32.
PRECISE: dict[str, Callable[[Tensor], Tensor]] = {
    "exp": lambda x: x.exp(),
    "log": lambda x: x.log(),
    "log1p": lambda x: x.log1p(),
    "expm1": lambda x: x.expm1(),
    "pow": lambda x: x**2.5,
    "square": lambda x: x**2,
    "power of a number": lambda x: 2.0**x,
    "quotient of a number": lambda x: 1 / x,
    "rsqrt": lambda x: x.rsqrt(),
    "reciprocal": lambda x: x.reciprocal(),
    "tan": lambda x: x.tan(),
    "softplus": F.softplus,
    "sum": lambda x: x.sum(),
    "prod": lambda x: x.prod(),
    "cumsum": lambda x: x.cumsum(0),
    "cumprod": lambda x: x.cumprod(0),
    "norm": lambda x: x.norm(),
    "softmax": lambda x: F.softmax(x, -1),
    "log_softmax": lambda x: F.log_softmax(x, -1),
    "layer_norm": lambda x: F.layer_norm(x, (4,)),
    "group_norm": lambda x: F.group_norm(x, 2),
    "mse_loss": lambda x: F.mse_loss(x, x),
    "l1_loss": lambda x: F.l1_loss(x, x),
    "cross_entropy": lambda x: F.cross_entropy(x, vkml.tensor([0, 1, 2, 3], device=x.device)),
    "kl_div": lambda x: F.kl_div(x, x),
    "cosine_similarity": lambda x: F.cosine_similarity(x, x),
}
# These keep the dtype of their operands.
NEUTRAL: dict[str, Callable[[Tensor], Tensor]] = {
    "add": lambda x: x + x,
    "mul": lambda x: x * 2.0,
    "relu": F.relu,
    "gelu": F.gelu,
    "max": lambda x: x.max(),
    "mean": lambda x: x.mean(),
    "transpose": lambda x: x.T,
}


def operand(device: vkml.Device, dtype: vkml.dtype) -> Tensor:
    values = np.random.default_rng(0).uniform(0.25, 1.0, (4, 4)).astype(np.float32)
    return vkml.tensor(values, device=device).to(dtype)


@pytest.mark.parametrize("dtype", HALF, ids=str)
@pytest.mark.parametrize("name", PRODUCTS)
def test_products_take_operands_in_half_precision(
    device: vkml.Device, name: str, dtype: vkml.dtype
) -> None:
    function = PRODUCTS[name]
    x = operand(device, vkml.float32)
    with vkml.autocast(dtype=dtype):
        result = function(x)
        wide = function(x.to(vkml.float64)) if device == vkml.cpu else None
    assert result.dtype == dtype
    assert result.tolist() == function(x.to(dtype)).tolist()
    assert function(x).dtype == vkml.float32
    assert wide is None or wide.dtype == vkml.float64


@pytest.mark.parametrize("dtype", HALF, ids=str)
@pytest.mark.parametrize("name", PRECISE)
def test_precise_operators_take_half_precision_as_float32(
    device: vkml.Device, name: str, dtype: vkml.dtype
) -> None:
    function = PRECISE[name]
    x = operand(device, dtype)
    with vkml.autocast(dtype=vkml.bfloat16):
        result = function(x)
    assert result.dtype == vkml.float32
    assert result.tolist() == function(x.to(vkml.float32)).tolist()
    assert function(x).dtype == dtype


@pytest.mark.parametrize("dtype", [*HALF, vkml.float32], ids=str)
@pytest.mark.parametrize("name", NEUTRAL)
def test_other_operators_keep_their_dtype(
    device: vkml.Device, name: str, dtype: vkml.dtype
) -> None:
    x = operand(device, dtype)
    with vkml.autocast():
        result = NEUTRAL[name](x)
    assert result.dtype == dtype
    assert result.tolist() == NEUTRAL[name](x).tolist()


@pytest.mark.parametrize("name", [*PRODUCTS, *PRECISE])
def test_gradients_of_float32_parameters_are_float32(device: vkml.Device, name: str) -> None:
    function = (PRODUCTS | PRECISE)[name]
    x = operand(device, vkml.float32).requires_grad_()
    half = operand(device, vkml.float32).requires_grad_()
    with vkml.autocast():
        function(x).to(vkml.float32).sum().backward()
    expected = function(half.to(vkml.bfloat16) if name in PRODUCTS else half)
    expected.to(vkml.float32).sum().backward()
    assert x.grad is not None
    assert half.grad is not None
    assert x.grad.dtype == vkml.float32
    # Each use of x has a cast of its own, and their gradients add in float32.
    np.testing.assert_allclose(x.grad.numpy(), half.grad.numpy(), rtol=2.0**-7, atol=2.0**-9)


def test_a_backward_pass_inside_the_block_is_the_same(device: vkml.Device) -> None:
    gradients = []
    for inside in (False, True):
        x = operand(device, vkml.float32).requires_grad_()
        with vkml.autocast():
            loss = ((x @ x).relu() @ x).exp().sum()
            if inside:
                loss.backward()
        if not inside:
            loss.backward()
        assert x.grad is not None
        gradients.append(x.grad.tolist())
    assert gradients[0] == gradients[1]


def test_the_mode_nests_and_ends_with_its_block() -> None:
    x = operand(vkml.cpu, vkml.float32)
    assert not vkml.is_autocast_enabled()
    with vkml.autocast(dtype=vkml.float16):
        assert vkml.is_autocast_enabled()
        assert vkml.get_autocast_dtype() == vkml.float16
        with vkml.autocast("cpu", enabled=False):
            assert not vkml.is_autocast_enabled()
            assert (x @ x).dtype == vkml.float32
        with pytest.raises(vkml.ShapeError), vkml.autocast():
            x @ x[:3]
        assert (x @ x).dtype == vkml.float16
    assert not vkml.is_autocast_enabled()
    assert vkml.get_autocast_dtype() == vkml.bfloat16


def test_a_decorated_function_turns_it_on() -> None:
    @vkml.autocast(dtype=vkml.float16)
    def product(x: Tensor) -> Tensor:
        return x @ x

    assert product(operand(vkml.cpu, vkml.float32)).dtype == vkml.float16
    assert not vkml.is_autocast_enabled()


def test_the_mode_is_of_one_thread() -> None:
    seen: list[bool] = []
    with vkml.autocast():
        thread = threading.Thread(target=lambda: seen.append(vkml.is_autocast_enabled()))
        thread.start()
        thread.join()
    assert seen == [False]


@pytest.mark.parametrize("dtype", [vkml.float32, vkml.float64, vkml.int32], ids=str)
def test_other_dtypes_are_refused(dtype: vkml.dtype) -> None:
    with pytest.raises(vkml.DTypeError, match=r"\[autocast\] .*float16"):
        vkml.autocast(dtype=dtype)
    with pytest.raises(vkml.ArgumentError, match="'cuda'"):
        vkml.autocast("cuda")
    with pytest.raises(vkml.DTypeError, match="dtype="):
        vkml.autocast(vkml.bfloat16)  # type: ignore[arg-type]


def test_a_recorded_call_keeps_the_mode_it_was_recorded_under(device: vkml.Device) -> None:
    product = vkml.jit(lambda x: x @ x)
    x = operand(device, vkml.float32)
    with vkml.autocast():
        assert product(x).dtype == vkml.bfloat16
    assert product(x).dtype == vkml.float32
    with vkml.autocast():
        assert product(x).dtype == vkml.bfloat16


@pytest.mark.parametrize("dtype", HALF, ids=str)
def test_training_reaches_the_loss_of_float32(device: vkml.Device, dtype: vkml.dtype) -> None:
    rng = np.random.default_rng(0)
    inputs = vkml.tensor(rng.standard_normal((64, 8)).astype(np.float32), device=device)
    labels = (inputs.sum(1) > 0).to(vkml.int32)

    def train(enabled: bool) -> float:
        vkml.manual_seed(0)
        model = nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 2))
        model.to(device)
        optimizer = vkml.optim.Adam(model.parameters(), lr=0.01)
        scaler = vkml.amp.GradScaler(enabled=enabled and dtype == vkml.float16)
        for _ in range(30):
            optimizer.zero_grad()
            with vkml.autocast(dtype=dtype, enabled=enabled):
                loss = F.cross_entropy(model(inputs), labels)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        assert all(parameter.dtype == vkml.float32 for parameter in model.parameters())
        return float(loss)

    exact, mixed = train(False), train(True)
    assert exact < 0.25
    assert abs(mixed - exact) < 0.02


def test_loss_scaling_follows_pytorch() -> None:
    """The factor, and which steps are made, over a run with infinite gradients in it."""
    settings = {"init_scale": 1024.0, "growth_interval": 2, "growth_factor": 2.0}
    ours = vkml.amp.GradScaler(**settings)
    theirs = torch.amp.GradScaler("cpu", **settings)
    our_parameter = vkml.tensor([1.0, 2.0], requires_grad=True)
    their_parameter = torch.tensor([1.0, 2.0], requires_grad=True)
    our_optimizer = vkml.optim.SGD([our_parameter], lr=0.1)
    their_optimizer = torch.optim.SGD([their_parameter], lr=0.1)
    for factor in (1.0, 0.5, float("inf"), 1.0, float("nan"), 2.0, 1.0, 1.0):
        our_optimizer.zero_grad()
        their_optimizer.zero_grad()
        ours.scale((our_parameter * factor).sum()).backward()
        theirs.scale((their_parameter * factor).sum()).backward()
        ours.step(our_optimizer)
        theirs.step(their_optimizer)
        ours.update()
        theirs.update()
        assert ours.get_scale() == theirs.get_scale()
        assert our_parameter.tolist() == their_parameter.tolist()
    assert ours.state_dict() == theirs.state_dict()
    restored = vkml.amp.GradScaler()
    restored.load_state_dict(theirs.state_dict())
    assert restored.state_dict() == ours.state_dict()


def test_clipping_sees_unscaled_gradients() -> None:
    parameter = vkml.tensor([1.0, 2.0], requires_grad=True)
    optimizer = vkml.optim.SGD([parameter], lr=1.0)
    scaler = vkml.amp.GradScaler(init_scale=256.0)
    scaler.scale((parameter * 3.0).sum()).backward()
    scaler.unscale_(optimizer)
    assert parameter.grad is not None
    assert parameter.grad.tolist() == [3.0, 3.0]
    with pytest.raises(vkml.AutogradError, match="unscaled already"):
        scaler.unscale_(optimizer)
    scaler.step(optimizer)
    with pytest.raises(vkml.AutogradError, match="stepped already"):
        scaler.step(optimizer)
    scaler.update()
    assert parameter.tolist() == [-2.0, -1.0]
    with pytest.raises(vkml.AutogradError, match="no optimiser has stepped"):
        scaler.update()


def test_a_failed_check_leaves_gradients_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    parameter = vkml.tensor([1.0, 2.0], requires_grad=True)
    optimizer = vkml.optim.SGD([parameter], lr=1.0)
    scaler = vkml.amp.GradScaler(init_scale=256.0)
    scaler.scale((parameter * 3.0).sum()).backward()
    with monkeypatch.context() as patch:
        patch.setattr(vkml, "stack", lambda tensors: (_ for _ in ()).throw(MemoryError))
        with pytest.raises(MemoryError):
            scaler.step(optimizer)
    scaler.step(optimizer)
    assert parameter.tolist() == [-2.0, -1.0]


def test_parameters_on_two_devices_are_scaled(device: vkml.Device) -> None:
    parameters = [
        vkml.tensor([1.0, 2.0], requires_grad=True, device=where) for where in (vkml.cpu, device)
    ]
    optimizer = vkml.optim.SGD(parameters, lr=1.0)
    scaler = vkml.amp.GradScaler(init_scale=256.0)
    for parameter in parameters:
        scaler.scale((parameter * 3.0).sum()).backward()
    scaler.step(optimizer)
    assert [parameter.tolist() for parameter in parameters] == [[-2.0, -1.0]] * 2


@pytest.mark.parametrize(
    "settings",
    [
        {"init_scale": 0.0},
        {"init_scale": float("nan")},
        {"init_scale": "a"},
        {"growth_factor": 1.0},
        {"growth_factor": float("nan")},
        {"backoff_factor": 1.0},
        {"growth_interval": 0},
    ],
    ids=str,
)
def test_settings_out_of_range_are_refused(settings: dict[str, float]) -> None:
    with pytest.raises(vkml.ArgumentError, match="GradScaler"):
        vkml.amp.GradScaler(**settings)


def test_a_state_with_missing_parts_changes_nothing() -> None:
    scaler = vkml.amp.GradScaler()
    before = scaler.state_dict()
    with pytest.raises(vkml.ArgumentError, match="growth_factor"):
        scaler.load_state_dict({"scale": 1.0})
    assert scaler.state_dict() == before


LAYERS = {
    "Linear": (lambda: vkml.nn.Linear(4, 3), (2, 4)),
    "Bilinear": (lambda: vkml.nn.Bilinear(4, 4, 3), (2, 4)),
    "Conv1d": (lambda: vkml.nn.Conv1d(4, 3, 2), (2, 4, 5)),
    "Conv2d": (lambda: vkml.nn.Conv2d(4, 3, 2), (2, 4, 5, 5)),
    "ConvTranspose2d": (lambda: vkml.nn.ConvTranspose2d(4, 3, 2), (2, 4, 5, 5)),
    "MultiheadAttention": (lambda: vkml.nn.MultiheadAttention(4, 2), (3, 2, 4)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers_with_a_bias_give_half_precision(device: vkml.Device, name: str) -> None:
    """Added as float32, a bias would take all that follows back to float32."""
    make, shape = LAYERS[name]
    layer = make().to(device)
    x = vkml.ones(*shape, device=device)
    count = {"Bilinear": 2, "MultiheadAttention": 3}.get(name, 1)
    with vkml.autocast(dtype=vkml.bfloat16):
        result = layer(*[x] * count)
        result = result[0] if isinstance(result, tuple) else result
        assert result.dtype == vkml.bfloat16
        added = vkml.addmm(
            vkml.ones(3, device=device),
            vkml.ones(2, 4, device=device),
            vkml.ones(4, 3, device=device),
        )
        assert added.dtype == vkml.bfloat16
    result.float().sum().backward()
    assert all(p.grad.dtype == vkml.float32 for p in layer.parameters())
