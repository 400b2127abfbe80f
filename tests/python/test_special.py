"""vkml.special and vkml.windows against PyTorch and SciPy, value and gradient."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special

import vkml
from checking import assert_close, check, exact, inputs
from torch_agreement import torch
from vkml import special, windows

X = inputs((41,), -1, 1)
POLYNOMIALS: dict[str, Callable[..., Any]] = {
    "chebyshev_polynomial_t": scipy.special.eval_chebyt,
    "chebyshev_polynomial_u": scipy.special.eval_chebyu,
    "hermite_polynomial_h": scipy.special.eval_hermite,
    "hermite_polynomial_he": scipy.special.eval_hermitenorm,
    "laguerre_polynomial_l": scipy.special.eval_laguerre,
    "legendre_polynomial_p": scipy.special.eval_legendre,
    "shifted_chebyshev_polynomial_t": scipy.special.eval_sh_chebyt,
    "shifted_chebyshev_polynomial_u": scipy.special.eval_sh_chebyu,
}


def half_angles(function: Callable[..., Any]) -> Callable[..., Any]:
    """The third kind of Chebyshev's polynomials with the cosine, the fourth with the sine."""
    return lambda n, x: function((n + 0.5) * np.arccos(x)) / function(np.arccos(x) / 2)


POLYNOMIALS |= {
    "chebyshev_polynomial_v": half_angles(np.cos),
    "chebyshev_polynomial_w": half_angles(np.sin),
    "shifted_chebyshev_polynomial_v": lambda n, x: half_angles(np.cos)(n, 2 * x - 1),
    "shifted_chebyshev_polynomial_w": lambda n, x: half_angles(np.sin)(n, 2 * x - 1),
}


@pytest.mark.parametrize("n", [0, 1, 2, 5, 9])
@pytest.mark.parametrize("name", POLYNOMIALS)
def test_polynomials(name: str, n: int, device: object) -> None:
    # Away from the ends, where the half angles divide by 0.
    x = (X * 0.45 + 0.5 if name.startswith("shifted") else X * 0.9).astype(np.float32)
    function = getattr(special, name)
    if n > 0:
        check(lambda t: function(t, n), lambda a: POLYNOMIALS[name](n, a), x, device, 64)
    assert_close(function(vkml.tensor(x, device=device), n), POLYNOMIALS[name](n, x), 64)


def test_polynomials_of_no_degree() -> None:
    x = vkml.tensor(X)
    assert not exact(special.legendre_polynomial_p(x, -1)).any()
    with pytest.raises(vkml.ArgumentError, match=r"\[legendre_polynomial_p\] n is a tensor"):
        special.legendre_polynomial_p(x, vkml.tensor(2))


def test_spherical_bessel(device: object) -> None:
    x = inputs((33,), -9, 9)
    check(special.spherical_bessel_j0, lambda a: np.sinc(a / np.pi), x, device)
    assert special.spherical_bessel_j0(vkml.zeros(1, device=device)).item() == 1.0


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


def test_names_are_pytorchs(device: object) -> None:
    for name in special.__all__:
        assert hasattr(torch.special, name)
        assert getattr(special, name).__doc__
    x = vkml.tensor(X, device=device)
    for name in ("modified_bessel_i0", "modified_bessel_i1"):
        wanted = getattr(torch.special, name)(torch.tensor(X, dtype=torch.float64))
        assert_close(getattr(special, name)(x), wanted.numpy(), 8)
    wanted = torch.special.multigammaln(torch.tensor(X, dtype=torch.float64) + 3, 3)
    assert_close(special.multigammaln(x + 3, 3), wanted.numpy(), 32)


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
