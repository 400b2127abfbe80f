"""The functions of vkml.nn.functional, with every option, for comparison with PyTorch.

Activations and losses have tables of their own; `FUNCTIONAL_CASES` is all of them. Beside the calls
with many elements stand those where a formula divides by what may be 0: constant rows, rows of
zeros, one element.
"""

from typing import Any

import numpy as np

import vkml
from activation_cases import ACTIVATION_CASES
from checking import inputs
from function_case import FLOATS, Call, FunctionCase, numbered
from loss_cases import LOSS_CASES, A, B

SPACE = "nn.functional"

IMAGE = inputs((2, 4, 7, 6), -2, 2)
LINE = inputs((2, 4, 9), -2, 2)

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
    ("avg_pool1d", [LINE[:, :, :1]], {"kernel_size": 1}),
    ("max_pool2d", [IMAGE[:, :, :1, :1]], {"kernel_size": 1}),
    ("lp_pool2d", [np.abs(IMAGE) + 0.1], {"norm_type": 2, "kernel_size": 2}),
    ("lp_pool2d", [IMAGE[:, :, :1, :1]], {"norm_type": 2, "kernel_size": 1}),
    ("lp_pool1d", [LINE * 0], {"norm_type": 2, "kernel_size": 3}),
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
    ("pad", [inputs((), -1, 1)], {"pad": ()}),
    ("pad", [IMAGE[:0]], {"pad": (1, 2), "value": 3.0}),
    ("interpolate", [IMAGE[:, :, :1, :1]], {"size": (3, 4), "mode": "bilinear"}),
    ("affine_grid", [inputs((2, 2, 3), -1, 1)], {"size": (2, 1, 4, 5), "align_corners": False}),
    ("affine_grid", [inputs((2, 2, 3), -1, 1)], {"size": (2, 3, 1, 1), "align_corners": True}),
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
    ("layer_norm", [LINE], {"normalized_shape": (4, 9), "eps": 0.01}),
]
CONSTANT = np.ones((2, 4, 9), np.float32)
SINGLES = inputs((2, 4, 1), 0.5, 2)
CONSTANT_ROWS: list[Call] = [
    ("group_norm", [CONSTANT], {"num_groups": 2}),
    ("rms_norm", [CONSTANT * 0], {"normalized_shape": (9,), "eps": 1e-6}),
    ("rms_norm", [SINGLES], {"normalized_shape": (1,), "eps": 1e-6}),
    ("instance_norm", [CONSTANT], {}),
    ("local_response_norm", [CONSTANT * 0], {"size": 3}),
    ("normalize", [CONSTANT], {}),
    ("normalize", [SINGLES], {"dim": -1}),
    ("layer_norm", [CONSTANT], {"normalized_shape": (9,)}),
    ("layer_norm", [LINE[..., :1]], {"normalized_shape": (1,)}),
    ("layer_norm", [LINE[:0]], {"normalized_shape": (9,)}),
]

Q, K, V = (inputs((2, 4, 5, 8), -1, 1, seed=i) for i in range(3))
BIAS = inputs((2, 1, 5, 5), -1, 1)
MASK = inputs((5, 5), -1, 1) > -0.5
ATTENTION: list[Call] = [
    ("scaled_dot_product_attention", [Q, K, V], {}),
    ("scaled_dot_product_attention", [Q, K, V], {"is_causal": True}),
    ("scaled_dot_product_attention", [Q, K, V, MASK], {}),
    ("scaled_dot_product_attention", [Q, K, V, BIAS], {}),
    ("scaled_dot_product_attention", [Q, K[:, :2], V[:, :2]], {"enable_gqa": True}),
    ("scaled_dot_product_attention", [Q[0], K[0], V[0]], {"scale": 0.3}),
    ("scaled_dot_product_attention", [Q[:, :, :1], K[:, :, :1], V[:, :, :1]], {}),
    ("scaled_dot_product_attention", [Q * 0, K, V], {}),
]

