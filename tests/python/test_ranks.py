"""vkml.ranks and vkml.real_numbers against PyTorch and NumPy, value and gradient."""

import math

import numpy as np
import pytest

import vkml
from checking import exact, inputs
from torch_agreement import assert_agrees, torch
from vkml import ranks, real_numbers

FEW = np.random.default_rng(2).integers(0, 4, (3, 7, 5))
HOLES = inputs((3, 8, 5), -2, 2)
HOLES[0, 2:5, 1] = np.nan
HOLES[:, 0, 3] = np.nan
HOLES[1, :, 2] = np.nan


@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_mode(dim: int, keepdim: bool, device: object) -> None:
    for array in (FEW, FEW.astype(np.float32), np.zeros_like(FEW)):
        found = vkml.mode(vkml.tensor(array, device=device), dim, keepdim)
        expected = torch.mode(torch.tensor(array), dim, keepdim)
        np.testing.assert_array_equal(exact(found.values), expected.values.numpy())
        places = exact(found.indices) if keepdim else np.expand_dims(exact(found.indices), dim)
        there = np.take_along_axis(array, places.astype(np.int64), dim)
        wanted = exact(found.values) if keepdim else np.expand_dims(exact(found.values), dim)
        np.testing.assert_array_equal(there, wanted)


def test_mode_of_little(device: object) -> None:
    assert vkml.mode(vkml.tensor(3.0, device=device)).values.item() == 3.0
    x = vkml.tensor([[1.0, 2.0, 2.0]], device=device, requires_grad=True)
    found = vkml.mode(x)
    assert found.indices.tolist() == [2]
    found.values.backward(vkml.ones(1, device=device))
    assert x.grad.tolist() == [[0.0, 0.0, 1.0]]
    with pytest.raises(vkml.ShapeError, match=r"\[mode\] of no elements"):
        vkml.mode(vkml.zeros(2, 0, device=device))


@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_nanmedian(dim: int, keepdim: bool, device: object) -> None:
    x = vkml.tensor(HOLES, device=device)
    found = vkml.nanmedian(x, dim, keepdim)
    expected = torch.nanmedian(torch.tensor(HOLES), dim, keepdim)
    np.testing.assert_array_equal(exact(found.values), expected.values.numpy())
    assert vkml.nanmedian(x).item() == torch.nanmedian(torch.tensor(HOLES)).item()


def test_gradient_of_nanmedian(device: object) -> None:
    x = vkml.tensor([[1.0, np.nan, 5.0, 3.0]], device=device, requires_grad=True)
    vkml.nanmedian(x, 1).values.sum().backward()
    assert x.grad.tolist() == [[0.0, 0.0, 0.0, 1.0]]
    assert math.isnan(vkml.nanmedian(vkml.zeros(0, device=device)).item())


@pytest.mark.parametrize("how", ["linear", "lower", "higher", "midpoint", "nearest"])
@pytest.mark.parametrize("q", [0.0, 0.3, 1.0, [0.25, 0.5]], ids=str)
@pytest.mark.parametrize("dim", [None, 0, 1])
def test_nanquantile(dim: int | None, q: object, how: str, device: object) -> None:
    for keepdim in (False, True):
        found = vkml.nanquantile(
            vkml.tensor(HOLES, device=device), q, dim, keepdim, interpolation=how
        )
        expected = torch.nanquantile(
            torch.tensor(HOLES, dtype=torch.float64),
            torch.tensor(q, dtype=torch.float64),
            dim,
            keepdim,
            interpolation=how,
        )
        np.testing.assert_allclose(exact(found), expected.numpy(), rtol=1e-6, atol=1e-6)


def test_arguments_of_nanquantile(device: object) -> None:
    x = vkml.ones(3, device=device)
    assert vkml.nanquantile(x, vkml.tensor(0.5)).item() == 1.0
    assert vkml.nanquantile(x, vkml.tensor([0.5, 1.0])).tolist() == [1.0, 1.0]
    with pytest.raises(vkml.ArgumentError, match=r"\[nanquantile\] q is \[1\.5\]"):
        vkml.nanquantile(x, 1.5)
    with pytest.raises(vkml.ArgumentError, match=r"\[nanquantile\] interpolation"):
        vkml.nanquantile(x, 0.5, interpolation="cubic")


NUMBERS = np.array([1.0, -1.0, 0.5, 0.75, 3.0, -1e30, 1e-30, 2.0**100, 0.1, 65504.0], np.float32)


@pytest.mark.parametrize("dtype", [vkml.float32, vkml.float16], ids=str)
def test_frexp(dtype: object, device: object) -> None:
    with np.errstate(over="ignore"):
        numbers = exact(vkml.tensor(NUMBERS).to(dtype))
    numbers = numbers[np.isfinite(numbers)]
    near = [2.0**k * (1 + sign * 2.0**-9) for k in range(-12, 13) for sign in (-1, 0, 1)]
    numbers = np.concatenate([numbers, near])
    numbers = exact(vkml.tensor(numbers).to(dtype))
    found = vkml.frexp(vkml.tensor(numbers, dtype=dtype, device=device))
    mantissa, exponent = np.frexp(numbers)
    np.testing.assert_array_equal(exact(found.mantissa), mantissa)
    np.testing.assert_array_equal(exact(found.exponent), exponent)
    assert found.exponent.dtype == vkml.int32


def test_frexp_where_there_is_no_exponent(device: object) -> None:
    numbers = [0.0, -0.0, np.inf, -np.inf, np.nan]
    mantissa, exponent = vkml.frexp(vkml.tensor(numbers, dtype=vkml.float32, device=device))
    np.testing.assert_array_equal(exact(mantissa), numbers)
    np.testing.assert_array_equal(np.signbit(exact(mantissa))[:4], np.signbit(numbers)[:4])
    assert exponent.tolist() == [0] * 5
    x = vkml.tensor([3.0, -0.1], device=device, requires_grad=True)
    vkml.frexp(x).mantissa.sum().backward()
    assert x.grad.tolist() == [0.25, 8.0]
    with pytest.raises(vkml.DTypeError, match=r"\[frexp\]"):
        vkml.frexp(vkml.arange(3))


def test_real_numbers(device: object) -> None:
    array = np.array([1.0, -2.0, 0.0, -np.inf, np.inf], np.float32)
    assert_agrees(vkml.angle, torch.angle, [array], device, gradients=False)
    assert_agrees(vkml.real, torch.real, [array[:3]], device)
    assert_agrees(vkml.conj, torch.conj, [array[:3]], device)
    x = vkml.tensor(array, device=device)
    assert math.isnan(vkml.angle(vkml.tensor(np.nan, device=device)).item())
    assert vkml.angle(vkml.tensor([-3, 3], device=device)).dtype == vkml.float32
    assert vkml.isreal(x).tolist() == [True] * 5
    assert not vkml.is_complex(x)
    assert vkml.is_signed(x)
    assert not vkml.is_signed(x > 0)


def test_all_are_documented() -> None:
    for name in (*ranks.__all__, *real_numbers.__all__):
        assert getattr(vkml, name).__doc__
