"""Layers of vkml.nn with PyTorch's parameters against PyTorch's, value and gradients."""

from typing import Any

import numpy as np
import pytest

import vkml
from checking import assert_close, inputs
from torch_agreement import assert_agrees, torch
from vkml import nn

SEQUENCE = inputs((6, 3, 4), -1, 1)
RECURRENT: list[tuple[str, dict[str, Any]]] = [
    (name, options)
    for name in ("RNN", "LSTM", "GRU")
    for options in (
        {},
        {"num_layers": 2, "bidirectional": True},
        {"batch_first": True, "bias": False},
    )
] + [("RNN", {"nonlinearity": "relu"})]


def with_parameters_of(theirs: Any, ours: Any) -> Any:
    """Our layer with their parameters, which are double precision."""
    state = {name: vkml.tensor(value.numpy()) for name, value in theirs.state_dict().items()}
    ours.load_state_dict({name: value.to(vkml.float32) for name, value in state.items()})
    return ours


def layers(name: str, *arguments: Any, device: Any, **options: Any) -> tuple[Any, Any]:
    """The layer of both, with equal parameters, in evaluation."""
    torch.manual_seed(1)
    theirs = getattr(torch.nn, name)(*arguments, **options).double().eval()
    with torch.no_grad():
        # What float32 holds is what both compute with.
        for parameter in theirs.parameters():
            parameter.copy_(parameter.float().double())
    ours = with_parameters_of(theirs, getattr(nn, name)(*arguments, **options)).eval()
    return ours.to(device), theirs


def flat(result: Any) -> list[Any]:
    """Tensors in nested tuples."""
    if isinstance(result, tuple | list):
        return [part for item in result for part in flat(item)]
    return [result]


def assert_parameter_gradients_agree(ours: Any, theirs: Any, units: float) -> None:
    expected = dict(theirs.named_parameters())
    for name, parameter in ours.named_parameters():
        assert_close(parameter.grad, expected[name].grad.numpy(), units)


@pytest.mark.parametrize(("name", "options"), RECURRENT, ids=str)
def test_recurrent_layers(name: str, options: dict[str, Any], device: object) -> None:
    ours, theirs = layers(name, 4, 5, device=device, **options)
    assert_agrees(lambda x: flat(ours(x)), lambda x: flat(theirs(x)), [SEQUENCE], device, units=64)
    assert_parameter_gradients_agree(ours, theirs, 64)


@pytest.mark.parametrize("name", ["RNN", "LSTM", "GRU"])
def test_recurrent_layers_from_a_state(name: str, device: object) -> None:
    ours, theirs = layers(name, 4, 5, device=device)
    state, cell = inputs((1, 5), -1, 1), inputs((1, 5), -1, 1, seed=3)
    starts = [state, cell] if name == "LSTM" else [state]
    # Without a batch.
    assert_agrees(
        lambda x, *s: flat(ours(x, s if name == "LSTM" else s[0])),
        lambda x, *s: flat(theirs(x, s if name == "LSTM" else s[0])),
        [SEQUENCE[:, 0], *starts],
        device,
    )


@pytest.mark.parametrize("name", ["RNNCell", "LSTMCell", "GRUCell"])
def test_cells(name: str, device: object) -> None:
    ours, theirs = layers(name, 4, 5, device=device)
    state, cell = inputs((3, 5), -1, 1), inputs((3, 5), -1, 1, seed=3)
    starts = [state, cell] if name == "LSTMCell" else [state]
    assert_agrees(
        lambda x, *s: flat(ours(x, s if name == "LSTMCell" else s[0])),
        lambda x, *s: flat(theirs(x, s if name == "LSTMCell" else s[0])),
        [SEQUENCE[0], *starts],
        device,
    )
    assert_agrees(
        lambda x: flat(ours(x)), lambda x: flat(theirs(x)), [SEQUENCE[0]], device, gradients=False
    )


