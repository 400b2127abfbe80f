"""Losses and similarities of vkml.nn.functional, with every option, to compare with PyTorch.

Beside the calls with many elements stand those where a formula divides by what may be 0: equal
operands, rows of zeros, one element, labels that are all ignored.
"""

from typing import Any

import numpy as np

from checking import inputs
from function_case import Array, Call, FunctionCase, numbered

SPACE = "nn.functional"

A, B, C = (inputs((5, 6), -1, 1, seed=i) for i in range(3))
SIGNS = np.array([1, -1, 1, 1, -1])
P = np.abs(inputs((5, 6), 0.1, 1)) / 4
LABELS = np.array([0, 5, 2, 2, 1])

LOSSES: list[Call] = [
    *(
        (name, arrays, {**options, "reduction": reduction})
        for reduction in ("none", "mean", "sum")
        for name, arrays, options in (
            ("kl_div", [A, P], {}),
            ("hinge_embedding_loss", [A, np.where(B > 0, 1, -1)], {"margin": 0.5}),
            ("margin_ranking_loss", [A[:, 0], B[:, 0], SIGNS], {"margin": 0.3}),
            ("soft_margin_loss", [A, np.where(B > 0, 1, -1)], {}),
            ("triplet_margin_loss", [A, B, C], {"p": 2.0}),
            ("triplet_margin_loss", [A, B, C], {"swap": True, "margin": 0.2, "p": 1.0}),
            ("multi_margin_loss", [A, LABELS], {}),
            ("multi_margin_loss", [A, LABELS], {"p": 2, "margin": 0.5}),
            ("poisson_nll_loss", [A, P * 20], {"full": True}),
            ("poisson_nll_loss", [P, P * 3], {"log_input": False}),
            ("gaussian_nll_loss", [A, B, P], {"full": True}),
            ("cross_entropy", [A, LABELS], {"ignore_index": 2, "label_smoothing": 0.2}),
            ("cross_entropy", [A, P * 2], {"label_smoothing": 0.1}),
            ("nll_loss", [A, LABELS], {"ignore_index": 5}),
            ("huber_loss", [A, B], {"delta": 0.3}),
            ("smooth_l1_loss", [A, B], {"beta": 0.3}),
            ("binary_cross_entropy_with_logits", [A, P], {}),
        )
    ),
    ("kl_div", [A, B], {"log_target": True, "reduction": "batchmean"}),
    ("multilabel_soft_margin_loss", [A, (B > 0).astype(np.float32)], {}),
    ("cosine_similarity", [A, B], {}),
    ("cosine_similarity", [A, B], {"dim": 0}),
    ("pairwise_distance", [A, B], {"p": 3.0, "keepdim": True}),
]

ONE = inputs((1, 1), 0.2, 0.8)
SCALAR = inputs((), -1, 1)
IGNORED = np.full((5,), -100)
EDGES: list[Call] = [
    ("mse_loss", [SCALAR, SCALAR + 1], {}),
    ("mse_loss", [A[:0], B[:0]], {"reduction": "sum"}),
    ("mse_loss", [A, A], {}),
    ("l1_loss", [SCALAR, SCALAR + 1], {}),
    ("l1_loss", [A[:0], B[:0]], {"reduction": "none"}),
    ("l1_loss", [A, A], {}),
    ("huber_loss", [A, A], {}),
    ("smooth_l1_loss", [A, A], {}),
    ("cross_entropy", [ONE, LABELS[:1]], {}),
    ("cross_entropy", [np.ones((5, 6), np.float32), LABELS], {}),
    ("cross_entropy", [A, IGNORED], {"reduction": "sum"}),
    ("cross_entropy", [A[0], np.array(3)], {}),
    ("nll_loss", [ONE, LABELS[:1]], {}),
    ("nll_loss", [A, IGNORED], {"reduction": "none"}),
    ("binary_cross_entropy_with_logits", [A * 200, P], {}),
    ("cosine_similarity", [A, A], {}),
    ("cosine_similarity", [P[:, :1] + 0.5, P[:, 1:2] + 0.5], {}),
    ("pairwise_distance", [A, A], {}),
    ("pairwise_distance", [A[:, :1], B[:, :1]], {}),
    ("triplet_margin_loss", [A, A, C], {}),
    ("triplet_margin_loss", [A, A, A], {}),
    ("margin_ranking_loss", [A[:1, 0], B[:1, 0], SIGNS[:1]], {}),
    ("gaussian_nll_loss", [A, A, P * 0], {}),
    ("soft_margin_loss", [A * 8, np.where(B > 0, 1, -1)], {}),
    ("multi_margin_loss", [A[0], np.array(1)], {}),
]

