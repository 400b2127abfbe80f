"""Cases of operators that put elements in other places."""

from collections.abc import Callable
from typing import Any

import numpy as np

import vkml
from case import Array, Case, small
from checking import inputs

Row = tuple[str, Callable[..., Any], Callable[..., Any], Array]


def _cases(rows: list[Row]) -> list[Case]:
    return [
        Case(name, function, reference, [array], 0, label=str(i))
        for i, (name, function, reference, array) in enumerate(rows)
    ]


def _reordering() -> list[Case]:
    x, line = small(2, 3, 4), small(7)
    none = inputs((0, 3), 0, 1)
    return _cases(
        [
            ("flip", lambda t: vkml.flip(t, (0, 2)), lambda a: np.flip(a, (0, 2)), x),
            ("flip", lambda t: t.flip(-1), lambda a: np.flip(a, -1), x),
            ("flip", lambda t: vkml.flip(t), np.flip, x),
            ("fliplr", vkml.fliplr, np.fliplr, x),
            ("flipud", vkml.flipud, np.flipud, x),
            ("roll", lambda t: vkml.roll(t, 2, 1), lambda a: np.roll(a, 2, 1), x),
            ("roll", lambda t: t.roll((-1, 5), (0, 2)), lambda a: np.roll(a, (-1, 5), (0, 2)), x),
            ("roll", lambda t: vkml.roll(t, 5), lambda a: np.roll(a, 5), x),
            ("roll", lambda t: vkml.roll(t, 1, 0), lambda a: np.roll(a, 1, 0), none),
            *(
                ("rot90", lambda t, k=k: vkml.rot90(t, k), lambda a, k=k: np.rot90(a, k), x)
                for k in (-1, 0, 1, 2, 3)
            ),
            ("movedim", lambda t: vkml.movedim(t, 0, -1), lambda a: np.moveaxis(a, 0, -1), x),
            (
                "moveaxis",
                lambda t: t.moveaxis((0, 1), (2, 0)),
                lambda a: np.moveaxis(a, (0, 1), (2, 0)),
                x,
            ),
            ("swapaxes", lambda t: t.swapaxes(0, 2), lambda a: np.swapaxes(a, 0, 2), x),
            ("swapdims", lambda t: vkml.swapdims(t, 0, 1), lambda a: np.swapaxes(a, 0, 1), x),
            ("matrix_transpose", vkml.matrix_transpose, lambda a: a.swapaxes(-1, -2), x),
            ("expand_dims", lambda t: vkml.expand_dims(t, 1), lambda a: a[:, None], x),
            (
                "ravel",
                lambda t: vkml.ravel(t.transpose(0, 1)),
                lambda a: a.swapaxes(0, 1).ravel(),
                x,
            ),
            ("unflatten", lambda t: t.unflatten(2, (2, -1)), lambda a: a.reshape(2, 3, 2, 2), x),
            ("unbind", lambda t: vkml.unbind(t, 1)[2], lambda a: a[:, 2], x),
            ("narrow", lambda t: vkml.narrow(t, 2, 1, 2), lambda a: a[..., 1:3], x),
            ("select", lambda t: vkml.select(t, 1, -1), lambda a: a[:, -1], x),
            (
                "tensor.unfold",
                lambda t: t.unfold(0, 3, 2),
                lambda a: np.lib.stride_tricks.sliding_window_view(a, 3)[::2],
                line,
            ),
            (
                "tensor.unfold",
                lambda t: t.unfold(1, 2, 1),
                lambda a: np.lib.stride_tricks.sliding_window_view(a, 2, 1),
                x,
            ),
            (
                "squeeze",
                lambda t: t.squeeze((0, 3)),
                lambda a: a.squeeze((0, 3)),
                small(1, 2, 1, 1),
            ),
        ]
    )


def _repeating() -> list[Case]:
    x, line, one = small(2, 3), small(4), small(1)
    none = inputs((2, 0), 0, 1)
    return _cases(
        [
            ("tile", lambda t: vkml.tile(t, (2, 3)), lambda a: np.tile(a, (2, 3)), x),
            ("tile", lambda t: t.tile(2), lambda a: np.tile(a, 2), x),
            ("tile", lambda t: vkml.tile(t, (2, 1, 2)), lambda a: np.tile(a, (2, 1, 2)), x),
            ("tile", lambda t: vkml.tile(t, (0, 1)), lambda a: np.tile(a, (0, 1)), x),
            ("tile", lambda t: vkml.tile(t, (3, 2)), lambda a: np.tile(a, (3, 2)), none),
            ("tensor.repeat", lambda t: t.repeat(3, 1, 2), lambda a: np.tile(a, (3, 1, 2)), x),
            (
                "repeat_interleave",
                lambda t: vkml.repeat_interleave(t, 3, 1),
                lambda a: np.repeat(a, 3, 1),
                x,
            ),
            ("repeat_interleave", lambda t: t.repeat_interleave(2), lambda a: np.repeat(a, 2), x),
            (
                "repeat_interleave",
                lambda t: vkml.repeat_interleave(
                    t, vkml.tensor([2, 0, 1, 3], device=t.device), dim=0
                ),
                lambda a: np.repeat(a, [2, 0, 1, 3], 0),
                line,
            ),
            (
                "broadcast_tensors",
                lambda t: vkml.broadcast_tensors(t, vkml.zeros(3, 1, device=t.device))[0],
                lambda a: np.broadcast_to(a, (3, 4)),
                line,
            ),
            (
                "meshgrid",
                lambda t: vkml.meshgrid(t, t[:2])[1],
                lambda a: np.meshgrid(a, a[:2], indexing="ij")[1],
                line,
            ),
            (
                "meshgrid",
                lambda t: vkml.meshgrid([t, t[:2], t[1:]], indexing="xy")[0],
                lambda a: np.meshgrid(a, a[:2], a[1:], indexing="xy")[0],
                line,
            ),
            ("hstack", lambda t: vkml.hstack([t, t]), lambda a: np.hstack([a, a]), x),
            ("hstack", lambda t: vkml.hstack([t, t]), lambda a: np.hstack([a, a]), line),
            ("vstack", lambda t: vkml.vstack([t, t]), lambda a: np.vstack([a, a]), line),
            ("dstack", lambda t: vkml.dstack([t, t]), lambda a: np.dstack([a, a]), x),
            ("dstack", lambda t: vkml.dstack([t, t]), lambda a: np.dstack([a, a]), one),
            (
                "tensor_split",
                lambda t: t.tensor_split(3)[1],
                lambda a: np.array_split(a, 3)[1],
                line,
            ),
            (
                "tensor_split",
                lambda t: vkml.tensor_split(t, (1, 3))[1],
                lambda a: np.array_split(a, (1, 3))[1],
                line,
            ),
        ]
    )


