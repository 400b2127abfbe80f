"""The activations of vkml.nn.functional, for comparison with PyTorch.

`test_activations` has the same calls at the points where formulas change, and at infinities.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from checking import inputs
from function_case import FunctionCase

SPACE = "nn.functional"

# Calls element by element: the function's name, what tells its calls apart, and the options.
POINTWISE: dict[str, dict[str, Any]] = {
    "relu": {},
    "relu6": {},
    "hardtanh": {},
    "hardtanh of a range": {"min_val": -2.0, "max_val": 0.5},
    "threshold": {"threshold": 0.5, "value": -3.0},
    "sigmoid": {},
    "hardsigmoid": {},
    "logsigmoid": {},
    "tanh": {},
    "silu": {},
    "mish": {},
    "hardswish": {},
    "gelu": {},
    "gelu by tanh": {"approximate": "tanh"},
    "leaky_relu": {"negative_slope": 0.2},
    "rrelu": {"lower": 0.1, "upper": 0.3},
    "elu": {"alpha": 0.7},
    "celu": {"alpha": 0.7},
    "selu": {},
    "softplus": {"beta": 2.0, "threshold": 3.0},
    "hardshrink": {},
    "softshrink": {},
    "tanhshrink": {},
    "softsign": {},
}
# Where PyTorch's gradients in double precision hold numbers of single precision.
FORMULAS: dict[str, Callable[..., Any]] = {
    "hardsigmoid": lambda torch, x: ((x + 3) / 6).clamp(0, 1),
    "celu": lambda torch, x: torch.where(x > 0, x, 0.7 * torch.expm1(x / 0.7)),
}
SHAPES: dict[str, tuple[int, ...]] = {"": (3, 7), "0-d": (), "empty": (0, 3)}
LINES = inputs((3, 6), -4, 4)


def _pointwise() -> list[FunctionCase]:
    cases = []
    for call, options in POINTWISE.items():
        name, _, rest = call.partition(" ")
        for shape, extents in SHAPES.items():
            label = " ".join(filter(None, (rest, shape)))
            array = inputs(extents, -4, 4)
            reference = FORMULAS.get(name)
            cases.append(
                FunctionCase(SPACE, name, [array], options, reference=reference, label=label)
            )
    return cases


def _along_a_line() -> list[FunctionCase]:
    """Softmax and its kin, of which a line may be constant, or one number."""
    arrays = {
        "": LINES,
        "constant": np.ones((2, 5), np.float32),
        "one element": LINES[:, :1],
        "far apart": LINES * 100,
        "empty": LINES[:0],
    }
    return [
        FunctionCase(SPACE, name, [array], {"dim": -1}, label=label)
        for name in ("softmax", "log_softmax", "softmin")
        for label, array in arrays.items()
    ]


def _gated(name: str, gate: str) -> FunctionCase:
    """PyTorch has `glu` alone."""

    def reference(torch: Any, x: Any) -> Any:
        values, gates = x.chunk(2, -1)
        return values * getattr(torch.nn.functional, gate)(gates)

    return FunctionCase(SPACE, name, [LINES], reference=reference)


ACTIVATION_CASES = [
    *_pointwise(),
    *_along_a_line(),
    _gated("reglu", "relu"),
    _gated("geglu", "gelu"),
    _gated("swiglu", "silu"),
    FunctionCase(SPACE, "glu", [LINES]),
    FunctionCase(SPACE, "glu", [LINES[:2]], {"dim": 0}, label="rows"),
    FunctionCase(SPACE, "prelu", [LINES, inputs((1,), 0.1, 0.5)]),
    FunctionCase(SPACE, "prelu", [LINES, inputs((6,), 0.1, 0.5)], label="channels"),
    FunctionCase(SPACE, "prelu", [LINES[0], inputs((1,), 0.1, 0.5)], label="1-d"),
]