PADDING = np.zeros((3, 6), dtype=bool)
PADDING[1, 4:] = True
HIDDEN = np.triu(np.ones((6, 6), dtype=bool), 1)
ATTENTION: list[tuple[dict[str, Any], dict[str, np.ndarray]]] = [
    ({}, {}),
    ({"batch_first": True}, {}),
    ({"bias": False}, {"attn_mask": HIDDEN}),
    ({}, {"key_padding_mask": PADDING}),
    ({"kdim": 3, "vdim": 5}, {}),
]


@pytest.mark.parametrize(("options", "masks"), ATTENTION, ids=str)
def test_multihead_attention(
    options: dict[str, Any], masks: dict[str, np.ndarray], device: object
) -> None:
    ours, theirs = layers("MultiheadAttention", 4, 2, device=device, **options)
    key = inputs((6, 3, options.get("kdim", 4)), -1, 1, seed=5)
    value = inputs((6, 3, options.get("vdim", 4)), -1, 1, seed=6)
    our_masks = {name: vkml.tensor(mask, device=device) for name, mask in masks.items()}
    their_masks = {name: torch.tensor(mask) for name, mask in masks.items()}
    assert_agrees(
        lambda q, k, v: ours(q, k, v, **our_masks),
        lambda q, k, v: theirs(q, k, v, **their_masks),
        [SEQUENCE, key, value],
        device,
    )
    assert_parameter_gradients_agree(ours, theirs, 64)
    assert_agrees(
        lambda q, k, v: ours(q, k, v, need_weights=False, **our_masks)[0],
        lambda q, k, v: theirs(q, k, v, need_weights=False, **their_masks)[0],
        [SEQUENCE, key, value],
        device,
    )
    if "kdim" not in options:
        assert_agrees(
            lambda x: ours(x, x, x, average_attn_weights=False),
            lambda x: theirs(x, x, x, average_attn_weights=False),
            [SEQUENCE],
            device,
        )


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_transformer_encoder_layer(norm_first: bool, activation: str, device: object) -> None:
    ours, theirs = layers(
        "TransformerEncoderLayer",
        4,
        2,
        device=device,
        dim_feedforward=7,
        norm_first=norm_first,
        activation=activation,
        batch_first=True,
    )
    mask = np.where(HIDDEN[:3, :3], -np.inf, 0).astype(np.float32)
    assert_agrees(
        lambda x: ours(x, vkml.tensor(mask, device=device)),
        lambda x: theirs(x, torch.tensor(mask).double()),
        [SEQUENCE],
        device,
        units=128,
    )
    assert_parameter_gradients_agree(ours, theirs, 256)


def test_transformer_encoder(device: object) -> None:
    ours = nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8, 0.0), 2, nn.LayerNorm(4)).to(
        device
    )
    theirs = torch.nn.TransformerEncoder(
        torch.nn.TransformerEncoderLayer(4, 2, 8, 0.0),
        2,
        torch.nn.LayerNorm(4),
        enable_nested_tensor=False,
    ).double()
    state = {name: torch.tensor(p.cpu().numpy()) for name, p in ours.state_dict().items()}
    theirs.load_state_dict(state)
    assert_agrees(ours, theirs, [SEQUENCE], device, units=256)


@pytest.mark.parametrize("norm_first", [False, True])
def test_transformer_decoder(norm_first: bool, device: object) -> None:
    ours, theirs = layers(
        "TransformerDecoderLayer",
        4,
        2,
        device=device,
        dim_feedforward=7,
        norm_first=norm_first,
        activation="gelu",
    )
    memory = inputs((5, 3, 4), -1, 1, seed=7)
    mask = np.where(HIDDEN, -np.inf, 0).astype(np.float32)
    assert_agrees(
        lambda x, m: ours(
            x,
            m,
            vkml.tensor(mask, device=device),
            memory_key_padding_mask=vkml.tensor(PADDING[:, 1:], device=device),
        ),
        lambda x, m: theirs(
            x, m, torch.tensor(mask).double(), memory_key_padding_mask=torch.tensor(PADDING[:, 1:])
        ),
        [SEQUENCE, memory],
        device,
        units=256,
    )
    assert_parameter_gradients_agree(ours, theirs, 512)