def _padding() -> list[Case]:
    x = small(2, 3, 4)
    modes = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}
    rows: list[Row] = []
    for mode, of_numpy in modes.items():
        for amounts in ((2, 1), (1, 3, 2, 0), (0, 0, 1, 1)):
            pairs = [(0, 0)] * (3 - len(amounts) // 2)
            pairs += [amounts[i : i + 2] for i in range(len(amounts) - 2, -1, -2)]
            rows.append(
                (
                    "pad",
                    lambda t, a=amounts, m=mode: vkml.pad(t, a, mode=m),
                    lambda a, p=tuple(pairs), m=of_numpy: np.pad(a, p, mode=m),
                    x,
                )
            )
    return [
        Case(c.name, c.function, c.reference, c.arrays, 0, label=f"mode-{i}")
        for i, c in enumerate(_cases(rows))
    ]


def _diagonals() -> list[Case]:
    x, line = small(2, 3, 4), small(3)
    rows: list[Row] = []
    for k in (-2, -1, 0, 1, 3):
        rows += [
            ("tril", lambda t, k=k: vkml.tril(t, k), lambda a, k=k: np.tril(a, k), x),
            ("triu", lambda t, k=k: t.triu(k), lambda a, k=k: np.triu(a, k), x),
            ("diag", lambda t, k=k: vkml.diag(t, k), lambda a, k=k: np.diag(a, k), line),
            ("diag", lambda t, k=k: t[0].diag(k), lambda a, k=k: np.diag(a[0], k), x),
            (
                "diagonal",
                lambda t, k=k: vkml.diagonal(t, k, 2, 0),
                lambda a, k=k: np.diagonal(a, k, 2, 0),
                x,
            ),
        ]
    rows += [
        (
            "diag_embed",
            lambda t: vkml.diag_embed(t, 1),
            lambda a: np.stack([[np.diag(row, 1) for row in rows] for rows in a]),
            small(2, 2, 3),
        ),
    ]
    return [
        *_cases(rows),
        Case("trace", lambda t: vkml.trace(t[1]), lambda a: np.trace(a[1]), [x], 2),
    ]


def _made() -> list[Case]:
    labels = np.array([[0, 2], [1, 2]], dtype=np.int64)
    fixed: list[tuple[str, Callable[..., Any], Array]] = [
        ("eye", lambda: vkml.eye(3), np.eye(3)),
        ("eye", lambda: vkml.eye(2, 4, dtype=vkml.int32), np.eye(2, 4, dtype=np.int32)),
        ("linspace", lambda: vkml.linspace(-1, 2, 7), np.linspace(-1, 2, 7)),
        ("linspace", lambda: vkml.linspace(3, 5, 1), np.linspace(3, 5, 1)),
        ("linspace", lambda: vkml.linspace(3, 5, 0), np.linspace(3, 5, 0)),
        ("logspace", lambda: vkml.logspace(-2, 3, 6), np.logspace(-2, 3, 6)),
        ("logspace", lambda: vkml.logspace(0, 4, 5, base=2.0), np.logspace(0, 4, 5, base=2.0)),
        ("tril_indices", lambda: vkml.tril_indices(3, 4, 1), np.stack(np.tril_indices(3, 1, 4))),
        ("triu_indices", lambda: vkml.triu_indices(4, 3, -1), np.stack(np.triu_indices(4, -1, 3))),
    ]
    return [
        *(
            Case(name, make, lambda e=expected: e, [], 4, gradient=False, label=str(i))
            for i, (name, make, expected) in enumerate(fixed)
        ),
        Case("one_hot", vkml.one_hot, lambda a: np.eye(3, dtype=np.int64)[a], [labels], 0, False),
        Case(
            "one_hot",
            lambda t: vkml.one_hot(t, 5),
            lambda a: np.eye(5, dtype=np.int64)[a],
            [labels],
            0,
            False,
            "wider",
        ),
    ]


ARRANGEMENT_CASES: list[Case] = [
    *_reordering(),
    *_repeating(),
    *_padding(),
    *_diagonals(),
    *_made(),
]
