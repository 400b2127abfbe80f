"""The functions of vkml.special, for comparison with PyTorch.

Values of polynomials are compared with NumPy's coefficients or the closed form in angles, which
PyTorch can differentiate; its own polynomials it cannot. The rows of the elementwise table among
these functions have their own tests at many more points.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special
from numpy import polynomial

from checking import inputs
from function_case import Array, FunctionCase

SPACE = "special"
DEGREES = (5, 0, 1, 2, 9)
X = inputs((41,), -0.9, 0.9)

# Coefficients of x^k from those of a family.
COEFFICIENTS: dict[str, Callable[..., Array]] = {
    "chebyshev_polynomial_t": polynomial.chebyshev.cheb2poly,
    "hermite_polynomial_h": polynomial.hermite.herm2poly,
    "hermite_polynomial_he": polynomial.hermite_e.herme2poly,
    "laguerre_polynomial_l": polynomial.laguerre.lag2poly,
    "legendre_polynomial_p": polynomial.legendre.leg2poly,
}


def _by_coefficients(name: str, n: int) -> Callable[..., Any]:
    coefficients = COEFFICIENTS[name]([0] * n + [1])

    def reference(torch: Any, x: Any) -> Any:
        total = x * 0 + coefficients[-1]
        for coefficient in coefficients[-2::-1]:
            total = total * x + coefficient
        return total

    return reference


# Of torch, the angle and the degree, for cos(angle).
ANGLES: dict[str, Callable[..., Any]] = {
    "chebyshev_polynomial_t": lambda torch, t, n: torch.cos(n * t),
    "chebyshev_polynomial_u": lambda torch, t, n: torch.sin((n + 1) * t) / torch.sin(t),
    "chebyshev_polynomial_v": lambda torch, t, n: torch.cos((n + 0.5) * t) / torch.cos(t / 2),
    "chebyshev_polynomial_w": lambda torch, t, n: torch.sin((n + 0.5) * t) / torch.sin(t / 2),
}


def _by_angles(name: str, n: int, shifted: bool) -> Callable[..., Any]:
    def reference(torch: Any, x: Any) -> Any:
        angle = torch.arccos(2 * x - 1 if shifted else x)
        return ANGLES[name](torch, angle, n)

    return reference


def _polynomials() -> list[FunctionCase]:
    cases = []
    for n in DEGREES:
        references = {name: (_by_coefficients(name, n), X) for name in COEFFICIENTS}
        for name in ANGLES:
            references.setdefault(name, (_by_angles(name, n, False), X))
            # Away from the ends, where the angles divide by 0.
            references[f"shifted_{name}"] = (_by_angles(name, n, True), X * 0.5 + 0.5)
        cases += [
            FunctionCase(
                SPACE,
                name,
                [array],
                {"n": n},
                reference=reference,
                half_units=16,
                double_units=512,
                label=f"degree {n}",
            )
            for name, (reference, array) in references.items()
        ]
    return cases


def _hurwitz(torch: Any, s: Any, q: Any) -> Any:
    """Sixty terms and the first of Euler's and Maclaurin's corrections (NIST Handbook 25.11.5)."""
    terms = torch.arange(60, dtype=s.dtype)
    total = ((q[..., None] + terms) ** -s[..., None]).sum(-1)
    end = q + 60
    total = total + end ** (1 - s) / (s - 1) + end**-s / 2 + s * end ** (-s - 1) / 12
    return total - s * (s + 1) * (s + 2) * end ** (-s - 3) / 720


# name: (low, high) of the points.
POINTS: dict[str, tuple[float, float]] = {
    "digamma": (0.3, 9),
    "entr": (0.1, 3),
    "erf": (-3, 3),
    "erfc": (-3, 3),
    "erfcx": (-2, 5),
    "erfinv": (-0.9, 0.9),
    "exp2": (-4, 4),
    "expit": (-6, 6),
    "expm1": (-2, 2),
    "gammaln": (0.3, 9),
    "i0": (-4, 4),
    "i0e": (0.3, 9),
    "i1": (0.5, 4),
    "i1e": (0.5, 9),
    "log1p": (-0.8, 4),
    "log_ndtr": (-6, 4),
    "logit": (0.1, 0.9),
    "ndtr": (-4, 4),
    "ndtri": (0.05, 0.95),
    "psi": (0.3, 9),
    "sinc": (-4, 4),
}
LINES = inputs((3, 5), -2, 2)
CONSTANT = np.ones((2, 4), np.float32)


def _polygamma(torch: Any, order: int, x: Any) -> Any:
    """SciPy's polygamma functions, lgamma as order -1: PyTorch's trigamma has 9 digits."""

    class Polygamma(torch.autograd.Function):
        @staticmethod
        def forward(context: Any, x: Any, order: int) -> Any:
            context.save_for_backward(x)
            context.order = order
            values = x.numpy()
            if order < 0:
                return torch.as_tensor(scipy.special.gammaln(values))
            return torch.as_tensor(scipy.special.polygamma(order, values))

        @staticmethod
        def backward(context: Any, gradient: Any) -> Any:
            (x,) = context.saved_tensors
            return gradient * Polygamma.apply(x, context.order + 1), None

    return Polygamma.apply(x, order)


def _multigammaln(torch: Any, x: Any) -> Any:
    """Of three dimensions, by its definition."""
    logarithms = sum(_polygamma(torch, -1, x - j / 2) for j in range(3))
    return logarithms + 1.5 * np.log(np.pi)


def _sinc_of(torch: Any, x: Any) -> Any:
    return torch.sinc(x / torch.pi)


def _sinc_near_zero(torch: Any, x: Any) -> Any:
    """By its series: PyTorch's second derivative at 0 is NaN."""
    return 1 - (torch.pi * x) ** 2 / 6 + (torch.pi * x) ** 4 / 120