@pytest.mark.filterwarnings("ignore:enable_nested_tensor:UserWarning")
def test_transformer(device: object) -> None:
    sizes = {"num_encoder_layers": 2, "num_decoder_layers": 1, "dim_feedforward": 8}
    ours, theirs = layers("Transformer", 4, 2, device=device, **sizes)
    target = inputs((5, 3, 4), -1, 1, seed=7)
    assert_agrees(
        lambda x, y: ours(x, y, tgt_mask=ours.generate_square_subsequent_mask(5, device)),
        lambda x, y: theirs(x, y, tgt_mask=theirs.generate_square_subsequent_mask(5).double()),
        [SEQUENCE, target],
        device,
        units=1024,
    )
    with pytest.raises(vkml.ArgumentError, match=r"\[TransformerDecoderLayer\] activation"):
        nn.TransformerDecoderLayer(4, 2, activation="tanh")


PACKED = [([6, 4, 1], True), ([2, 6, 2], False), ([5, 5, 5], True)]


@pytest.mark.parametrize(("lengths", "in_order"), PACKED, ids=str)
@pytest.mark.parametrize(("name", "options"), RECURRENT[:8], ids=str)
def test_packed_sequences(
    name: str, options: dict[str, Any], lengths: list[int], in_order: bool, device: object
) -> None:
    options = {**options, "batch_first": False}
    ours, theirs = layers(name, 4, 5, device=device, **options)
    layer_count = 4 if "bidirectional" in options else 1
    states = [inputs((layer_count, 3, 5), -1, 1, seed=k) for k in (3, 4)][: 1 + (name == "LSTM")]

    def packed(module: Any, layer: Any, x: Any, *start: Any) -> list[Any]:
        sequence = module.pack_padded_sequence(x, lengths, enforce_sorted=in_order)
        output, last = layer(sequence, start if name == "LSTM" else start[0])
        padded, counts = module.pad_packed_sequence(output, padding_value=2.0)
        return [padded, counts, sequence.data, sequence.batch_sizes, *flat(last)]

    assert_agrees(
        lambda *given: packed(nn.utils.rnn, ours, *given),
        lambda *given: packed(torch.nn.utils.rnn, theirs, *given),
        [SEQUENCE, *states],
        device,
    )
    assert_parameter_gradients_agree(ours, theirs, 64)


def test_sequences_of_different_lengths(device: object) -> None:
    parts = [inputs((n, 2), -1, 1) for n in (2, 4, 3)]
    rnn, their_rnn = nn.utils.rnn, torch.nn.utils.rnn
    for side in ("left", "right"):
        for first in (False, True):
            assert_agrees(
                lambda *p, f=first, s=side: rnn.pad_sequence(p, f, -1.0, s),
                lambda *p, f=first, s=side: their_rnn.pad_sequence(p, f, -1.0, s),
                parts,
                device,
            )
    tensors = [vkml.tensor(part, device=device) for part in parts]
    unpacked = rnn.unpack_sequence(rnn.pack_sequence(tensors, enforce_sorted=False))
    for part, back in zip(parts, unpacked, strict=True):
        np.testing.assert_array_equal(back.cpu().numpy(), part)
    padded, _ = rnn.pad_packed_sequence(
        rnn.pack_sequence(tensors, enforce_sorted=False).to(vkml.float16), True, total_length=6
    )
    assert (padded.shape, padded.dtype) == ((3, 6, 2), vkml.float16)
    with pytest.raises(vkml.ArgumentError, match="do not descend"):
        rnn.pack_sequence(tensors)
    with pytest.raises(vkml.ArgumentError, match="do not fit"):
        rnn.pack_padded_sequence(padded, [7, 1, 1], batch_first=True)
    with pytest.raises(vkml.ArgumentError, match="total_length=1"):
        rnn.pad_packed_sequence(rnn.pack_sequence(tensors[1:]), total_length=1)
    with pytest.raises(vkml.ArgumentError, match="padding_side"):
        rnn.pad_sequence(tensors, padding_side="top")


