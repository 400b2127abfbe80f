"""One specification for every operator that is not a row of the elementwise table.

A case is a function of tensors, the same in NumPy, and the arrays for both. Floating arrays are
float32 for vkML and float64 for NumPy.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special
from numpy.lib.stride_tricks import sliding_window_view

import vkml
from arrangement_cases import ARRANGEMENT_CASES
from attention_cases import ATTENTION_CASES
from case import Array, Case, small
from checking import inputs
from image_cases import IMAGE_CASES
from ordering_cases import ORDERING_CASES
from product_cases import PRODUCT_CASES
from selection_cases import SELECTION_CASES


def _views() -> list[Case]:
    x = small(2, 3, 4)
    thin = small(1, 3, 1, 2)
    cases = [
        ("reshape", lambda t: vkml.reshape(t, (4, -1)), lambda a: a.reshape(4, -1), x),
        (
            "reshape",
            lambda t: t.permute(2, 0, 1).reshape(-1),
            lambda a: a.transpose(2, 0, 1).ravel(),
            x,
        ),
        ("permute", lambda t: vkml.permute(t, (2, 0, 1)), lambda a: a.transpose(2, 0, 1), x),
        ("transpose", lambda t: vkml.transpose(t, 0, -1), lambda a: a.swapaxes(0, 2), x),
        ("squeeze", lambda t: vkml.squeeze(t), np.squeeze, thin),
        ("squeeze", lambda t: vkml.squeeze(t, 2), lambda a: a.squeeze(2), thin),
        ("unsqueeze", lambda t: vkml.unsqueeze(t, -1), lambda a: a[..., None], x),
        ("flatten", lambda t: vkml.flatten(t, 1), lambda a: a.reshape(len(a), 12), x),
        (
            "broadcast_to",
            lambda t: vkml.broadcast_to(t, (2, 3, 5, 2)),
            lambda a: np.broadcast_to(a, (2, 3, 5, 2)),
            thin,
        ),
        ("contiguous", lambda t: vkml.contiguous(t.transpose(0, 2)), lambda a: a.swapaxes(0, 2), x),
        ("getitem", lambda t: t[1, ::-1, None, 1:3], lambda a: a[1, ::-1, None, 1:3], x),
        ("getitem", lambda t: t[..., -1], lambda a: a[..., -1], x),
        ("getitem", lambda t: t[0:0], lambda a: a[0:0], x),
    ]
    return [
        Case(name, function, reference, [array], 0, label=str(i))
        for i, (name, function, reference, array) in enumerate(cases)
    ]


def _assembly() -> list[Case]:
    a, b, c = small(2, 3), inputs((2, 3), 2, 4), inputs((1, 3), 4, 6)
    padding = (1, 2, 0, 3)
    return [
        Case(
            "cat",
            lambda x, y: vkml.cat([x, y, x], dim=-1),
            lambda x, y: np.concatenate([x, y, x], -1),
            [a, b],
            0,
        ),
        Case(
            "concat",
            lambda x, y: vkml.concat([x, y], axis=0),
            lambda x, y: np.concatenate([x, y], 0),
            [a, c],
            0,
        ),
        Case(
            "stack", lambda x, y: vkml.stack([x, y], 1), lambda x, y: np.stack([x, y], 1), [a, b], 0
        ),
        Case("split", lambda x: vkml.split(x, 2, 1)[1], lambda x: x[:, 2:], [a], 0),
        Case(
            "split",
            lambda x: vkml.split(x, [1, 2], 1)[1],
            lambda x: x[:, 1:],
            [a],
            0,
            label="sizes",
        ),
        Case("chunk", lambda x: vkml.chunk(x, 2, 1)[0], lambda x: x[:, :2], [a], 0),
        Case(
            "pad",
            lambda x: vkml.pad(x, padding, value=7.0),
            lambda x: np.pad(x, ((0, 3), (1, 2)), constant_values=7),
            [a],
            0,
        ),
        Case(
            "pad",
            lambda x: vkml.pad(x, (-1, 1)),
            lambda x: np.pad(x[:, 1:], ((0, 0), (0, 1))),
            [a],
            0,
            label="crop",
        ),
    ]


def _log_softmax(a: Array, axis: int) -> Array:
    """NaN all over a line that holds an infinity: there is no share of it."""
    shifted = a - a.max(axis=axis, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=axis, keepdims=True))


AXES: list[Any] = [None, 0, -1, (0, 2), (1,), (0, 1, 2)]


def _along(function: Callable[..., Any], axes: Any, keepdim: bool) -> Callable[..., Any]:
    return lambda a: function(a, axis=axes, keepdims=keepdim)


def _reductions() -> list[Case]:
    x = small(3, 4, 5)
    positive = inputs((3, 4, 5), 0.5, 1.5)
    truths = small(3, 4, 5) > 1
    smooth = {
        "sum": np.sum,
        "mean": np.mean,
        "prod": np.prod,
        "amax": np.max,
        "amin": np.min,
        "logsumexp": scipy.special.logsumexp,
        "var": lambda a, axis, keepdims: np.var(a, axis=axis, keepdims=keepdims, ddof=1),
        "std": lambda a, axis, keepdims: np.std(a, axis=axis, keepdims=keepdims, ddof=1),
    }
    cases = []
    for name, reference in smooth.items():
        for axes in AXES:
            for keepdim in (False, True):
                function = getattr(vkml, name)
                exact = name in ("amax", "amin")
                cases.append(
                    Case(
                        name,
                        lambda t, f=function, a=axes, k=keepdim: f(t, dim=a, keepdim=k),
                        _along(reference, axes, keepdim),
                        [positive if name == "prod" else x],
                        0 if exact else 16,
                        label=f"{axes}-{keepdim}",
                    )
                )
    for name, reference in {"any": np.any, "all": np.all}.items():
        for axes in AXES:
            function = getattr(vkml, name)
            cases.append(
                Case(
                    name,
                    lambda t, f=function, a=axes: f(t, axis=a),
                    _along(reference, axes, False),
                    [truths],
                    0,
                    False,
                    str(axes),
                )
            )
    for name, reference in {"argmax": np.argmax, "argmin": np.argmin}.items():
        for axis in (None, 0, 1, -1):
            function = getattr(vkml, name)
            cases.append(
                Case(
                    name,
                    lambda t, f=function, a=axis: f(t, dim=a),
                    lambda a, f=reference, i=axis: f(a, axis=i),
                    [x],
                    0,
                    False,
                    str(axis),
                )
            )
    for name, reference in {"max": np.max, "min": np.min}.items():
        function = getattr(vkml, name)
        cases += [
            Case(
                name, lambda t, f=function: f(t), lambda a, f=reference: f(a), [x], 0, label="all"
            ),
            Case(
                name,
                lambda t, f=function: f(t, dim=1).values,
                lambda a, f=reference: f(a, axis=1),
                [x],
                0,
                label="values",
            ),
            Case(
                name,
                lambda t, f=function: f(t, axis=1),
                lambda a, f=reference: f(a, axis=1),
                [x],
                0,
                label="axis",
            ),
        ]
    for axis in (0, 1, -1):
        cases += [
            Case(
                "softmax",
                lambda t, i=axis: vkml.softmax(t, i),
                lambda a, i=axis: scipy.special.softmax(a, i),
                [x],
                label=str(axis),
            ),
            Case(
                "log_softmax",
                lambda t, i=axis: vkml.log_softmax(t, i),
                lambda a, i=axis: _log_softmax(a, i),
                [x],
                label=str(axis),
            ),
        ]
    return cases


MATMUL_SHAPES = [
    ((3,), (3,)),
    ((3,), (3, 4)),
    ((2, 3), (3,)),
    ((2, 3), (3, 4)),
    ((1, 1), (1, 1)),
    ((5, 2, 3), (3, 4)),
    ((2, 3), (5, 3, 4)),
    ((5, 2, 3), (5, 3, 4)),
    ((2, 1, 2, 3), (4, 3, 2)),
    ((2, 3, 2, 4), (2, 3, 4, 1)),
    ((3,), (2, 3, 2)),
    ((17, 33), (33, 9)),
    ((2, 0), (0, 3)),
    ((0, 3), (3, 2)),
]


def _products() -> list[Case]:
    cases = [
        Case("matmul", vkml.matmul, np.matmul, [small(*a), inputs(b, -1, 1)], 16, label=f"{a}@{b}")
        for a, b in MATMUL_SHAPES
    ]
    square = [small(4, 6), inputs((4, 6), -1, 1)]
    cases += [
        Case("matmul", lambda a, b: vkml.matmul(a.T, b), lambda a, b: a.T @ b, square, label="a.T"),
        Case("matmul", lambda a, b: a @ b.T, lambda a, b: a @ b.T, square, label="b.T"),
        Case(
            "matmul", lambda a, b: (a.T @ b).T, lambda a, b: (a.T @ b).T, square, label="(a.T b).T"
        ),
    ]
    return cases


def _pair(value: Any) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else value


def conv2d_reference(
    x: Array,
    w: Array,
    bias: Array | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Array:
    """Windows of the padded input times the kernel, group by group."""
    (sh, sw), (ph, pw), (dh, dw) = _pair(stride), _pair(padding), _pair(dilation)
    x = np.pad(x, ((0, 0), (0, 0), (ph, ph), (pw, pw)))
    extent = (dh * (w.shape[2] - 1) + 1, dw * (w.shape[3] - 1) + 1)
    windows = sliding_window_view(x, extent, axis=(2, 3))[:, :, ::sh, ::sw, ::dh, ::dw]
    parts = [
        np.einsum("nchwij,ocij->nohw", part, kernel)
        for part, kernel in zip(np.split(windows, groups, 1), np.split(w, groups, 0), strict=True)
    ]
    y = np.concatenate(parts, 1)
    return y if bias is None else y + bias[:, None, None]


def _pooling_windows(
    x: Array, kernel: Any, stride: Any, padding: Any, dilation: Any, fill: float
) -> Array:
    (kh, kw), (sh, sw), (ph, pw), (dh, dw) = map(_pair, (kernel, stride, padding, dilation))
    x = np.pad(x, ((0, 0), (0, 0), (ph, ph), (pw, pw)), constant_values=fill)
    extent = (dh * (kh - 1) + 1, dw * (kw - 1) + 1)
    return sliding_window_view(x, extent, axis=(2, 3))[:, :, ::sh, ::sw, ::dh, ::dw]


CONVOLUTIONS: list[dict[str, Any]] = [
    {},
    {"stride": 2, "padding": 1},
    {"padding": (2, 0), "dilation": (1, 2)},
    {"stride": (1, 3), "padding": (0, 1)},
    {"groups": 2, "padding": 1},
    {"groups": 4, "stride": 2},
]


def _convolutions() -> list[Case]:
    x = small(2, 4, 6, 7)
    cases = []
    for options in CONVOLUTIONS:
        w = inputs((4, 4 // options.get("groups", 1), 3, 2), -1, 1)
        cases.append(
            Case(
                "conv2d",
                lambda a, b, c, o=options: vkml.conv2d(a, b, c, **o),
                lambda a, b, c, o=options: conv2d_reference(a, b, c, **o),
                [x, w, inputs((4,), -1, 1)],
                32,
                label=str(options),
            )
        )
    pools: list[dict[str, Any]] = [
        {"kernel_size": 2},
        {"kernel_size": 3, "stride": 2, "padding": 1},
        {"kernel_size": (2, 3), "stride": (1, 2), "padding": (1, 0)},
    ]
    for options in pools:
        kernel, padding = options["kernel_size"], options.get("padding", 0)
        stride = options.get("stride", kernel)
        cases.append(
            Case(
                "max_pool2d",
                lambda a, o=options: vkml.max_pool2d(a, **o),
                lambda a, k=kernel, s=stride, p=padding: _pooling_windows(
                    a, k, s, p, 1, -np.inf
                ).max((-1, -2)),
                [x],
                0,
                label=str(options),
            )
        )
        cases.append(
            Case(
                "avg_pool2d",
                lambda a, o=options: vkml.avg_pool2d(a, **o),
                lambda a, k=kernel, s=stride, p=padding: _pooling_windows(a, k, s, p, 1, 0).mean(
                    (-1, -2)
                ),
                [x],
                label=str(options),
            )
        )
        cases.append(
            Case(
                "avg_pool2d",
                lambda a, o=options: vkml.avg_pool2d(a, count_include_pad=False, **o),
                lambda a, k=kernel, s=stride, p=padding: (
                    _pooling_windows(a, k, s, p, 1, 0).sum((-1, -2))
                    / _pooling_windows(np.ones_like(a), k, s, p, 1, 0).sum((-1, -2))
                ),
                [x],
                label=f"{options}-without padding",
            )
        )
    cases.append(
        Case(
            "max_pool2d",
            lambda a: vkml.max_pool2d(a, 2, stride=1, padding=1, dilation=2),
            lambda a: _pooling_windows(a, 2, 1, 1, 2, -np.inf).max((-1, -2)),
            [x],
            0,
            label="dilated",
        )
    )
    return cases


def _scatter_add(base: Array, index: Array, source: Array, axis: int) -> Array:
    result = base.copy()
    for position in np.ndindex(index.shape):
        target = list(position)
        target[axis] = index[position]
        result[tuple(target)] += source[position]
    return result


def _indexing() -> list[Case]:
    x = small(4, 5)
    index = np.array([[0, 3, 3], [1, 0, 2]], dtype=np.int64)
    rows = np.array([3, 0, 0, -1], dtype=np.int32)
    table = np.array([[1, 0, 3], [3, 3, 2]], dtype=np.int64)
    source = inputs((2, 3), 1, 2)
    return [
        Case(
            "gather",
            lambda t, i: vkml.gather(t, 0, i),
            lambda a, i: np.take_along_axis(a[:, :3], i, 0),
            [x, index],
            0,
            label="axis 0",
        ),
        Case(
            "gather",
            lambda t, i: vkml.gather(t, 1, i),
            lambda a, i: np.take_along_axis(a[:2], i, 1),
            [x, index],
            0,
            label="axis 1",
        ),
        Case(
            "scatter_add",
            lambda t, i, s: vkml.scatter_add(t, 0, i, s),
            lambda a, i, s: _scatter_add(a, i, s, 0),
            [x, index, source],
            2,
            label="axis 0",
        ),
        Case(
            "scatter_add",
            lambda t, i, s: vkml.scatter_add(t, 1, i, s),
            lambda a, i, s: _scatter_add(a, i, s, 1),
            [x, index, source],
            2,
            label="axis 1",
        ),
        Case(
            "index_select",
            lambda t, i: vkml.index_select(t, 0, i),
            lambda a, i: a[i],
            [x, np.abs(rows)],
            0,
        ),
        Case(
            "take",
            lambda t, i: vkml.take(t, i, axis=1),
            lambda a, i: np.take(a, i, 1),
            [x, rows],
            0,
            label="axis",
        ),
        Case(
            "take",
            lambda t, i: vkml.take(t, i),
            lambda a, i: np.take(a, i),
            [x, rows],
            0,
            label="flat",
        ),
        Case("getitem", lambda t, i: t[i], lambda a, i: a[i], [x, table], 0, label="indices"),
        Case("embedding", lambda i, w: vkml.embedding(i, w), lambda i, w: w[i], [table, x], 0),
    ]


def _normalized(a: Array, axes: Any, epsilon: float = 1e-5) -> Array:
    variance = a.var(axis=axes, keepdims=True)
    return (a - a.mean(axis=axes, keepdims=True)) / np.sqrt(variance + epsilon)


def _cross_entropy(
    logits: Array,
    target: Array,
    reduction: str = "mean",
    ignore: int = -100,
    smoothing: float = 0.0,
) -> Array:
    log_p = np.moveaxis(_log_softmax(logits, 1), 1, -1)
    valid = target != ignore
    chosen = np.take_along_axis(log_p, np.where(valid, target, 0)[..., None], -1)[..., 0]
    losses = -chosen
    if smoothing > 0:  # a share of 0 of an infinite loss is not there
        losses = (1 - smoothing) * losses - smoothing * log_p.mean(-1)
    rows = np.where(valid, losses, 0)
    if reduction == "none":
        return rows
    return rows.sum() / (valid.sum() if reduction == "mean" else 1)


def _networks() -> list[Case]:
    x = small(3, 4, 5)
    weight, bias = inputs((4, 5), 0.5, 1.5), inputs((4, 5), -1, 1)
    logits = inputs((6, 5), -3, 3)
    target = np.array([0, 4, 2, 2, 1, 3])
    some = np.array([0, -100, 2, -100, 1, 3])
    images, labels = inputs((2, 3, 4), -3, 3), np.array([[0, 1, 2, 2], [1, 1, 0, 2]])
    entropies: list[tuple[Array, Array, dict[str, Any], dict[str, Any]]] = [
        (logits, target, {}, {}),
        (logits, target, {"reduction": "sum"}, {"reduction": "sum"}),
        (logits, some, {"reduction": "none"}, {"reduction": "none"}),
        (logits, some, {}, {}),
        (logits, some, {"label_smoothing": 0.1}, {"smoothing": 0.1}),
        (logits, target, {"ignore_index": 2}, {"ignore": 2}),
        (images, labels, {}, {}),
    ]
    cases = [
        Case(
            "cross_entropy",
            lambda a, t, o=options: vkml.cross_entropy(a, t, **o),
            lambda a, t, o=words: _cross_entropy(a, t, **o),
            [values, classes],
            label=str(i),
        )
        for i, (values, classes, options, words) in enumerate(entropies)
    ]
    return [
        *cases,
        Case(
            "layer_norm",
            lambda t, w, b: vkml.layer_norm(t, (4, 5), w, b),
            lambda a, w, b: _normalized(a, (1, 2)) * w + b,
            [x, weight, bias],
            32,
        ),
        Case(
            "layer_norm",
            lambda t: vkml.layer_norm(t, 5),
            lambda a: _normalized(a, 2),
            [x],
            32,
            label="plain",
        ),
        Case(
            "normalize",
            lambda t: vkml.normalize(t, (0, 2), 1e-3),
            lambda a: _normalized(a, (0, 2), 1e-3),
            [x],
            32,
        ),
    ]


CASES: list[Case] = [
    *_views(),
    *_assembly(),
    *_reductions(),
    *_products(),
    *_convolutions(),
    *_indexing(),
    *_networks(),
    *ARRANGEMENT_CASES,
    *ATTENTION_CASES,
    *IMAGE_CASES,
    *ORDERING_CASES,
    *PRODUCT_CASES,
    *SELECTION_CASES,
]
