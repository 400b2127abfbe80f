"""Options of tensor functions that scripts for PyTorch use, compared with PyTorch."""

import numpy as np
import pytest

import vkml
from checking import exact, inputs
from torch_agreement import assert_agrees, torch

A = inputs((3, 4), -2, 2)
B = inputs((3, 4), -2, 2, seed=1)
LINE = inputs((6,), -2, 2, seed=2)
ROWS = np.array([[0, 1, 2, 0]], np.int64)
COUNTS = np.array([2, 0, 3], np.int64)
NONFINITE = np.array([np.nan, np.inf, -np.inf, 1], np.float32)

# Each takes the module and its tensors; in-place methods get copies.
OPTIONS = {
    "clamp_ max": (lambda t, a: a.clone().clamp_(max=0.5), [A]),
    "clamp_ min": (lambda t, a: a.clone().clamp_(min=-0.5), [A]),
    "clip_ min": (lambda t, a: a.clone().clip_(min=0.25), [A]),
    "add_ alpha": (lambda t, a, b: a.clone().add_(b, alpha=3), [A, B]),
    "sub_ alpha": (lambda t, a, b: a.clone().sub_(b, alpha=3), [A, B]),
    "logit_ eps": (lambda t, a: (a * 0.1 + 0.5).logit_(0.2), [A]),
    "max of two": (lambda t, a, b: t.max(a, b), [A, B]),
    "min of two": (lambda t, a, b: a.min(b), [A, B]),
    "max other": (lambda t, a, b: a.max(other=b), [A, B]),
    "atleast_1d": (lambda t, a, b: t.atleast_1d(a, b.sum()), [A, B]),
    "atleast_2d": (lambda t, a, b: t.atleast_2d([a[0], b]), [A, B]),
    "atleast_3d": (lambda t, a, b: t.atleast_3d(a, b[0]), [A, B]),
    "nuclear norm": (lambda t, a: t.norm(a, "nuc"), [A]),
    "diff prepend": (lambda t, a, b: t.diff(a, prepend=b), [A, B]),
    "diff append": (lambda t, a, b: t.diff(a, 2, 0, append=b), [A, B]),
    "diag_embed dims": (lambda t, a: t.diag_embed(a, 1, 0, 2), [A]),
    "diag_embed dims exchanged": (lambda t, a: t.diag_embed(a, 1, 2, 0), [A]),
    "einsum sublists": (lambda t, a, b: t.einsum(a, [0, 1], b, [2, 1], [0, 2]), [A, B]),
    "einsum without a result": (lambda t, a, b: t.einsum(a, [1, 0], b, [1, 2]), [A, B]),
    "einsum ellipsis": (lambda t, a: t.einsum(a, [..., 5], [5, ...]), [A]),
    "cov aweights": (lambda t, a, w: t.cov(a, aweights=w.abs()), [A, A[0]]),
    "cat with nothing": (lambda t, a: t.cat([a[0, :0], a, a]), [A]),
    "swapaxes names": (lambda t, a: t.swapaxes(a, axis0=0, axis1=1), [A]),
    "addmv names": (lambda t, a, x: t.addmv(a[:, 0], mat=a, vec=x), [A, A[1]]),
    "dot name": (lambda t, a, b: t.dot(a[0], tensor=b[0]), [A, B]),
    "take name": (lambda t, a, i: a.take(index=i), [A, ROWS]),
    "baddbmm names": (
        lambda t, a, b: t.baddbmm(t.zeros_like(a[None, :, :3]), batch1=a[None], batch2=b.T[None]),
        [A, B],
    ),
}
CHOICES = {
    "div_ rounding_mode": (lambda t, a: a.clone().div_(0.3, rounding_mode="floor"), [A]),
    "round_ decimals": (lambda t, a: a.clone().round_(decimals=1), [A]),
    "nan_to_num_": (lambda t, a: a.clone().nan_to_num_(posinf=3.0, neginf=-3.0), [NONFINITE]),
    "nan_to_num_ nan": (lambda t, a: a[:1].clone().nan_to_num_(), [NONFINITE]),
    "scatter_ value": (lambda t, a, i: a.clone().scatter_(0, i, value=2.0), [A, ROWS]),
    "where of one": (lambda t, a: t.where(a > 0), [A]),
    "repeat_interleave of counts": (lambda t, c: t.repeat_interleave(c), [COUNTS]),
    "index True": (lambda t, a: (a[True], a[False], a[0, True]), [A]),
    "cov fweights": (lambda t, a, c: t.cov(a[:, :3], fweights=c + 1), [A, COUNTS]),
    "logsumexp of integers": (lambda t, c: t.logsumexp(c, 0), [COUNTS]),
    "isin elements": (
        lambda t, c: t.isin(elements=c, test_elements=c[:1], assume_unique=True),
        [COUNTS],
    ),
    "histogram method": (lambda t, a: a.histogram(4, range=(-2.0, 2.0), density=True), [LINE]),
    "histogram weight": (lambda t, a: a.histogram(4, range=(-2.0, 2.0), weight=a), [LINE]),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_options(name, device):
    function, arrays = OPTIONS[name]
    if name == "nuclear norm" and str(device) != "cpu":
        pytest.skip("factorisations run on the CPU")
    assert_agrees(lambda *a: function(vkml, *a), lambda *a: function(torch, *a), arrays, device)


@pytest.mark.parametrize("name", CHOICES)
def test_options_without_gradient(name, device):
    function, arrays = CHOICES[name]
    if name.startswith("histogram"):
        # PyTorch has them in one dtype alone.
        expected = function(torch, *(torch.tensor(a) for a in arrays))
        found = function(vkml, *(vkml.tensor(a, device=device) for a in arrays))
        for ours, theirs in zip(found, expected, strict=True):
            np.testing.assert_allclose(exact(ours), theirs.numpy(), rtol=1e-6)
        return
    assert_agrees(
        lambda *a: function(vkml, *(x.detach() for x in a)),
        lambda *a: function(torch, *(x.detach() for x in a)),
        arrays,
        device,
        gradients=False,
    )


def test_in_place_options_change_the_tensor_for_every_name(device):
    x = vkml.tensor([-1.0, 3.0], device=device)
    name = x
    x.clamp_(max=2.0).add_(x, alpha=2)
    assert name.tolist() == [-3.0, 6.0]


def test_copy_takes_pytorchs_names(device):
    x = vkml.zeros(2, device=device)
    assert x.copy_(src=vkml.ones(2, device=device), non_blocking=True).tolist() == [1, 1]


def test_searchsorted_takes_an_order(device):
    values = vkml.tensor([3.0, 1.0, 2.0], device=device)
    order = vkml.argsort(values)
    assert vkml.searchsorted(values, vkml.tensor(2.5), sorter=order, out_int32=True).item() == 2
    assert vkml.bucketize(2.5, vkml.sort(values).values, out_int32=True).item() == 2


def test_uniform_takes_pytorchs_names(device):
    x = vkml.empty(100, device=device).uniform_(**{"from": 1.0, "to": 2.0})
    assert x.min().item() >= 1
    assert x.max().item() < 2


def test_einsum_sublists_name_what_is_wrong():
    with pytest.raises(vkml.ArgumentError, match=r"\[einsum\] axis 60 is not in \[0, 51\]"):
        vkml.einsum(vkml.ones(2), [60])


def test_diag_embed_refuses_one_axis_twice():
    with pytest.raises(vkml.ArgumentError, match=r"\[diag_embed\]"):
        vkml.diag_embed(vkml.ones(2), 0, 1, -1)


def test_histc_refuses_ends_in_the_wrong_order(device):
    with pytest.raises(vkml.ArgumentError, match=r"min 2\.0+ exceeds max 1\.0+"):
        vkml.histc(vkml.ones(3, device=device), 3, 2, 1)


@pytest.mark.parametrize(
    "write",
    [
        lambda x, i, v: x.scatter(0, i, v),
        lambda x, i, v: x.scatter_add(0, i, v),
        lambda x, i, v: x.scatter_reduce(0, i, v, "sum"),
        lambda x, i, v: x.index_add(0, i, v),
        lambda x, i, v: x.index_copy(0, i, v),
        lambda x, i, v: x.index_put((i,), v),
        lambda x, i, v: x.index_reduce(0, i, v, "amax"),
    ],
)
def test_a_source_of_another_dtype_is_refused_and_not_truncated(write, device):
    x = vkml.zeros(2, dtype=vkml.int32, device=device)
    index = vkml.tensor([0], device=device)
    with pytest.raises(vkml.DTypeError, match=r"the tensor is .*int32, the source .*float32"):
        write(x, index, vkml.tensor([2.9], device=device))
    assert x.tolist() == [0, 0]


# Linear algebra.

SQUARE = inputs((3, 3), -2, 2, seed=4) + 3 * np.eye(3, dtype=np.float32)
WIDE = inputs((2, 4), -2, 2, seed=5)
LINALG = {
    "solve left": (lambda t, a, b: t.linalg.solve(a, b, left=False), [SQUARE, A.T.copy()]),
    "solve left of a vector": (
        lambda t, a, b: t.linalg.solve(a, b[None], left=False),
        [SQUARE, A[:, 0].copy()],
    ),
    "eigvalsh U": (lambda t, a: t.linalg.eigvalsh(a, UPLO="U"), [SQUARE]),
    "eigh U": (lambda t, a: t.linalg.eigh(a, "U")[1] ** 2, [SQUARE]),
    "pinv rcond": (lambda t, a: t.linalg.pinv(a, rcond=1e-3), [WIDE]),
    "pinv atol": (lambda t, a: t.linalg.pinv(a, atol=0.01), [WIDE]),
    "pinv hermitian": (lambda t, a: t.linalg.pinv(a + a.T, hermitian=True), [SQUARE]),
}


@pytest.mark.parametrize("name", LINALG)
def test_linalg_options(name):
    function, arrays = LINALG[name]
    if name == "solve left of a vector":
        arrays = [arrays[0], arrays[1]]
    assert_agrees(
        lambda *a: function(vkml, *a),
        lambda *a: function(torch, *a),
        arrays,
        vkml.cpu,
        units=512,
    )


def test_svd_gives_full_matrices_by_default():
    left, values, right = vkml.linalg.svd(vkml.tensor(WIDE))
    assert (left.shape, values.shape, right.shape) == ((2, 2), (2,), (4, 4))
    np.testing.assert_allclose(exact(right @ right.T), np.eye(4), atol=1e-6)
    tall = vkml.linalg.svd(vkml.tensor(WIDE.T.copy()))
    assert tall.U.shape == (4, 4)
    assert tall.Vh.shape == (2, 2)


def test_pinv_with_an_absolute_limit_drops_what_is_below_it():
    x = np.diag([4.0, 1e-2]).astype(np.float32)
    expected = torch.linalg.pinv(torch.tensor(x), atol=0.1).numpy()
    np.testing.assert_allclose(exact(vkml.linalg.pinv(vkml.tensor(x), atol=0.1)), expected)
    assert vkml.linalg.matrix_rank(vkml.tensor(x), atol=0.1).item() == 1
    assert vkml.linalg.matrix_rank(vkml.tensor(x), hermitian=True).item() == 2


def test_eigh_reads_one_triangle():
    x = np.array([[1.0, 5.0], [0.0, 2.0]], np.float32)
    for triangle in ("L", "U"):
        expected = np.linalg.eigvalsh(x, triangle)
        np.testing.assert_allclose(
            exact(vkml.linalg.eigvalsh(vkml.tensor(x), triangle)), expected, rtol=1e-6
        )
    with pytest.raises(vkml.ArgumentError, match="UPLO is 'X'"):
        vkml.linalg.eigh(vkml.tensor(x), "X")


# The table of docs/differences.md.

YIELDING = [
    *(("uint8", "int32"), ("uint8", "int64"), ("int32", "int64"), ("float16", "bfloat16")),
    *(("float16", "float32"), ("float16", "float64"), ("bfloat16", "float16")),
    *(("bfloat16", "float32"), ("bfloat16", "float64"), ("float32", "float64")),
]
DTYPES = ["bool", "uint8", "int32", "int64", "float16", "bfloat16", "float32", "float64"]


@pytest.mark.parametrize("of_vector", DTYPES)
@pytest.mark.parametrize("of_number", DTYPES)
def test_promotion_differs_from_pytorch_as_documented(of_vector, of_number):
    def total(library):
        vector = library.ones(2, dtype=getattr(library, of_vector))
        return (vector + library.ones((), dtype=getattr(library, of_number))).dtype

    found, expected = str(total(vkml)).split(".")[1], str(total(torch)).split(".")[1]
    assert (found != expected) == ((of_vector, of_number) in YIELDING)
    # Shapes do not count.
    same = vkml.ones(2, dtype=getattr(vkml, of_vector)) + vkml.ones(
        2, dtype=getattr(vkml, of_number)
    )
    assert total(vkml) is same.dtype


def test_numbers_yield_as_documented():
    assert (vkml.ones(1, dtype=vkml.bool) + 2).dtype is vkml.int32
    assert (vkml.ones(1, dtype=vkml.float16) + 2.5).dtype is vkml.float16


def test_dtypes_of_indices_are_as_documented(device):
    x = vkml.ones(2, 3, device=device)
    for indices in (
        *(x.argmax(1), x.max(1).indices, x.sort().indices, x.topk(1).indices, x.argsort()),
        *(x.count_nonzero(), vkml.searchsorted(x[0], x[1])),
    ):
        assert indices.dtype is vkml.int32
    assert x.nonzero().dtype is vkml.int64
    counts = vkml.tensor([1, 1], dtype=vkml.int32, device=device)
    assert vkml.bincount(counts, counts).dtype is vkml.int32
    assert vkml.square(vkml.ones(1, dtype=vkml.bool, device=device)).dtype is vkml.bool


def test_conversions_take_pytorchs_flags(device):
    x = vkml.ones(2)
    assert x.to(device, non_blocking=True).device == device
    assert x.to(device, vkml.float64, True).dtype is vkml.float64
    assert x.to(vkml.float32, copy=True) is not x
    y = x.to(vkml.float32, copy=True)
    y.add_(1)
    assert x.tolist() == [1, 1]
    model = vkml.nn.Linear(1, 1).to(device, non_blocking=True)
    assert model.weight.device == device


CONVERTED = {
    "softmax": lambda t, x: t.softmax(x, -1, dtype=t.float32),
    "log_softmax": lambda t, x: x.log_softmax(-1, dtype=t.float32),
    "norm": lambda t, x: t.norm(x, dtype=t.float32),
    "nanmean": lambda t, x: t.nanmean(x, dtype=t.float32),
    "nansum": lambda t, x: t.nansum(x, dtype=t.float32),
    "vector_norm": lambda t, x: t.linalg.vector_norm(x, dtype=t.float32),
    "matrix_norm": lambda t, x: t.linalg.matrix_norm(x, 1, (1, 0), dtype=t.float32),
    "full_like": lambda t, x: t.full_like(x, 2.0, dtype=t.float32, requires_grad=True).detach(),
}


@pytest.mark.parametrize("name", CONVERTED)
def test_dtypes_to_compute_in(name, device):
    found = CONVERTED[name](vkml, vkml.tensor(A, device=device).to(vkml.float16))
    expected = CONVERTED[name](torch, torch.tensor(A).half())
    assert found.dtype is vkml.float32
    np.testing.assert_allclose(exact(found), expected.numpy(), rtol=1e-5)


@pytest.mark.parametrize("axes", [(0, 1), (1, 2), (2, 0), (-1, -3)])
@pytest.mark.parametrize("keep", [False, True])
def test_matrix_norms_over_any_two_axes(axes, keep):
    x = inputs((2, 3, 4), -1, 1)
    for order in ("fro", 1, np.inf, 2):
        found = vkml.linalg.matrix_norm(vkml.tensor(x), order, axes, keep)
        expected = torch.linalg.matrix_norm(torch.tensor(x), order, axes, keep).numpy()
        assert found.shape == expected.shape
        np.testing.assert_allclose(exact(found), expected, rtol=1e-5)


def test_matrices_at_the_top_have_pytorchs_names():
    x = vkml.tensor([[2.0, 1.0], [1.0, 3.0]])
    for call in (vkml.inverse, vkml.det, vkml.logdet, vkml.matrix_exp, vkml.cholesky):
        assert call(input=x).shape[:1] in ((), (2,))
    assert vkml.matrix_power(input=x, n=2).tolist() == [[5, 5], [5, 10]]
    assert vkml.slogdet(input=x).sign.item() == 1
    pinverse = vkml.pinverse(input=x, rcond=1e-6)
    np.testing.assert_allclose(exact(pinverse), exact(vkml.inverse(x)), rtol=1e-6)


def test_scans_in_place_take_a_dtype(device):
    x = vkml.ones(3, device=device)
    assert x.cumsum_(0, dtype=vkml.float64).tolist() == [1, 2, 3]
    assert x.cumprod_(0, dtype=vkml.float64).tolist() == [1, 2, 6]
