"""Tensors away from the default device, and values and gradients that cross devices."""

from collections.abc import Iterator

import pytest
from vkml._vkml import _live_nodes as live_nodes

import vkml
from checking import check, exact, inputs
from structural_cases import CASES

OTHERS = [info.device for info in vkml.devices() if info.device != vkml.cpu]
pytestmark = pytest.mark.skipif(not OTHERS, reason="there is one device")


@pytest.fixture(params=["cpu", "other"])
def away(request: pytest.FixtureRequest) -> Iterator[object]:
    """A device, while another is the default."""
    here, default = (vkml.cpu, OTHERS[0]) if request.param == "cpu" else (OTHERS[0], vkml.cpu)
    vkml.set_default_device(default)
    yield here
    vkml.set_default_device(vkml.cpu)


def floats(values: object, device: object, **options: object) -> object:
    return vkml.tensor(values, dtype=vkml.float32, device=device, **options)


# Away from the default device


@pytest.mark.parametrize("case", [case for case in CASES if case.arrays], ids=str)
def test_structural_operators_stay_on_their_device(case: object, away: object) -> None:
    if case.gradient:
        check(case.function, case.reference, case.arrays, away, max(case.units, 16))
    else:
        result = case.function(*(vkml.tensor(a, device=away) for a in case.arrays))
        assert result.device == away
        result.realize()


