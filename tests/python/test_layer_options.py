"""Options of layers, losses and their functions, compared with PyTorch."""

import warnings

import numpy as np
import pytest

import vkml
import vkml.nn.functional as F
from checking import assert_close, exact, inputs
from torch_agreement import assert_agrees, torch
from vkml import nn

TF = torch.nn.functional

LINES = inputs((2, 4, 7), -2, 2)
IMAGES = inputs((2, 4, 6, 7), -2, 2)


def load_into(ours, theirs):
    ours.load_state_dict({name: value.numpy() for name, value in theirs.state_dict().items()})


def compare_layers(make, arrays, device, call=lambda layer, *a: layer(*a), units=256):
    """Value, gradients of inputs and of parameters of one layer in both libraries."""
    theirs = make(torch.nn).double()
    ours = make(nn)
    load_into(ours, theirs)
    ours.to(device)
    assert_agrees(lambda *a: call(ours, *a), lambda *a: call(theirs, *a), arrays, device, units)
    wanted = dict(theirs.named_parameters())
    for name, parameter in ours.named_parameters():
        if wanted[name].grad is not None:
            assert_close(parameter.grad, wanted[name].grad.numpy(), units)


@pytest.mark.filterwarnings("ignore:Using padding='same'")
@pytest.mark.parametrize("mode", ["zeros", "reflect", "replicate", "circular"])
@pytest.mark.parametrize("padding", [2, "same"])
def test_padding_modes_of_convolutions(mode, padding, device):
    compare_layers(lambda n: n.Conv1d(4, 2, 3, padding=padding, padding_mode=mode), [LINES], device)
    size = padding if padding == "same" else (2, 1)
    compare_layers(
        lambda n: n.Conv2d(4, 2, (4, 3), padding=size, dilation=(1, 2), padding_mode=mode),
        [IMAGES],
        device,
    )


def test_padding_modes_are_positional_as_in_pytorch():
    assert nn.Conv2d(1, 1, 3, 1, 1, 1, 1, True, "circular").padding_mode == "circular"
    with pytest.raises(vkml.ArgumentError, match="padding_mode is 'mirror'"):
        nn.Conv1d(1, 1, 3, padding_mode="mirror")
    with pytest.raises(vkml.ArgumentError, match="pass 'zeros'"):
        nn.ConvTranspose2d(1, 1, 3, padding_mode="reflect")


@pytest.mark.parametrize("length", [13, 14])
def test_output_size_of_transposed_convolutions(length, device):
    compare_layers(
        lambda n: n.ConvTranspose1d(4, 2, 3, 2, 1),
        [LINES],
        device,
        lambda layer, x: layer(x, output_size=[length]),
    )
    compare_layers(
        lambda n: n.ConvTranspose2d(4, 2, 3, 2, 1),
        [IMAGES],
        device,
        lambda layer, x: layer(x, [12, length]),
    )


def test_an_output_size_that_no_padding_gives_is_an_error():
    layer = nn.ConvTranspose1d(4, 2, 3, 2, 1)
    with pytest.raises(vkml.ShapeError, match=r"output_size \(15,\)"):
        layer(vkml.ones(1, 4, 7), output_size=(15,))


NORMS = {
    "BatchNorm1d": (lambda n: n.BatchNorm1d(4, bias=False), LINES),
    "BatchNorm2d": (lambda n: n.BatchNorm2d(4, bias=False), IMAGES),
    "GroupNorm": (lambda n: n.GroupNorm(2, 4, bias=False), LINES),
    "InstanceNorm1d": (lambda n: n.InstanceNorm1d(4, affine=True, bias=False), LINES),
    "InstanceNorm2d": (lambda n: n.InstanceNorm2d(4, affine=True, bias=False), IMAGES),
}


@pytest.mark.parametrize("name", NORMS)
def test_norms_without_offsets(name, device):
    make, array = NORMS[name]
    assert make(nn).bias is None
    try:
        make(torch.nn)
    except TypeError:
        pytest.skip("this PyTorch's norms cannot be without an offset")
    compare_layers(make, [array], device)


ROWS = np.array([[0, 2, 2], [3, 0, 0]], np.int64)


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("limit", [None, 1.0])
@pytest.mark.parametrize("power", [1.0, 2.0])
def test_embedding_options(scaled, limit, power, device):
    compare_layers(
        lambda n: n.Embedding(
            5, 3, 0, max_norm=limit, norm_type=power, scale_grad_by_freq=scaled, sparse=False
        ),
        [ROWS],
        device,
    )


