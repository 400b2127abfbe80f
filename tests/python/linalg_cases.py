"""The functions of vkml.linalg, for comparison with PyTorch.

Beside well-conditioned matrices stand those where a gradient divides by what may be 0: equal
eigenvalues and singular values, singular matrices, rows of zeros, one number. Results that are
unique up to signs are compared as what does not depend on them.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from checking import inputs
from function_case import Array, FunctionCase

SPACE = "linalg"
DOUBLE = ("float64", "float32")


def matrices(*shape: int, seed: int = 0) -> Array:
    """Well-conditioned matrices."""
    return inputs(shape, -1, 1, seed) + 2 * np.eye(*shape[-2:], dtype=np.float32)


def positive(*shape: int) -> Array:
    """Symmetric positive definite matrices."""
    m = matrices(*shape)
    return m @ np.swapaxes(m, -1, -2)


def symmetric(x: Any) -> Any:
    """The symmetric part, so that a gradient does not depend on which triangle is read."""
    return (x + x.mT) * 0.5


SQUARE, BATCH, SPD = matrices(3, 3), matrices(2, 3, 3), positive(2, 3, 3)
TALL, TALLS = inputs((4, 3), -1, 1), inputs((2, 5, 3), -1, 1)
RIGHT, VECTOR = inputs((2, 5, 2), -1, 1), inputs((3,), -1, 1)
WIDE = np.concatenate([SQUARE, VECTOR[:, None]], 1)
IDENTITY = np.eye(3, dtype=np.float32)
SINGULAR = np.array([[1, 2, 0], [2, 4, 1], [0, 0, 3]], dtype=np.float32)
EXCHANGE = np.array([[0, 1], [1, 0]], dtype=np.float32)
FACTOR = np.linalg.cholesky(SPD.astype(np.float64)).astype(np.float32)
ONE = np.array([[3.0]], dtype=np.float32)

# Functions of eigenvalues and singular values whose second derivative divides by differences.
BY_VALUES = ("eigh", "eigvalsh", "svd", "svdvals", "matrix_norm")
TURNING = "vectors of equal values turn by any amount"

# (function, what tells its calls apart, call, arrays): factorisations, on the CPU in f32 and f64.
FACTORISED: list[tuple[str, str, Callable[..., Any], list[Array]]] = [
    ("solve", "", lambda m, a, b: m.solve(a, b), [SQUARE, inputs((3, 2), -1, 1)]),
    ("solve", "vector", lambda m, a, b: m.solve(a, b), [SQUARE, VECTOR]),
    ("solve", "batch", lambda m, a, b: m.solve(a, b), [BATCH, inputs((3, 2), -1, 1)]),
    (
        "solve_triangular",
        "",
        lambda m, a, b: m.solve_triangular(a, b, upper=True),
        [SQUARE, inputs((3, 2), -1, 1)],
    ),
    (
        "solve_triangular",
        "from the right",
        lambda m, a, b: m.solve_triangular(a, b, upper=False, left=False, unitriangular=True),
        [SQUARE, inputs((2, 3), -1, 1)],
    ),
    ("inv", "", lambda m, a: m.inv(a), [BATCH]),
    ("inv", "one number", lambda m, a: m.inv(a), [ONE]),
    ("det", "", lambda m, a: m.det(a), [BATCH]),
    ("det", "singular", lambda m, a: m.det(a), [SINGULAR]),
    ("det", "zeros", lambda m, a: m.det(a), [np.zeros((2, 2), np.float32)]),
    ("det", "one number", lambda m, a: m.det(a), [ONE]),
    ("slogdet", "", lambda m, a: m.slogdet(a)[1], [BATCH]),
    ("cholesky", "", lambda m, a: m.cholesky(symmetric(a)), [SPD]),
    ("cholesky", "upper", lambda m, a: m.cholesky(symmetric(a), upper=True), [SPD]),
    ("cholesky", "one number", lambda m, a: m.cholesky(a), [ONE]),
    ("qr", "q", lambda m, a: m.qr(a)[0] ** 2, [TALLS]),
    ("qr", "r", lambda m, a: m.qr(a)[1] ** 2, [TALL]),
    ("qr", "wide", lambda m, a: m.qr(a)[1] ** 2, [WIDE]),
    ("eigh", "values", lambda m, a: m.eigh(symmetric(a))[0], [SPD]),
    ("eigh", "vectors", lambda m, a: m.eigh(symmetric(a))[1] ** 2, [SPD]),
    ("eigh", "equal values", lambda m, a: m.eigh(symmetric(a))[0].sum(), [IDENTITY]),
    ("eigvalsh", "", lambda m, a: m.eigvalsh(symmetric(a)), [SPD]),
    ("eigvalsh", "equal values", lambda m, a: m.eigvalsh(symmetric(a)).sum(), [IDENTITY]),
    ("svd", "values", lambda m, a: m.svd(a, full_matrices=False)[1], [TALLS]),
    ("svd", "left", lambda m, a: m.svd(a, full_matrices=False)[0] ** 2, [TALL]),
    ("svd", "right", lambda m, a: m.svd(a, full_matrices=False)[2] ** 2, [TALL]),
    ("svd", "wide", lambda m, a: m.svd(a, full_matrices=False)[2] ** 2, [TALL.T.copy()]),
    ("svd", "equal values", lambda m, a: m.svd(a)[1].sum(), [IDENTITY]),
    ("svdvals", "", lambda m, a: m.svdvals(a), [TALLS]),
    ("svdvals", "equal values", lambda m, a: m.svdvals(a).sum(), [IDENTITY]),
    ("svdvals", "one number", lambda m, a: m.svdvals(a), [ONE]),
    ("pinv", "", lambda m, a: m.pinv(a), [TALLS]),
    ("pinv", "wide", lambda m, a: m.pinv(a), [TALL.T.copy()]),
    ("pinv", "equal values", lambda m, a: m.pinv(a), [EXCHANGE]),
    ("lstsq", "", lambda m, a, b: m.lstsq(a, b)[0], [TALLS, RIGHT]),
    ("lstsq", "equal values", lambda m, a, b: m.lstsq(a, b)[0], [EXCHANGE, RIGHT[0, :2]]),
    ("cond", "", lambda m, a: m.cond(a), [BATCH]),
    ("matrix_norm", "nuc", lambda m, a: m.matrix_norm(a, "nuc"), [TALLS]),
    ("matrix_norm", "2", lambda m, a: m.matrix_norm(a, 2), [TALLS]),
    ("matrix_norm", "-2", lambda m, a: m.matrix_norm(a, -2, keepdim=True), [TALLS]),
    (
        "matrix_norm",
        "nuc of equal values",
        lambda m, a: m.matrix_norm(a, "nuc"),
        [IDENTITY],
    ),
    (
        "matrix_norm",
        "2 of equal values",
        lambda m, a: m.matrix_norm(a, 2),
        [np.diag([2, 1, 1]).astype(np.float32)],
    ),
    (
        "norm",
        "nuc",
        lambda m, a: m.norm(a, "nuc", dim=(1, 0), keepdim=True),
        [TALLS],
    ),
    ("matrix_power", "-2", lambda m, a: m.matrix_power(a, -2), [BATCH]),
    (
        "tensorinv",
        "",
        lambda m, a: m.tensorinv(a.reshape(2, 3, 6), ind=2),
        [matrices(6, 6)],
    ),
    (
        "tensorsolve",
        "",
        lambda m, a, b: m.tensorsolve(a.reshape(2, 3, 6), b.reshape(2, 3)),
        [matrices(6, 6), inputs((6,), -1, 1)],
    ),
]
# The same of products and sums, on every device in every floating dtype.
DIRECT: list[tuple[str, str, Callable[..., Any], list[Array]]] = [
    ("matrix_power", "0", lambda m, a: m.matrix_power(a, 0), [BATCH]),
    ("matrix_power", "1", lambda m, a: m.matrix_power(a, 1), [BATCH]),
    ("matrix_power", "5", lambda m, a: m.matrix_power(a, 5), [BATCH]),
    ("multi_dot", "", lambda m, a, v: m.multi_dot([v, a[0], a[1]]), [BATCH, VECTOR]),
    (
        "multi_dot",
        "four",
        lambda m, a, v: m.multi_dot([a[0].mT, a[1], a[0], v]),
        [TALLS[:, :3], VECTOR],
    ),
    ("norm", "", lambda m, a: m.norm(a), [TALLS]),
    ("norm", "1", lambda m, a: m.norm(a, 1, dim=1, keepdim=True), [TALLS]),
    ("norm", "fro", lambda m, a: m.norm(a, "fro", dim=(0, 2)), [TALLS]),
    ("norm", "zeros", lambda m, a: m.norm(a), [TALL * 0]),
    ("vector_norm", "", lambda m, a: m.vector_norm(a), [TALLS]),
    ("vector_norm", "3", lambda m, a: m.vector_norm(a, 3, dim=-1), [TALLS]),
    ("vector_norm", "inf", lambda m, a: m.vector_norm(a, float("inf"), dim=(0, 1)), [TALLS]),
    ("vector_norm", "-inf", lambda m, a: m.vector_norm(a, -float("inf"), dim=1), [TALLS]),
    ("vector_norm", "0", lambda m, a: m.vector_norm(a, 0, dim=1), [TALLS]),
    ("vector_norm", "zeros", lambda m, a: m.vector_norm(a, dim=1), [TALL * 0]),
    ("vector_norm", "one number", lambda m, a: m.vector_norm(a), [ONE[0, 0]]),
    ("matrix_norm", "fro", lambda m, a: m.matrix_norm(a), [TALLS]),
    *(
        ("matrix_norm", str(order), lambda m, a, p=order: m.matrix_norm(a, p), [TALLS])
        for order in (1, -1, float("inf"), -float("inf"))
    ),
    ("matrix_norm", "fro of zeros", lambda m, a: m.matrix_norm(a), [TALL * 0]),
    ("cross", "", lambda m, a, b: m.cross(a, b), [BATCH, BATCH[::-1].copy()]),
    ("cross", "dim", lambda m, a, b: m.cross(a, b, dim=1), [BATCH, BATCH[::-1].copy()]),
    ("diagonal", "", lambda m, a: m.diagonal(a), [TALLS]),
    ("diagonal", "offset", lambda m, a: m.diagonal(a, offset=1, dim1=0, dim2=2), [TALLS]),
    ("vander", "", lambda m, v: m.vander(v), [VECTOR]),
    ("vander", "N", lambda m, v: m.vander(v, N=4), [VECTOR]),
    ("vecdot", "", lambda m, a, b: m.vecdot(a, b), [BATCH, BATCH + 1]),
    ("vecdot", "dim", lambda m, a, b: m.vecdot(a, b, dim=0), [SQUARE, SQUARE + 1]),
    ("vecdot", "empty", lambda m, a, b: m.vecdot(a, b), [BATCH[..., :0], BATCH[..., :0]]),
    ("matmul", "", lambda m, a, b: m.matmul(a, b), [BATCH, BATCH + 1]),
    ("matmul", "vector", lambda m, a, b: m.matmul(a, b), [BATCH, VECTOR]),
    ("matmul", "empty", lambda m, a, b: m.matmul(a, b), [TALL[:, :0], TALL.T[:0].copy()]),
    *(
        ("matrix_exp", f"{scale}", lambda m, a: m.matrix_exp(a), [matrices(2, 3, 3) * scale])
        for scale in (np.float32(0), np.float32(0.01), np.float32(0.7))
    ),
]


def _by_factor(name: str, upper: bool) -> FunctionCase:
    factor = np.swapaxes(FACTOR, -1, -2).copy() if upper else FACTOR
    arrays = [RIGHT[:, :3], factor] if name == "cholesky_solve" else [factor]

    def triangle(x: Any) -> Any:
        return x.triu() if upper else x.tril()

    # PyTorch's functions are at its top, and take the gradient of both triangles together.
    return FunctionCase(
        SPACE,
        name,
        arrays,
        call=lambda m, *x: getattr(m, name)(*x[:-1], triangle(x[-1]), upper),
        reference=lambda torch, *x: getattr(torch, name)(*x[:-1], triangle(x[-1]), upper),
        dtypes=DOUBLE,
        on_cpu_alone=True,
        units=256,
        label="upper" if upper else "",
    )


LINALG_CASES = [
    *(
        FunctionCase(
            SPACE,
            name,
            arrays,
            call=call,
            dtypes=DOUBLE,
            on_cpu_alone=True,
            units=512,
            no_second=TURNING if "equal values" in label and name in BY_VALUES else "",
            label=label,
        )
        for name, label, call, arrays in FACTORISED
    ),
    *(
        FunctionCase(
            SPACE,
            name,
            arrays,
            call=call,
            units=256,
            half_units=16,
            no_second="norms have a kink at 0" if label.endswith("zeros") else "",
            label=label,
        )
        for name, label, call, arrays in DIRECT
    ),
    *(
        _by_factor(name, upper)
        for name in ("cholesky_solve", "cholesky_inverse")
        for upper in (False, True)
    ),
    FunctionCase(
        SPACE,
        "logdet",
        [SPD],
        reference=lambda torch, a: torch.logdet(a),
        dtypes=DOUBLE,
        on_cpu_alone=True,
        units=256,
    ),
    *(
        FunctionCase(
            SPACE,
            "cond",
            [SQUARE],
            {"p": order},
            # PyTorch's own gradients of these fail.
            reference=lambda torch, a, p=order: (
                torch.linalg.matrix_norm(a, p) * torch.linalg.matrix_norm(torch.linalg.inv(a), p)
            ),
            dtypes=DOUBLE,
            on_cpu_alone=True,
            units=512,
            label=str(order),
        )
        for order in (1, -1, np.inf, -np.inf, "fro", "nuc")
    ),
    FunctionCase(
        SPACE,
        "matrix_rank",
        [np.stack([SQUARE, np.outer(VECTOR, VECTOR)])],
        {"rtol": 1e-4},
        dtypes=DOUBLE,
        on_cpu_alone=True,
        no_gradient="ranks are whole numbers",
    ),
]