NUMBERS = {
    "add": lambda x: 1 + x + 1,
    "sub": lambda x: 1 - x - 1,
    "mul": lambda x: 2 * x * 2,
    "div": lambda x: 2 / x / 3,
    "floor_divide": lambda x: 2 // x // 3,
    "remainder": lambda x: 2 % x % 3,
    "pow": lambda x: 2**x**3,
    "compare": lambda x: (x < 1) | (x >= 2) | (x == 3) | (x != 4),
    "where": lambda x: vkml.where(x > 1, x, 0.0) + vkml.where(x > 1, 1.0, x),
    "maximum": lambda x: vkml.maximum(x, 1) + vkml.minimum(2, x),
    "clamp": lambda x: x.clamp(0, 1),
    "dropout": lambda x: vkml.dropout(x, 0.5),
    "like": lambda x: vkml.zeros_like(x) + vkml.rand_like(x) + vkml.full_like(x, 3),
    "matmul": lambda x: x @ x,
    "softmax": lambda x: vkml.softmax(x, 0),
    "getitem": lambda x: x[1] + x[vkml.tensor([0, 1, 1], device=x.device)].sum(0),
    "pad": lambda x: vkml.pad(x, (1, 1), value=2.0),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_take_the_device_of_the_tensor(name: str, away: object) -> None:
    x = vkml.tensor(inputs((3, 3), 0.5, 2), device=away)
    result = NUMBERS[name](x)
    assert result.device == away
    result.realize()


def test_assignments_of_numbers(away: object) -> None:
    x = vkml.zeros(2, 3, device=away)
    x[0] = 1.0
    x[:, 1] = 2
    x[1, 2] = True
    x += 1
    x[:, :1] *= 3
    x.copy_(x - 1)
    assert x.tolist() == [[5, 2, 1], [2, 2, 1]]
    scalar = vkml.zeros((), device=away)
    scalar.copy_(4)
    assert scalar.item() == 4


def test_a_model_trains(away: object) -> None:
    vkml.manual_seed(0)
    model = vkml.nn.Sequential(
        vkml.nn.Conv2d(1, 4, 3, padding=1),
        vkml.nn.BatchNorm2d(4),
        vkml.nn.GELU(),
        vkml.nn.MaxPool2d(2),
        vkml.nn.Flatten(),
        vkml.nn.Dropout(0.1),
        vkml.nn.LayerNorm(16),
        vkml.nn.Linear(16, 3),
    ).to(away)
    x = vkml.tensor(inputs((8, 1, 4, 4), -1, 1), device=away)
    labels = vkml.tensor([0, 1, 2, 0, 1, 2, 0, 1], device=away)
    for make in (vkml.optim.SGD, vkml.optim.Adam, vkml.optim.AdamW):
        optimizer = make(model.parameters(), lr=0.05)
        losses = []
        for _ in range(6):
            optimizer.zero_grad()
            loss = vkml.nn.functional.cross_entropy(model(x), labels)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        assert losses[-1] < losses[0]
    assert all(p.device == away for p in model.parameters())


# Across devices


def test_gradients_cross_devices(away: object) -> None:
    there = OTHERS[0] if away == vkml.cpu else vkml.cpu
    x = floats([1, 2, 3], away, requires_grad=True)
    w = floats([4, 5, 6], there, requires_grad=True)
    y = (x * x).to(there) * w
    assert y.device == there
    assert y.requires_grad
    y.sum().backward()
    assert x.grad.device == away
    assert x.grad.tolist() == [8, 20, 36]
    assert w.grad.device == there
    assert w.grad.tolist() == [1, 4, 9]
    back = (x.to(there) * 2).to(away) + x
    (gradient,) = vkml.grad(back.sum(), [x])
    assert gradient.tolist() == [3, 3, 3]


def test_second_gradients_cross_devices(away: object) -> None:
    there = OTHERS[0] if away == vkml.cpu else vkml.cpu
    x = floats([2, 3], away, requires_grad=True)
    (first,) = vkml.grad((x.to(there) ** 3).sum(), [x], create_graph=True)
    assert first.tolist() == [12, 27]
    (second,) = vkml.grad(first.sum(), [x])
    assert second.tolist() == [12, 18]


def test_a_copy_on_another_device_without_gradients_keeps_nothing() -> None:
    alive = live_nodes()
    x = floats([1, 2], vkml.cpu)
    moved = (x * 2).to(OTHERS[0])
    assert not moved.requires_grad
    assert live_nodes() - alive <= 2
    with vkml.no_grad():
        leaf = floats([1], vkml.cpu, requires_grad=True)
        assert not leaf.to(OTHERS[0]).requires_grad


def test_a_gradient_on_another_device_or_of_another_dtype_is_refused() -> None:
    x = floats([1, 2], vkml.cpu, requires_grad=True)
    with pytest.raises(vkml.DeviceError, match=rf"\[grad\].*{OTHERS[0]}.*cpu"):
        x.grad = vkml.ones(2, device=OTHERS[0])
    with pytest.raises(vkml.DTypeError, match=r"\[grad\].*float64.*float32"):
        x.grad = vkml.ones(2, dtype=vkml.float64)
    with pytest.raises(vkml.DTypeError, match=r"\[grad\].*int32"):
        x.grad = vkml.ones(2, dtype=vkml.int32)
    assert x.grad is None
    with pytest.raises(vkml.DeviceError, match=rf"\[backward\].*{OTHERS[0]}.*cpu"):
        (x * 2).backward(vkml.ones(2, device=OTHERS[0]))
    assert x.grad is None
    (x * 2).backward(vkml.ones(2, dtype=vkml.float64))
    assert exact(x.grad).tolist() == [2, 2]


@pytest.mark.parametrize("make", [vkml.optim.SGD, vkml.optim.Adam])
def test_one_optimizer_updates_parameters_of_two_devices(make: object, away: object) -> None:
    there = OTHERS[0] if away == vkml.cpu else vkml.cpu
    first = vkml.nn.Linear(2, 2).to(away)
    second = vkml.nn.Linear(2, 1).to(there)
    optimizer = make([*first.parameters(), *second.parameters()], lr=0.1)
    before = [p.tolist() for p in (first.bias, second.bias)]
    for _ in range(2):
        optimizer.zero_grad()
        second(first(vkml.ones(1, 2, device=away)).to(there)).sum().backward()
        optimizer.step()
    assert first.bias.device == away
    assert second.bias.device == there
    assert all(a != b.tolist() for a, b in zip(before, (first.bias, second.bias), strict=True))


def test_tensors_of_two_devices_are_computed_device_by_device(away: object) -> None:
    there = OTHERS[0] if away == vkml.cpu else vkml.cpu
    x, y = floats([1, 2], away) * 2, floats([3, 4], there) + 1
    with pytest.raises(vkml.DeviceError):
        vkml.realize([x, y])
    vkml.realize_by_device([x, y])
    assert x.is_computed
    assert y.is_computed
    assert (x.tolist(), y.tolist()) == ([2, 4], [4, 5])


def test_indices_of_another_device_are_moved(away: object) -> None:
    """`x[randperm(n)]` works wherever the order was drawn."""
    x = floats([[1, 2], [3, 4], [5, 6]], away)
    order = vkml.tensor([2, 0])
    mask = vkml.tensor([True, False, True])
    assert x[order].tolist() == [[5, 6], [1, 2]]
    assert x[mask].tolist() == [[1, 2], [5, 6]]
    assert x[order, vkml.tensor([0, 1])].tolist() == [5, 2]
    x[order] += 10
    assert x.tolist() == [[11, 12], [3, 4], [15, 16]]
    x[mask] = 0
    assert x.tolist() == [[0, 0], [3, 4], [0, 0]]
    x[mask, 1] = floats([7, 8], away)
    assert x.tolist() == [[0, 7], [3, 4], [0, 8]]
    assert order.type_as(x).device == away