@pytest.mark.parametrize("mode", ["sum", "mean"])
def test_embedding_bag_options(mode, device):
    compare_layers(
        lambda n: n.EmbeddingBag(5, 3, 1.0, 2.0, False, mode, padding_idx=0), [ROWS], device
    )


def test_gradients_of_bags_by_frequency(device):
    # PyTorch's own bags divide by the counts of other rows; its embeddings do not.
    table = inputs((5, 3), -1, 1)
    assert_agrees(
        lambda w: F.embedding_bag(
            vkml.tensor(ROWS, device=device), w, scale_grad_by_freq=True, mode="sum"
        ),
        lambda w: TF.embedding(torch.tensor(ROWS), w, scale_grad_by_freq=True).sum(1),
        [table],
        device,
    )


def test_a_limit_on_norms_changes_the_rows_that_are_looked_up_alone(device):
    table = vkml.full((3, 4), 2.0, device=device)
    F.embedding(vkml.tensor([1], device=device), table, max_norm=1.0)
    norms = table.norm(2, 1).tolist()
    assert norms[0] == norms[2] == 4.0
    assert 0.999 < norms[1] <= 1.0


def test_layers_of_given_tables(device):
    table = vkml.tensor(inputs((4, 3), -1, 1), device=device)
    layer = nn.Embedding.from_pretrained(table, padding_idx=1)
    assert not layer.weight.requires_grad
    np.testing.assert_array_equal(
        exact(layer(vkml.tensor([3, 0], device=device))), exact(table)[[3, 0]]
    )
    bag = nn.EmbeddingBag.from_pretrained(table, freeze=False, mode="sum")
    assert bag.weight.requires_grad
    assert_close(bag(vkml.tensor([[3, 0]], device=device)), exact(table)[[3, 0]].sum(0)[None])
    with pytest.raises(vkml.ShapeError, match="rows and a width"):
        nn.Embedding.from_pretrained(table[0])


WEIGHTS = inputs((3, 4), 0.1, 2, seed=3)
A, B = inputs((3, 4), -2, 2), inputs((3, 4), -2, 2, seed=1)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("loss", ["mse_loss", "l1_loss", "huber_loss"])
def test_weights_of_losses(loss, reduction, device):
    assert_agrees(
        lambda a, b, w: getattr(F, loss)(a, b, reduction=reduction, weight=w.detach()),
        lambda a, b, w: getattr(TF, loss)(a, b, reduction=reduction, weight=w.detach()),
        [A, B, WEIGHTS],
        device,
    )


@pytest.mark.parametrize("loss", ["mse_loss", "l1_loss", "huber_loss", "smooth_l1_loss"])
def test_losses_broadcast_with_a_warning(loss, device):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert_agrees(getattr(F, loss), getattr(TF, loss), [A, B[:, :1].copy()], device)
    with pytest.warns(
        UserWarning, match=rf"\[{loss if loss != 'smooth_l1_loss' else 'huber_loss'}"
    ):
        getattr(F, loss)(vkml.ones(3, 1), vkml.ones(3))


def test_cosine_similarity_broadcasts(device):
    assert_agrees(F.cosine_similarity, TF.cosine_similarity, [A, B[0].copy()], device)


def test_losses_refuse_limits_that_make_no_sense(device):
    x = vkml.zeros(2, device=device)
    with pytest.raises(vkml.ArgumentError, match="delta is -1"):
        F.huber_loss(x, x, delta=-1)
    with pytest.raises(vkml.ArgumentError, match="beta is -1"):
        F.smooth_l1_loss(x, x, beta=-1)


PADS = [(-1, 2), (2, -1), (-2, -1), (1, -1, -1, 2)]


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
@pytest.mark.parametrize("amounts", PADS)
def test_negative_padding_cuts_off(mode, amounts, device):
    array = IMAGES if len(amounts) == 4 else LINES
    assert_agrees(
        lambda x: F.pad(x, amounts, mode), lambda x: TF.pad(x, amounts, mode), [array], device
    )


IN_PLACE = {
    **{
        name: (lambda n, name=name: getattr(n, name)(inplace=True))
        for name in (
            *("ReLU", "ReLU6", "SiLU", "Mish", "SELU", "Hardsigmoid", "Hardswish"),
            *("LeakyReLU", "ELU", "CELU", "Hardtanh", "RReLU"),
        )
    },
    "Threshold": lambda n: n.Threshold(0.1, 0.5, inplace=True),
}