IMAGE, LINE = inputs((2, 4, 6, 5), -1, 1), inputs((2, 4, 9), -1, 1)
PLAIN: list[tuple[str, tuple[Any, ...], dict[str, Any], np.ndarray]] = [
    ("Conv1d", (4, 6, 3), {"padding": "same"}, LINE),
    ("ConvTranspose1d", (4, 6, 3), {"stride": 2, "groups": 2}, LINE),
    ("ConvTranspose2d", (4, 6, (3, 2)), {"stride": 2, "output_padding": 1}, IMAGE),
    ("Unfold", (2,), {"stride": 2}, IMAGE),
    ("GroupNorm", (2, 4), {}, IMAGE),
    ("InstanceNorm2d", (4,), {"affine": True}, IMAGE),
    ("InstanceNorm1d", (4,), {}, LINE),
    ("LocalResponseNorm", (2,), {}, IMAGE),
    ("RMSNorm", (5,), {"eps": 1e-6}, IMAGE),
    ("MaxPool1d", (3,), {"stride": 2}, LINE),
    ("AvgPool1d", (2,), {}, LINE),
    ("AvgPool2d", (3, 2), {"ceil_mode": True}, IMAGE),
    ("LPPool1d", (2, 3), {}, LINE),
    ("LPPool2d", (2, 2), {}, IMAGE),
    ("AdaptiveAvgPool1d", (4,), {}, LINE),
    ("AdaptiveAvgPool2d", ((4, 2),), {}, IMAGE),
    ("AdaptiveMaxPool1d", (4,), {}, LINE),
    ("AdaptiveMaxPool2d", (3,), {"return_indices": True}, IMAGE),
    ("Upsample", (), {"scale_factor": 2}, IMAGE),
    ("UpsamplingNearest2d", (), {"scale_factor": 2}, IMAGE),
    ("UpsamplingBilinear2d", ((9, 7),), {}, IMAGE),
    ("Softmax2d", (), {}, IMAGE),
    ("PixelShuffle", (2,), {}, IMAGE),
    ("PixelUnshuffle", (1,), {}, IMAGE),
    ("ChannelShuffle", (2,), {}, IMAGE),
    ("ConstantPad1d", (2, 1.5), {}, LINE),
    ("ConstantPad2d", ((1, 0, 2, 1), 1.5), {}, IMAGE),
    ("ZeroPad1d", (2,), {}, LINE),
    ("ZeroPad2d", (1,), {}, IMAGE),
    ("ReflectionPad1d", (2,), {}, LINE),
    ("ReflectionPad2d", (2,), {}, IMAGE),
    ("ReplicationPad1d", ((1, 3),), {}, LINE),
    ("ReplicationPad2d", (2,), {}, IMAGE),
    ("CircularPad1d", (2,), {}, LINE),
    ("CircularPad2d", ((1, 2, 0, 1),), {}, IMAGE),
]


@pytest.mark.parametrize(
    ("name", "arguments", "options", "array"),
    PLAIN,
    ids=lambda v: "" if isinstance(v, np.ndarray) else str(v),
)
def test_layers(
    name: str,
    arguments: tuple[Any, ...],
    options: dict[str, Any],
    array: np.ndarray,
    device: object,
) -> None:
    ours, theirs = layers(name, *arguments, device=device, **options)
    assert_agrees(ours, theirs, [array], device)
    assert_parameter_gradients_agree(ours, theirs, 64)
    assert repr(ours).startswith(name)


def test_bilinear_and_bags(device: object) -> None:
    ours, theirs = layers("Bilinear", 4, 3, 5, device=device)
    assert_agrees(ours, theirs, [SEQUENCE, inputs((6, 3, 3), -1, 1)], device)
    ours, theirs = layers("EmbeddingBag", 7, 3, device=device, mode="sum")
    bags = np.array([[0, 6, 2], [1, 1, 3]])
    assert_agrees(ours, theirs, [bags], device, gradients=False)