SCORES = inputs((12, 3, 5), -2, 2)
ROWS = np.array([[1, 2, 2], [3, 1, 4], [4, 0, 0]])
LENGTHS, SPANS = (3, 3, 1), (12, 10, 7)
FLAT = np.concatenate([row[:length] for row, length in zip(ROWS, LENGTHS, strict=True)])
MANY = np.array([[3, 0, -1, 1], [-1, 2, 0, 1], [0, 1, 2, 3]])


def _ctc(targets: Array, reduction: str) -> FunctionCase:
    def call(m: Any, s: Any, t: Any) -> Any:
        return m.ctc_loss(s.log_softmax(2), t, SPANS, LENGTHS, reduction=reduction)

    label = f"ctc {targets.ndim} {reduction}"
    return FunctionCase(SPACE, "ctc_loss", [SCORES, targets], call=call, label=label, units=128)


def _distance(x: Any, y: Any) -> Any:
    return (x - y).abs().sum(-1)


def _cross_entropy_of_two(torch: Any, x: Any, y: Any) -> Any:
    """By its definition: PyTorch's second derivative has added 1e-12 to its divisor."""
    return -(y * torch.log(x) + (1 - y) * torch.log(1 - x))


def _binary(reduction: str) -> FunctionCase:
    def reference(torch: Any, x: Any, y: Any) -> Any:
        loss = _cross_entropy_of_two(torch, x, y)
        return {"none": lambda: loss, "mean": loss.mean, "sum": loss.sum}[reduction]()

    return FunctionCase(
        SPACE,
        "binary_cross_entropy",
        [P + 0.1, P + 0.2],
        {"reduction": reduction},
        reference=reference,
        label=reduction,
    )


def _with_fixed_target(name: str, options: dict[str, Any]) -> FunctionCase:
    """Targets of 0, where the loss has no slope in its target."""

    def call(m: Any, x: Any, t: Any) -> Any:
        return getattr(m, name)(x, t.detach(), **options)

    return FunctionCase(SPACE, name, [A, P * 0], call=call, label="target 0")


def _weighted_binary(m: Any, x: Any, y: Any, w: Any) -> Any:
    return m.binary_cross_entropy(x, y, w.detach())


def _of_a_zero_row(torch: Any, x: Any, y: Any) -> Any:
    """Linear near 0, where the divisor is limited; PyTorch's second derivative there is NaN."""
    return (x * y).sum(-1) / (1e-8 * y.norm(dim=-1))


def _weighted(m: Any, x: Any, t: Any, w: Any) -> Any:
    return m.cross_entropy(x, t, w.detach())


LOSS_CASES = [
    *numbered(SPACE, [*LOSSES, *EDGES]),
    *(_ctc(targets, how) for targets in (ROWS, FLAT) for how in ("none", "mean", "sum")),
    *numbered(
        SPACE,
        [
            *(
                ("multilabel_margin_loss", [A[:3, :4], MANY], {"reduction": how})
                for how in ("none", "mean", "sum")
            ),
            *(
                (
                    "triplet_margin_with_distance_loss",
                    [A, B, C],
                    {"distance_function": _distance, "reduction": how},
                )
                for how in ("none", "mean", "sum")
            ),
            ("triplet_margin_with_distance_loss", [A, B, C], {"swap": True, "margin": 0.3}),
        ],
    ),
    *(_binary(how) for how in ("none", "mean", "sum")),
    FunctionCase(
        SPACE,
        "binary_cross_entropy",
        [P + 0.1, P + 0.2, C + 2],
        call=_weighted_binary,
        # PyTorch adds 1e-12 to the divisor of its second derivative.
        double_units=1e6,
        label="weights",
    ),
    *(
        FunctionCase(
            SPACE,
            "cosine_embedding_loss",
            arrays,
            {"margin": 0.1, "reduction": how},
            # PyTorch adds 1e-12 to squares.
            double_units=1e4,
            label=f"{len(arrays[0].shape)}-d {how}",
        )
        for arrays in ([A, B, SIGNS], [A[0], B[0], np.array(1)])
        for how in ("none", "mean", "sum")
    ),
    FunctionCase(
        SPACE,
        "cosine_similarity",
        [A[:1] * 0, B[:1]],
        reference=_of_a_zero_row,
        dtypes=("float64", "float32"),
        label="zero row",
    ),
    _with_fixed_target("kl_div", {"reduction": "sum"}),
    _with_fixed_target("poisson_nll_loss", {"full": True}),
    FunctionCase(
        SPACE,
        "kl_div",
        [A, A.copy()],
        {"log_target": True, "reduction": "sum"},
        label="equal",
    ),
    FunctionCase(SPACE, "cross_entropy", [A, LABELS, P[0] + 1], call=_weighted, label="weights"),
]