TABLE = inputs((7, 3), -1, 1)
BAGS = np.array([[0, 3, 3], [6, 1, 2]])
OTHERS: list[Call] = [
    ("linear", [A, inputs((3, 6), -1, 1), inputs((3,), -1, 1)], {}),
    ("linear", [A[0], inputs((6,), -1, 1)], {}),
    ("linear", [A[:0], inputs((3, 6), -1, 1)], {}),
    ("embedding", [BAGS, TABLE], {}),
    ("embedding", [BAGS[0], TABLE], {"padding_idx": 3}),
    ("embedding", [BAGS[:0], TABLE], {}),
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


def _unpooled_line(m: Any, x: Any) -> Any:
    values, places = m.max_pool1d(x, 2, return_indices=True)
    return m.max_unpool1d(values * 2, places, 2, output_size=x.shape)


def _unpooled_image(m: Any, x: Any) -> Any:
    values, places = m.max_pool2d(x, 2, return_indices=True)
    return m.max_unpool2d(values * 2, places, 2, output_size=x.shape)


def _trained(m: Any, x: Any, w: Any, b: Any) -> Any:
    return m.batch_norm(x, None, None, w, b, training=True)


def _inferred(m: Any, x: Any, mean: Any, variance: Any) -> Any:
    return m.batch_norm(x, mean.detach(), variance.detach(), eps=0.01)


def _affine_rows(m: Any, x: Any, w: Any, b: Any) -> Any:
    return m.layer_norm(x, (9,), w, b)


def _affine_groups(m: Any, x: Any, w: Any, b: Any) -> Any:
    return m.group_norm(x, 2, w, b)


def _affine_instances(m: Any, x: Any, w: Any, b: Any) -> Any:
    return m.instance_norm(x, weight=w, bias=b)


# Past both ends, so that padding counts; no position lies on a pixel, where slopes jump.
GRID = inputs((2, 3, 7, 2), -1.6, 1.6)


def _sampled(mode: str, padding: str, align_corners: bool) -> FunctionCase:
    def call(m: Any, x: Any, grid: Any) -> Any:
        # The nearest pixel stays the nearest: PyTorch's gradient is 0, and here there is none.
        positions = grid.detach() if mode == "nearest" else grid
        return m.grid_sample(x, positions, mode, padding, align_corners)

    arrays = [inputs((2, 3, 5, 4), -1, 1), GRID]
    label = f"{mode} {padding} {align_corners}"
    return FunctionCase(
        SPACE,
        "grid_sample",
        arrays,
        call=call,
        units=128,
        half_units=64,
        # Half precision puts positions between two pixels.
        dtypes=("float64", "float32") if mode == "nearest" else FLOATS,
        label=label,
    )


def _gumbel(m: Any, x: Any, tau: float) -> Any:
    """What the scores do to a sample, next to what the noise alone gives."""
    samples = []
    for scores in (x, x.detach() * 0):
        vkml.manual_seed(5)
        samples.append(m.gumbel_softmax(scores, tau).log())
    change = samples[0] - samples[1]
    return change - change.mean(-1, keepdim=True)


def _dropouts() -> list[FunctionCase]:
    """Where nothing is left to chance; `test_functional_against_torch` has the rest."""
    cases = []
    for name, shape in (
        ("dropout", (3, 4)),
        ("dropout1d", (2, 3, 4)),
        ("dropout2d", (2, 3, 4, 2)),
        ("alpha_dropout", (3, 4)),
        ("feature_alpha_dropout", (2, 3, 4)),
    ):
        x = inputs(shape, -1, 1)
        cases += [
            FunctionCase(SPACE, name, [x], {"p": p, "training": training}, label=f"{p} {training}")
            for p, training in ((0.5, False), (0.0, True), (1.0, True))
        ]
    return cases


FUNCTIONAL_CASES = [
    *numbered(
        SPACE,
        [
            *CONVOLUTIONS,
            *POOLS,
            *RESAMPLING,
            *NORMS,
            *CONSTANT_ROWS,
            *ATTENTION,
            *OTHERS,
        ],
    ),
    FunctionCase(SPACE, "max_unpool1d", [LINE], call=_unpooled_line),
    FunctionCase(SPACE, "max_unpool2d", [IMAGE], call=_unpooled_image),
    FunctionCase(SPACE, "batch_norm", [IMAGE, *CHANNELS], call=_trained, label="training"),
    FunctionCase(SPACE, "batch_norm", [CONSTANT, *CHANNELS], call=_trained, label="constant"),
    FunctionCase(SPACE, "batch_norm", [LINE, CHANNELS[1], CHANNELS[0]], call=_inferred),
    FunctionCase(
        SPACE,
        "layer_norm",
        [LINE, inputs((9,), 0.5, 1.5), inputs((9,), -1, 1)],
        call=_affine_rows,
        label="affine",
    ),
    FunctionCase(
        SPACE,
        "normalize",
        [CONSTANT * 0],
        # Divided by eps near 0; PyTorch's second derivative there is NaN.
        reference=lambda torch, x: x / 1e-12,
        dtypes=("float64", "float32"),
        label="zeros",
    ),
    FunctionCase(SPACE, "group_norm", [IMAGE, *CHANNELS], call=_affine_groups, label="affine"),
    FunctionCase(SPACE, "instance_norm", [LINE, *CHANNELS], call=_affine_instances, label="affine"),
    *(
        _sampled(mode, padding, align_corners)
        for mode in ("bilinear", "nearest", "bicubic")
        for padding in ("zeros", "border", "reflection")
        for align_corners in (False, True)
    ),
    *_dropouts(),
    FunctionCase(
        SPACE,
        "gumbel_softmax",
        [A],
        call=lambda m, x: _gumbel(m, x, 0.7),
        reference=lambda torch, x: (x - x.mean(-1, keepdim=True)) / 0.7,
        half_units=8,
    ),
    FunctionCase(
        SPACE,
        "one_hot",
        [np.array([[2, 0], [1, 1]])],
        {"num_classes": 4},
        no_gradient="class numbers are whole",
    ),
    *ACTIVATION_CASES,
    *LOSS_CASES,
]