def test_running_statistics_of_instance_norm(device: object) -> None:
    ours = nn.InstanceNorm2d(4, track_running_stats=True).to(device)
    theirs = torch.nn.InstanceNorm2d(4, track_running_stats=True).double()
    for _ in range(2):
        ours(vkml.tensor(IMAGE, device=device))
        theirs(torch.tensor(IMAGE).double())
    assert_close(ours.running_var, theirs.running_var.numpy())
    ours.eval()
    theirs.eval()
    assert_agrees(ours, theirs, [IMAGE], device)


LOSSES: list[tuple[str, dict[str, Any], list[np.ndarray]]] = [
    ("KLDivLoss", {"reduction": "batchmean"}, [SEQUENCE, np.abs(SEQUENCE)]),
    ("HingeEmbeddingLoss", {}, [SEQUENCE, np.where(SEQUENCE > 0, 1, -1)]),
    ("CosineEmbeddingLoss", {"margin": 0.2}, [SEQUENCE[0], SEQUENCE[1], np.array([1, -1, 1])]),
    ("MarginRankingLoss", {}, [SEQUENCE[0, 0, :3], SEQUENCE[1, 0, :3], np.array([1, -1, 1])]),
    ("SoftMarginLoss", {}, [SEQUENCE, np.where(SEQUENCE > 0, 1, -1)]),
    ("TripletMarginLoss", {"swap": True}, [SEQUENCE[0], SEQUENCE[1], SEQUENCE[2]]),
    (
        "MultiLabelMarginLoss",
        {},
        [SEQUENCE[0], np.array([[3, 0, -1, 1], [2, -1, 1, 0], [0, 1, 2, 3]])],
    ),
    ("MultiMarginLoss", {"p": 2}, [SEQUENCE[0], np.array([0, 3, 2])]),
    ("MultiLabelSoftMarginLoss", {}, [SEQUENCE[0], (SEQUENCE[1] > 0).astype(np.float32)]),
    ("PoissonNLLLoss", {"full": True}, [SEQUENCE, np.abs(SEQUENCE) * 4]),
    ("GaussianNLLLoss", {}, [SEQUENCE, SEQUENCE[::-1].copy(), np.abs(SEQUENCE) + 0.1]),
    ("CosineSimilarity", {"dim": 2}, [SEQUENCE, SEQUENCE[::-1].copy()]),
    ("PairwiseDistance", {}, [SEQUENCE, SEQUENCE[::-1].copy()]),
]


@pytest.mark.parametrize(
    ("name", "options", "arrays"), LOSSES, ids=lambda v: "" if isinstance(v, list) else str(v)
)
def test_losses(
    name: str, options: dict[str, Any], arrays: list[np.ndarray], device: object
) -> None:
    ours, theirs = getattr(nn, name)(**options), getattr(torch.nn, name)(**options)
    assert_agrees(ours, theirs, arrays, device)


def test_triplets_of_any_distance(device: object) -> None:
    options = {"distance_function": lambda a, b: ((a - b) ** 2).sum(-1), "swap": True}
    ours = nn.TripletMarginWithDistanceLoss(**options)
    theirs = torch.nn.TripletMarginWithDistanceLoss(**options)
    assert_agrees(ours, theirs, list(SEQUENCE[:3]), device)


def test_ctc_layer(device: object) -> None:
    ours, theirs = nn.CTCLoss(), torch.nn.CTCLoss()
    targets = np.array([[1, 2], [2, 2], [3, 1]])
    lengths = [2, 2, 1]
    assert_agrees(
        lambda x, t: ours(vkml.log_softmax(x, 2), t, [6, 6, 5], lengths),
        lambda x, t: theirs(torch.log_softmax(x, 2), t, [6, 6, 5], lengths),
        [SEQUENCE, targets],
        device,
        128,
    )


