"""Layers and losses as functions: expressions of operators that the planner fuses.

Nothing here computes by itself. Each function is a few lines of operators, so that a softmax, a
norm or a loss becomes one kernel together with what stands before and behind it. Names and
arguments are PyTorch's.
"""

from __future__ import annotations

import vkml
from vkml import Tensor
from vkml._vkml import _add_to_product
from vkml.argument_errors import check_arguments as _check_arguments
from vkml.nn.activation_functions import (
    celu,
    elu,
    geglu,
    gelu,
    glu,
    hardshrink,
    hardsigmoid,
    hardswish,
    hardtanh,
    leaky_relu,
    log_softmax,
    logsigmoid,
    mish,
    prelu,
    reglu,
    relu,
    relu6,
    rrelu,
    selu,
    sigmoid,
    silu,
    softmax,
    softmin,
    softplus,
    softshrink,
    softsign,
    swiglu,
    tanh,
    tanhshrink,
    threshold,
)
from vkml.nn.attention_functions import scaled_dot_product_attention
from vkml.nn.convolution_functions import (
    conv1d,
    conv2d,
    conv_transpose1d,
    conv_transpose2d,
    fold,
    unfold,
)
from vkml.nn.dropout_functions import (
    alpha_dropout,
    dropout,
    dropout1d,
    dropout2d,
    feature_alpha_dropout,
    gumbel_softmax,
)
from vkml.nn.embedding_functions import embedding, embedding_bag
from vkml.nn.loss_functions import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    cross_entropy,
    huber_loss,
    l1_loss,
    mse_loss,
    nll_loss,
    smooth_l1_loss,
)
from vkml.nn.normalization_functions import (
    batch_norm,
    group_norm,
    instance_norm,
    layer_norm,
    local_response_norm,
    normalize,
    rms_norm,
)
from vkml.nn.pooling_functions import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_max_pool1d,
    adaptive_max_pool2d,
    avg_pool1d,
    avg_pool2d,
    lp_pool1d,
    lp_pool2d,
    max_pool1d,
    max_pool2d,
    max_unpool1d,
    max_unpool2d,
)
from vkml.nn.ranking_losses import (
    cosine_embedding_loss,
    cosine_similarity,
    ctc_loss,
    gaussian_nll_loss,
    hinge_embedding_loss,
    kl_div,
    margin_ranking_loss,
    multi_margin_loss,
    multilabel_margin_loss,
    multilabel_soft_margin_loss,
    pairwise_distance,
    poisson_nll_loss,
    soft_margin_loss,
    triplet_margin_loss,
    triplet_margin_with_distance_loss,
)
from vkml.nn.resampling_functions import (
    channel_shuffle,
    interpolate,
    pad,
    pixel_shuffle,
    pixel_unshuffle,
)
from vkml.nn.sampling_functions import affine_grid, grid_sample

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_max_pool1d",
    "adaptive_max_pool2d",
    "affine_grid",
    "alpha_dropout",
    "avg_pool1d",
    "avg_pool2d",
    "batch_norm",
    "bilinear",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "celu",
    "channel_shuffle",
    "conv1d",
    "conv2d",
    "conv_transpose1d",
    "conv_transpose2d",
    "cosine_embedding_loss",
    "cosine_similarity",
    "cross_entropy",
    "ctc_loss",
    "dropout",
    "dropout1d",
    "dropout2d",
    "elu",
    "embedding",
    "embedding_bag",
    "feature_alpha_dropout",
    "fold",
    "gaussian_nll_loss",
    "geglu",
    "gelu",
    "glu",
    "grid_sample",
    "group_norm",
    "gumbel_softmax",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "hinge_embedding_loss",
    "huber_loss",
    "instance_norm",
    "interpolate",
    "kl_div",
    "l1_loss",
    "layer_norm",
    "leaky_relu",
    "linear",
    "local_response_norm",
    "log_softmax",
    "logsigmoid",
    "lp_pool1d",
    "lp_pool2d",
    "margin_ranking_loss",
    "max_pool1d",
    "max_pool2d",
    "max_unpool1d",
    "max_unpool2d",
    "mish",
    "mse_loss",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "multilabel_soft_margin_loss",
    "nll_loss",
    "normalize",
    "one_hot",
    "pad",
    "pairwise_distance",
    "pixel_shuffle",
    "pixel_unshuffle",
    "poisson_nll_loss",
    "prelu",
    "reglu",
    "relu",
    "relu6",
    "rms_norm",
    "rrelu",
    "scaled_dot_product_attention",
    "selu",
    "sigmoid",
    "silu",
    "smooth_l1_loss",
    "soft_margin_loss",
    "softmax",
    "softmin",
    "softplus",
    "softshrink",
    "softsign",
    "swiglu",
    "tanh",
    "tanhshrink",
    "threshold",
    "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
    "unfold",
]


# Linear maps.


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`input @ weight.T + bias`, over the last axis.

    Args:
        input: Shape (..., in).
        weight: Shape (out, in), or (in,).
        bias: Shape (out,), or None.
    """
    result = input @ (weight.transpose(-1, -2) if weight.ndim > 1 else weight)
    return result if bias is None else _add_to_product(result, bias)


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """Class numbers as rows of zeros with a single 1; without `num_classes`, max + 1 of them."""
    return vkml.one_hot(tensor, num_classes)


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x1.T @ weight[o] @ x2 for each output o, over the last axes.

    Args:
        input1: Shape (..., in1).
        input2: Shape (..., in2), with the same leading axes.
        weight: Shape (out, in1, in2).
        bias: Shape (out,), or None.
    """
    rows1, rows2 = input1.reshape(-1, input1.shape[-1]), input2.reshape(-1, input2.shape[-1])
    result = vkml.einsum("bi,oij,bj->bo", rows1, weight, rows2)
    result = result.reshape(*input1.shape[:-1], weight.shape[0])
    return result if bias is None else _add_to_product(result, bias)


_check_arguments(globals(), __all__)