@pytest.mark.parametrize("name", IN_PLACE)
def test_layers_in_place_change_their_input(name, device):
    ours, theirs = IN_PLACE[name](nn).eval(), IN_PLACE[name](torch.nn).eval()
    assert "inplace=True" in repr(ours)
    x = vkml.tensor(A, device=device)
    result = ours(x)
    expected = theirs(torch.tensor(A)).numpy()
    assert_close(x, expected)
    assert_close(result, expected)
    assert_agrees(lambda a: ours(a * 2), lambda a: theirs(a * 2), [A], device)


@pytest.mark.parametrize(
    ("layer", "shape"),
    [
        (lambda: nn.Dropout(0.5, inplace=True), (8, 8)),
        (lambda: nn.Dropout1d(0.5, inplace=True), (8, 8, 2)),
        (lambda: nn.Dropout2d(0.5, inplace=True), (8, 8, 2, 2)),
        (lambda: nn.AlphaDropout(0.5, inplace=True), (8, 8)),
        (lambda: nn.FeatureAlphaDropout(0.5, inplace=True), (8, 8, 2)),
    ],
)
def test_dropout_in_place_changes_its_input(layer, shape, device):
    x = vkml.ones(shape, device=device)
    result = layer()(x)
    assert (x != 1).any().item()
    np.testing.assert_array_equal(exact(x), exact(result))


def test_hardtanh_leaves_integers_integers(device):
    x = vkml.tensor([-3, 0, 5], dtype=vkml.int32, device=device)
    result = F.hardtanh(x, -1, 2)
    assert result.dtype is vkml.int32
    assert result.tolist() == [-1, 0, 2]


# Half precision: sums and squares that it cannot hold.

HALVES = {
    "cosine_similarity": lambda t, f, full: f.cosine_similarity(full(200), full(200), 1),
    "local_response_norm": lambda t, f, full: f.local_response_norm(full(300)[:, :, None], 3),
    "lp_pool1d": lambda t, f, full: f.lp_pool1d(full(300)[:, :4][None], 2, 4),
    "lp_pool2d": lambda t, f, full: f.lp_pool2d(full(300)[:, :4][None, None], 2, (1, 4)),
    "nanmean": lambda t, f, full: t.nanmean(full(300)),
    "cosine_embedding_loss": lambda t, f, full: f.cosine_embedding_loss(
        full(200), full(200), t.ones_like(full(1))[:, 0]
    ),
}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", HALVES)
def test_half_precision_adds_in_float32(name, dtype, device):
    function = HALVES[name]
    x = vkml.full((1, 1000), 1.0, device=device).to(getattr(vkml, dtype)).requires_grad_()
    result = function(vkml, F, lambda value: x * value)
    wanted = function(torch, TF, lambda value: torch.full((1, 1000), float(value)).double())
    assert result.dtype is getattr(vkml, dtype)
    step = 2.0**-10 if dtype == "float16" else 2.0**-7
    np.testing.assert_allclose(
        result.to(vkml.float32).numpy(), wanted.numpy(), rtol=4 * step, atol=4 * step
    )
    result.to(vkml.float32).sum().backward()
    assert np.isfinite(x.grad.to(vkml.float32).numpy()).all()


# Interpolation.


@pytest.mark.parametrize("size", [(3, 4), (9, 5), (6, 14)])
def test_interpolation_by_area(size, device):
    assert_agrees(
        lambda x: F.interpolate(x, size, mode="area"),
        lambda x: TF.interpolate(x, size, mode="area"),
        [IMAGES],
        device,
    )
    assert_agrees(
        lambda x: F.interpolate(x, scale_factor=0.6, mode="area"),
        lambda x: TF.interpolate(x, scale_factor=0.6, mode="area"),
        [LINES],
        device,
    )


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("corners", [False, True])
@pytest.mark.parametrize("size", [(3, 4), (9, 3), (2, 2)])
def test_interpolation_against_aliasing(mode, corners, size, device):
    assert_agrees(
        lambda x: F.interpolate(x, size, mode=mode, align_corners=corners, antialias=True),
        lambda x: TF.interpolate(x, size, mode=mode, align_corners=corners, antialias=True),
        [IMAGES],
        device,
    )


def test_interpolation_says_what_it_does_not_take():
    image = vkml.ones(1, 1, 2, 2)
    with pytest.raises(vkml.ArgumentError, match="antialias is for 'bilinear' and 'bicubic'"):
        F.interpolate(image, 3, antialias=True)
    with pytest.raises(vkml.ArgumentError, match="align_corners is not for mode='area'"):
        F.interpolate(image, 3, mode="area", align_corners=False)