def test_fold_layer(device: object) -> None:
    columns = inputs((2, 8, 12), -1, 1)
    assert_agrees(nn.Fold((4, 5), 2), torch.nn.Fold((4, 5), 2), [columns], device)


def test_max_unpooling(device: object) -> None:
    for name, array, size in (("1d", LINE, None), ("2d", IMAGE, (2, 4, 6, 5))):

        def both(module: Any, x: Any, name: str = name, size: Any = size) -> Any:
            pool = getattr(module, f"MaxPool{name}")(2, return_indices=True)
            return getattr(module, f"MaxUnpool{name}")(2)(*pool(x), output_size=size)

        assert_agrees(lambda x: both(nn, x), lambda x: both(torch.nn, x), [array], device)


def test_parameter_dict() -> None:
    ours = nn.ParameterDict({"a": vkml.ones(2), "b": nn.Parameter(vkml.zeros(3))})
    ours["c"] = vkml.ones(1)
    del ours["a"]
    ours["b"] = vkml.ones(4)
    assert (sorted(ours.keys()), len(ours), "a" in ours) == (["b", "c"], 2, False)
    assert sorted(name for name, _ in ours.named_parameters()) == ["b", "c"]
    assert [tuple(value.shape) for _, value in sorted(ours.items())] == [(4,), (1,)]
    assert all(value.requires_grad for value in ours.values())
    assert "(b): Parameter" in repr(ours)


DROPOUTS = ["Dropout1d", "Dropout2d", "AlphaDropout", "FeatureAlphaDropout"]


@pytest.mark.parametrize("name", DROPOUTS)
def test_dropout_of_channels_and_with_moments_kept(name: str, device: object) -> None:
    vkml.manual_seed(5)
    axes = 1 if name == "Dropout1d" else 2
    x = vkml.randn(40, 50, *(6,) * axes, device=device)
    layer = getattr(nn, name)(0.3)
    y = layer(x).cpu().numpy()
    by_channel = y.reshape(40 * 50, -1)
    changed = y != x.cpu().numpy()
    if name.startswith("Dropout"):
        dropped = (by_channel == 0).all(1)
        np.testing.assert_allclose(
            by_channel[~dropped], x.cpu().numpy().reshape(2000, -1)[~dropped] / 0.7, rtol=1e-5
        )
        assert abs(dropped.mean() - 0.3) < 0.04
    else:
        assert changed.all()  # everything is scaled
        assert abs(y.mean()) < 0.05
        assert abs(y.std() - 1) < 0.05
        limit = -1.7580993408473766  # of SELU
        lowest = np.isclose(by_channel, 0.7 * limit * (0.7 * (1 + 0.3 * limit**2)) ** -0.5)
        share = lowest.all(1).mean() if name.startswith("Feature") else lowest.mean()
        assert abs(share - 0.3) < 0.04
    assert layer.eval()(x) is x
    with pytest.raises(vkml.ArgumentError, match=f"{name}.* p is 2"):
        getattr(nn, name)(2)


def test_gumbel_softmax(device: object) -> None:
    vkml.manual_seed(6)
    logits = vkml.tensor([0.0, 1.0, 2.0], device=device, requires_grad=True)
    many = logits.expand(6000, 3)
    hard = nn.functional.gumbel_softmax(many, hard=True)
    share = hard.detach().mean(0).cpu().numpy()
    np.testing.assert_allclose(share, np.exp([0, 1, 2]) / np.exp([0, 1, 2]).sum(), atol=0.03)
    assert hard.detach().sum(1).cpu().numpy() == pytest.approx(np.ones(6000), abs=1e-6)
    (hard[:, 0].sum()).backward()
    assert np.isfinite(logits.grad.cpu().numpy()).all()
    soft = nn.functional.gumbel_softmax(many.detach(), tau=0.5, dim=0)
    np.testing.assert_allclose(soft.sum(0).cpu().numpy(), np.ones(3), rtol=1e-4)
