"""Functions of vkml.nn.functional where PyTorch's numbers say nothing: limits and chance.

What has a number to compare is in `functional_cases`.
"""

import numpy as np
import pytest

import vkml
from checking import inputs
from vkml.nn import functional as ours


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
    q = vkml.tensor(inputs((4, 5, 8), -1, 1), device=device, requires_grad=True)
    mask = np.ones((5, 5), dtype=bool)
    mask[2] = False
    result = ours.scaled_dot_product_attention(q, q, q, vkml.tensor(mask, device=device))
    assert not result.numpy()[:, 2].any()
    result.sum().backward()
    assert np.isfinite(q.grad.numpy()).all()


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