REFERENCES: dict[str, Callable[..., Any]] = {
    "gammaln": lambda torch, x: _polygamma(torch, -1, x),
    "digamma": lambda torch, x: _polygamma(torch, 0, x),
    "psi": lambda torch, x: _polygamma(torch, 0, x),
}


SPECIAL_CASES = [
    *_polynomials(),
    *(
        FunctionCase(
            SPACE,
            name,
            [inputs(shape, *ends)],
            reference=REFERENCES.get(name),
            double_units=512,
            label=label,
        )
        for name, ends in POINTS.items()
        for label, shape in (("", (29,)), ("0-d", ()), ("empty", (0, 3)))
    ),
    FunctionCase(SPACE, "logit", [inputs((9,), 0.2, 0.8)], {"eps": 0.1}, label="eps"),
    FunctionCase(
        SPACE, "sinc", [np.zeros((2,), np.float32)], reference=_sinc_near_zero, label="zero"
    ),
    FunctionCase(
        SPACE,
        "i1",
        [inputs((9,), 0.2, 1)],
        # At x / 1000, where the second derivative is 3 / 8 of that: a difference of what is near
        # 1 / 2 has no such digits. PyTorch's has none either; here stands the series.
        call=lambda m, x: m.i1(x * 1e-3) * 1e9,
        reference=lambda torch, x: 5e5 * x + x**3 / 16 + 1e-6 * x**5 / 384,
        dtypes=("float64", "float32"),
        label="near zero",
    ),
    *(
        FunctionCase(SPACE, name, [array], {"dim": -1}, label=label)
        for name in ("softmax", "log_softmax", "logsumexp")
        for label, array in (
            ("", LINES),
            ("constant", CONSTANT),
            ("one element", LINES[:, :1]),
            ("empty", LINES[:0]),
        )
    ),
    *(
        FunctionCase(
            SPACE,
            f"modified_bessel_{name}",
            [inputs((29,), 0.5, 4)],
            reference=lambda torch, x, n=name: getattr(torch.special, n)(x),
        )
        for name in ("i0", "i1")
    ),
    FunctionCase(SPACE, "spherical_bessel_j0", [inputs((33,), -9, 9)], reference=_sinc_of),
    FunctionCase(
        SPACE,
        "spherical_bessel_j0",
        [np.zeros((1,), np.float32)],
        reference=lambda torch, x: _sinc_near_zero(torch, x / torch.pi),
        label="zero",
    ),
    FunctionCase(SPACE, "multigammaln", [inputs((17,), 2, 8)], {"p": 3}, reference=_multigammaln),
    *(
        FunctionCase(
            SPACE,
            "polygamma",
            [inputs((17,), 0.5, 6)],
            call=lambda m, x, n=n: m.polygamma(n, x),
            reference=lambda torch, x, n=n: _polygamma(torch, n, x),
            label=f"order {n}",
        )
        for n in (0, 1, 2, 3)
    ),
    *(
        FunctionCase(
            SPACE,
            "round",
            [inputs((17,), -3, 3)],
            options,
            no_gradient="steps",
            label=" ".join(options),
        )
        for options in ({}, {"decimals": 1})
    ),
    FunctionCase(SPACE, "xlogy", [inputs((17,), -2, 2), inputs((17,), 0.2, 3)]),
    FunctionCase(
        SPACE,
        "xlogy",
        [np.zeros((2,), np.float32), inputs((2,), 0.2, 3)],
        label="zero",
    ),
    FunctionCase(SPACE, "xlog1py", [inputs((17,), -2, 2), inputs((17,), -0.5, 3)]),
    FunctionCase(
        SPACE,
        "xlog1py",
        [np.zeros((2,), np.float32), inputs((2,), 0.2, 3)],
        label="zero",
    ),
    FunctionCase(
        SPACE,
        "zeta",
        [inputs((40,), 1.3, 8), inputs((40,), 0.5, 8, seed=1)],
        reference=_hurwitz,
        half_units=8,
        double_units=256,
    ),
]
