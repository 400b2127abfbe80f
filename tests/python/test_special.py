"""Edges of vkml.special, and vkml.windows against PyTorch; `special_cases` has the values."""

import numpy as np
import pytest
import scipy.special

import vkml
from checking import assert_close, check, exact, inputs
from torch_agreement import torch
from vkml import special, windows

X = inputs((41,), -1, 1)


def test_polynomials_of_no_degree() -> None:
    x = vkml.tensor(X)
    assert not exact(special.legendre_polynomial_p(x, -1)).any()
    with pytest.raises(vkml.ArgumentError, match=r"\[legendre_polynomial_p\] n is a tensor"):
        special.legendre_polynomial_p(x, vkml.tensor(2))


def test_zeta(device: object) -> None:
    s, q = inputs((200,), 1.05, 12), inputs((200,), 0.3, 8, seed=1)
    check(special.zeta, scipy.special.zeta, [s, q], device, 64)
    x = vkml.tensor(s, device=device)
    assert_close(special.zeta(x, 1.0), scipy.special.zeta(s.astype(np.float64), 1.0), 64)
    if device == vkml.cpu:
        wide = special.zeta(vkml.tensor(s, dtype=vkml.float64), vkml.tensor(q, dtype=vkml.float64))
        expected = scipy.special.zeta(s.astype(np.float64), q.astype(np.float64))
        np.testing.assert_allclose(exact(wide), expected, rtol=2e-13)
    edges = vkml.tensor([1.0, 2.0, 0.5, 2.0, np.nan], device=device)
    offsets = vkml.tensor([1.0, 0.0, 1.0, -1.5, 1.0], device=device)
    found = exact(special.zeta(edges, offsets))
    np.testing.assert_array_equal(found, [np.inf, np.inf, np.nan, np.nan, np.nan])


def test_names_are_pytorchs() -> None:
    assert [name for name in special.__all__ if not hasattr(torch.special, name)] == []


@pytest.mark.parametrize("periodic", [True, False])
@pytest.mark.parametrize("length", [0, 1, 2, 7, 64])
@pytest.mark.parametrize("name", windows.__all__)
def test_windows(name: str, length: int, periodic: bool, device: object) -> None:
    expected = getattr(torch, name)(length, periodic, dtype=torch.float64)
    found = getattr(vkml, name)(length, periodic, device=device)
    assert found.device == device
    assert_close(found, expected.numpy(), 16)


def test_windows_of_other_shapes(device: object) -> None:
    expected = torch.hamming_window(9, False, 0.6, 0.4, dtype=torch.float64).numpy()
    assert_close(vkml.hamming_window(9, False, 0.6, 0.4, device=device), expected)
    expected = torch.kaiser_window(9, True, 5.0, dtype=torch.float64).numpy()
    assert_close(vkml.kaiser_window(9, True, 5.0, device=device), expected)
    assert vkml.hann_window(4, dtype=vkml.float16).dtype == vkml.float16
    with pytest.raises(vkml.ArgumentError, match=r"\[hann_window\] window_length is -1"):
        vkml.hann_window(-1)
    with pytest.raises(vkml.DTypeError, match=r"\[kaiser_window\] dtype"):
        vkml.kaiser_window(3, dtype=vkml.int32)
