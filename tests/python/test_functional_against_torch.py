"""Functions of vkml.nn.functional against PyTorch's, with every option, value and gradients."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vkml
from checking import inputs
from torch_agreement import assert_agrees, torch
from vkml.nn import functional as ours

theirs = torch.nn.functional

IMAGE = inputs((2, 4, 7, 6), -2, 2)
LINE = inputs((2, 4, 9), -2, 2)

# (function, arrays, options)
Call = tuple[str, list[np.ndarray], dict[str, Any]]

CONVOLUTIONS: list[Call] = [
    ("conv1d", [LINE, inputs((6, 4, 3), -1, 1), inputs((6,), -1, 1)], {}),
    ("conv1d", [LINE, inputs((6, 2, 3), -1, 1)], {"groups": 2, "stride": 2, "padding": 1}),
    ("conv1d", [LINE, inputs((6, 4, 4), -1, 1)], {"padding": "same", "dilation": 2}),
    ("conv1d", [LINE[0], inputs((6, 4, 3), -1, 1)], {"padding": 2}),
    ("conv2d", [IMAGE, inputs((6, 4, 3, 2), -1, 1), inputs((6,), -1, 1)], {"padding": "same"}),
    ("conv2d", [IMAGE, inputs((6, 4, 2, 2), -1, 1)], {"padding": "valid", "stride": (2, 1)}),
    ("conv2d", [IMAGE[0], inputs((6, 4, 3, 3), -1, 1)], {"dilation": (2, 1), "padding": 1}),
    ("conv_transpose2d", [IMAGE, inputs((4, 3, 3, 2), -1, 1), inputs((3,), -1, 1)], {}),
    (
        "conv_transpose2d",
        [IMAGE, inputs((4, 3, 3, 2), -1, 1)],
        {"stride": 2, "padding": 1, "output_padding": 1},
    ),
    (
        "conv_transpose2d",
        [IMAGE, inputs((4, 3, 3, 3), -1, 1)],
        {"stride": (3, 2), "dilation": (1, 2), "groups": 2, "output_padding": (2, 0)},
    ),
    ("conv_transpose2d", [IMAGE[0], inputs((4, 2, 1, 1), -1, 1)], {"stride": 2}),
    (
        "conv_transpose1d",
        [LINE, inputs((4, 3, 3), -1, 1), inputs((3,), -1, 1)],
        {"stride": 2, "padding": 1, "output_padding": 1},
    ),
    ("unfold", [IMAGE], {"kernel_size": (3, 2)}),
    ("unfold", [IMAGE], {"kernel_size": 2, "dilation": 2, "padding": 1, "stride": (2, 1)}),
    ("fold", [inputs((2, 12, 25), -1, 1)], {"output_size": (6, 6), "kernel_size": 2}),
    (
        "fold",
        [inputs((2, 12, 12), -1, 1)],
        {
            "output_size": (7, 6),
            "kernel_size": (3, 2),
            "padding": 1,
            "stride": (2, 2),
            "dilation": (2, 1),
        },
    ),
]

POOLS: list[Call] = [
    ("max_pool2d", [IMAGE], {"kernel_size": 3, "stride": 2, "ceil_mode": True}),
    ("max_pool2d", [IMAGE], {"kernel_size": 2, "padding": 1, "return_indices": True}),
    ("max_pool2d", [IMAGE[0]], {"kernel_size": (3, 2), "dilation": 2, "stride": 1}),
    (
        "max_pool2d",
        [IMAGE],
        {"kernel_size": 3, "stride": 4, "padding": 1, "ceil_mode": True, "return_indices": True},
    ),
    ("max_pool1d", [LINE], {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True}),
    ("max_pool1d", [LINE[0]], {"kernel_size": 2, "return_indices": True}),
    ("avg_pool2d", [IMAGE], {"kernel_size": 3, "stride": 2, "ceil_mode": True, "padding": 1}),
    (
        "avg_pool2d",
        [IMAGE],
        {
            "kernel_size": 3,
            "stride": 2,
            "ceil_mode": True,
            "padding": 1,
            "count_include_pad": False,
        },
    ),
    ("avg_pool2d", [IMAGE[0]], {"kernel_size": (2, 3), "divisor_override": 5, "padding": 1}),
    (
        "avg_pool2d",
        [IMAGE],
        {"kernel_size": 4, "stride": 3, "ceil_mode": True, "divisor_override": 3},
    ),
    ("avg_pool1d", [LINE], {"kernel_size": 3, "stride": 2, "padding": 1}),
    ("lp_pool2d", [np.abs(IMAGE) + 0.1], {"norm_type": 2, "kernel_size": 2}),
    (
        "lp_pool2d",
        [np.abs(IMAGE) + 0.1],
        {"norm_type": 3, "kernel_size": (3, 2), "stride": 1, "ceil_mode": True},
    ),
    ("lp_pool1d", [LINE], {"norm_type": 2, "kernel_size": 3, "stride": 2}),
    ("adaptive_avg_pool2d", [IMAGE], {"output_size": (3, 4)}),
    ("adaptive_avg_pool2d", [IMAGE], {"output_size": (None, 3)}),
    ("adaptive_avg_pool2d", [IMAGE[0]], {"output_size": 1}),
    ("adaptive_avg_pool2d", [IMAGE], {"output_size": (9, 2)}),
    ("adaptive_avg_pool1d", [LINE], {"output_size": 4}),
    ("adaptive_max_pool2d", [IMAGE], {"output_size": (3, 4), "return_indices": True}),
    ("adaptive_max_pool2d", [IMAGE[0]], {"output_size": 5}),
    ("adaptive_max_pool1d", [LINE], {"output_size": 4, "return_indices": True}),
]

RESAMPLING: list[Call] = [
    *(
        ("interpolate", [image], {"mode": mode, **size})
        for mode, image, sizes in (
            ("nearest", IMAGE, [(5, 9), (14, 12)]),
            ("nearest-exact", IMAGE, [(5, 9), (14, 12)]),
            ("nearest", LINE, [4, 18]),
            ("nearest-exact", LINE, [4, 18]),
        )
        for size in ({"size": sizes[0]}, {"size": sizes[1]}, {"scale_factor": 2})
    ),
    *(
        ("interpolate", [image], {"mode": mode, "align_corners": align, **size})
        for mode, image, other in (
            ("bilinear", IMAGE, (5, 11)),
            ("bicubic", IMAGE, (5, 11)),
            ("linear", LINE, 5),
        )
        for align in (False, True)
        for size in ({"size": other}, {"scale_factor": 2.0}, {"scale_factor": 1.7})
    ),
    (
        "interpolate",
        [IMAGE],
        {"scale_factor": 1.7, "mode": "bilinear", "recompute_scale_factor": True},
    ),
    ("pixel_shuffle", [inputs((2, 12, 3, 2), -1, 1)], {"upscale_factor": 2}),
    ("pixel_unshuffle", [inputs((2, 3, 6, 9), -1, 1)], {"downscale_factor": 3}),
    ("channel_shuffle", [inputs((2, 6, 3, 2), -1, 1)], {"groups": 3}),
    ("pad", [IMAGE], {"pad": (1, 2, 3, 0), "mode": "reflect"}),
    ("pad", [IMAGE], {"pad": (1, 2, 3, 0), "mode": "replicate"}),
    ("pad", [IMAGE], {"pad": (6, 2, 3, 0), "mode": "circular"}),
    ("pad", [IMAGE], {"pad": (-1, 2), "value": 3.0}),
]

CHANNELS = [inputs((4,), 0.5, 1.5), inputs((4,), -1, 1)]
NORMS: list[Call] = [
    ("group_norm", [IMAGE], {"num_groups": 2}),
    ("rms_norm", [IMAGE], {"normalized_shape": (7, 6), "eps": 1e-6}),
    ("rms_norm", [IMAGE], {"normalized_shape": (6,), "eps": 0.1}),
    ("instance_norm", [IMAGE], {}),
    ("instance_norm", [LINE], {"eps": 0.01}),
    ("local_response_norm", [IMAGE], {"size": 3}),
    ("local_response_norm", [IMAGE], {"size": 2, "alpha": 0.5, "beta": 0.5, "k": 2.0}),
    ("normalize", [IMAGE], {"p": 3.0, "dim": 2}),
    ("normalize", [IMAGE], {}),
]

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
            ("cosine_embedding_loss", [A, B, SIGNS], {"margin": 0.1}),
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
            ("binary_cross_entropy", [P, P + 0.1], {}),
            ("binary_cross_entropy_with_logits", [A, P], {}),
        )
    ),
    ("kl_div", [A, B], {"log_target": True, "reduction": "batchmean"}),
    ("multilabel_soft_margin_loss", [A, (B > 0).astype(np.float32)], {}),
    ("cosine_similarity", [A, B], {}),
    ("cosine_similarity", [A, B], {"dim": 0}),
    ("pairwise_distance", [A, B], {"p": 3.0, "keepdim": True}),
]

Q, K, V = (inputs((2, 4, 5, 8), -1, 1, seed=i) for i in range(3))
MASK = inputs((5, 5), -1, 1) > -0.5
ATTENTION: list[Call] = [
    ("scaled_dot_product_attention", [Q, K, V], {}),
    ("scaled_dot_product_attention", [Q, K, V], {"is_causal": True}),
    ("scaled_dot_product_attention", [Q, K, V, MASK], {}),
    ("scaled_dot_product_attention", [Q, K, V, inputs((2, 1, 5, 5), -1, 1)], {}),
    ("scaled_dot_product_attention", [Q, K[:, :2], V[:, :2]], {"enable_gqa": True}),
    ("scaled_dot_product_attention", [Q[0], K[0], V[0]], {"scale": 0.3}),
]

TABLE = inputs((7, 3), -1, 1)
BAGS = np.array([[0, 3, 3], [6, 1, 2]])
OTHERS: list[Call] = [
    ("bilinear", [A, B[:, :4], inputs((3, 6, 4), -1, 1), inputs((3,), -1, 1)], {}),
    *(
        ("embedding_bag", [BAGS, TABLE], {"mode": mode, **options})
        for mode in ("sum", "mean", "max")
        for options in ({}, {"padding_idx": 3})
    ),
    ("embedding_bag", [BAGS.ravel(), TABLE, np.array([0, 2, 2])], {"mode": "mean"}),
    (
        "embedding_bag",
        [BAGS.ravel(), TABLE, np.array([0, 2, 6])],
        {"mode": "sum", "include_last_offset": True},
    ),
]

CALLS = [*CONVOLUTIONS, *POOLS, *RESAMPLING, *NORMS, *LOSSES, *ATTENTION, *OTHERS]


def label(call: Call) -> str:
    name, arrays, options = call
    return f"{name}-{len(arrays)}-{options}"


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("call", CALLS, ids=label)
def test_agrees(call: Call, device: object) -> None:
    name, arrays, options = call
    ours_only, theirs_only = getattr(ours, name), getattr(theirs, name)
    assert_agrees(
        lambda *tensors: ours_only(*tensors, **options),
        lambda *tensors: theirs_only(*tensors, **options),
        arrays,
        device,
    )


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("is_flat", [False, True])
def test_ctc(reduction: str, is_flat: bool, device: object) -> None:
    scores = inputs((12, 3, 5), -2, 2)
    rows = [[1, 2, 2], [3, 1, 4], [4, 0, 0]]
    lengths, spans = (3, 3, 1), (12, 10, 7)
    flat = [label for row, n in zip(rows, lengths, strict=True) for label in row[:n]]
    targets = np.array(flat if is_flat else rows)
    assert_agrees(
        lambda s, t: ours.ctc_loss(vkml.log_softmax(s, 2), t, spans, lengths, reduction=reduction),
        lambda s, t: theirs.ctc_loss(
            torch.log_softmax(s, 2), t, spans, lengths, reduction=reduction
        ),
        [scores, targets],
        device,
        128,
    )


def test_ctc_of_an_impossible_alignment(device: object) -> None:
    scores = vkml.tensor(inputs((2, 1, 3), -1, 1), device=device, requires_grad=True)
    targets = vkml.tensor([[1, 1]], device=device)
    loss = ours.ctc_loss(vkml.log_softmax(scores, 2), targets, [2], [2], reduction="none")
    assert loss.tolist() == [float("inf")]
    none = ours.ctc_loss(
        vkml.log_softmax(scores, 2), targets, [2], [2], reduction="sum", zero_infinity=True
    )
    none.backward()
    assert none.item() == 0
    assert not scores.grad.numpy().any()


def test_attention_to_nothing_is_zero(device: object) -> None:
    q = vkml.tensor(Q[0], device=device, requires_grad=True)
    mask = np.ones((5, 5), dtype=bool)
    mask[2] = False
    result = ours.scaled_dot_product_attention(q, q, q, vkml.tensor(mask, device=device))
    assert not result.numpy()[:, 2].any()
    result.sum().backward()
    assert np.isfinite(q.grad.numpy()).all()


def test_more_losses(device: object) -> None:
    scores, labels = inputs((3, 4), -2, 2), np.array([[3, 0, -1, 1], [-1, 2, 0, 1], [0, 1, 2, 3]])
    for reduction in ("none", "mean", "sum"):
        assert_agrees(
            lambda s, t, r=reduction: ours.multilabel_margin_loss(s, t, reduction=r),
            lambda s, t, r=reduction: theirs.multilabel_margin_loss(s, t, reduction=r),
            [scores, labels],
            device,
        )
        assert_agrees(
            lambda a, b, c, r=reduction: ours.triplet_margin_with_distance_loss(
                a, b, c, distance_function=lambda x, y: (x - y).abs().sum(-1), reduction=r
            ),
            lambda a, b, c, r=reduction: theirs.triplet_margin_with_distance_loss(
                a, b, c, distance_function=lambda x, y: (x - y).abs().sum(-1), reduction=r
            ),
            [scores, inputs((3, 4), -2, 2, seed=1), inputs((3, 4), -2, 2, seed=2)],
            device,
        )


def test_unpooling(device: object) -> None:
    def line(m: Any, x: Any) -> Any:
        values, places = m.max_pool1d(x, 2, return_indices=True)
        return m.max_unpool1d(values * 2, places, 2, output_size=x.shape)

    def image(m: Any, x: Any) -> Any:
        values, places = m.max_pool2d(x, 2, return_indices=True)
        return m.max_unpool2d(values * 2, places, 2, output_size=x.shape)

    for call, array in ((line, LINE), (image, IMAGE)):
        assert_agrees(lambda x, c=call: c(ours, x), lambda x, c=call: c(theirs, x), [array], device)


@pytest.mark.parametrize(
    ("name", "kept"),
    [("dropout1d", 1), ("dropout2d", 2), ("alpha_dropout", 0), ("feature_alpha_dropout", 2)],
)
def test_dropouts_of_channels_and_for_selu(name: str, kept: int, device: object) -> None:
    """Axes past the first two are dropped together; what stays is one affine map of the input."""
    function = getattr(ours, name)
    x = vkml.ones(*((40, 50, 6, 5) if kept == 2 else (40, 50, 6)), device=device)
    x.requires_grad_()
    result = function(x, 0.25, training=True)
    values = result.numpy()
    if kept:
        channels = values.reshape(40, 50, -1)
        assert (channels == channels[..., :1]).all()
    dropped = values == values.min()
    assert len(np.unique(values)) == 2
    assert abs(dropped.mean() - 0.25) < 0.05
    result.sum().backward()
    slopes = np.unique(x.grad.numpy())
    np.testing.assert_array_equal((x.grad.numpy() == 0), dropped)
    if "alpha" in name:
        # Self-normalising: values of mean 0 and variance 1 keep both.
        normal = vkml.randn(400, 500, 2, 2, device=device)
        kept_moments = function(normal, 0.25, training=True).numpy()
        assert abs(kept_moments.mean()) < 0.03
        assert abs(kept_moments.var() - 1) < 0.05
    else:
        np.testing.assert_allclose(slopes, [0, 1 / 0.75], rtol=1e-6)
    assert function(x, 0.25, training=False).tolist() == x.tolist()


def test_every_function_is_documented_and_named_in_a_test() -> None:
    texts = [path.read_text() for path in Path(__file__).parent.glob("test_*.py")]
    text = "\n".join(texts)
    assert [name for name in ours.__all__ if not re.search(rf'["\.]{name}\b', text)] == []
    assert [name for name in ours.__all__ if not getattr(ours, name).__doc__] == []
