"""Every operator on sample inputs of every kind, on every device.

The specification is one table: the rows of `elementwise_references` and the cases of
`structural_cases`, with references, dtypes and bounds; `sample_kinds` says what kinds there are.
Sizes, special values, dtypes and layouts of elementwise operators are in `test_elementwise.py`;
here are the kinds that differ from operator to operator.
"""

import warnings

import numpy as np
import pytest

import vkml
from case import Case
from checking import assert_close, check, exact, wide
from sample_kinds import LARGE, REPEATED, SIZES, VALUES, extremes
from structural_cases import CASES
from test_elementwise import FLOAT_NAMES, ROWS, check_values, operands

NAMES = sorted({case.name for case in CASES})

# What is not asked of operators, and why: names, kinds, reason.
LEFT_OUT: list[tuple[set[str], set[str], str]] = [
    (
        {"broadcast_to", "broadcast_tensors", "einsum", "unflatten", "unique_consecutive"},
        set(SIZES),
        "what the cases call, or compare with, is of one shape",
    ),
    ({"diag_embed", "trace", "fold", "unfold"}, {"empty"}, "NumPy's part of the reference refuses"),
    ({"trace"}, {"one element"}, "NumPy's part of the reference refuses"),
    ({"max_pool2d_with_indices", "take_along_axis"}, {"empty"}, "the reference refuses"),
    (
        {"gather", "index_add", "index_copy", "index_fill", "index_put", "index_select"}
        | {"scatter", "scatter_add", "scatter_reduce"},
        {"empty", "one element"},
        "positions that the cases name do not exist there",
    ),
    (
        {"scaled_dot_product_attention"},
        {"NaN and infinities"},
        "a query whose visible scores are all -inf gives NaN without a mask, and 0 with one",
    ),
    ({"index_fill"}, {"odd", "large"}, "NumPy's part of the reference is of one shape"),
    ({"masked_scatter"}, {"large"}, "the case has fewer elements than the mask takes"),
    ({"searchsorted", "bucketize"}, {"odd", "large", *VALUES}, "an operand has to be sorted"),
    ({"cumprod", "prod"}, {"large"}, "a thousand factors leave float32's range"),
    (
        {"linear_recurrence"},
        {"large", "infinities", "NaN and infinities"},
        "a scan multiplies coefficients before values: past float32's range, and 0 * inf",
    ),
    ({"quantile"}, {"infinities"}, "NumPy subtracts infinities from each other"),
    ({"einsum"}, {"infinities", "NaN and infinities"}, "0 * inf depends on the order of products"),
    (
        {"conv_transpose2d"},
        set(VALUES),
        "products past the edge of what it spreads are left out, or of 0, by device",
    ),
    ({"split", "pad"}, {"no columns"}, "the case or NumPy's part takes elements from there"),
    (
        {"argsort", "cumprod", "cumsum", "logsumexp", "nonzero", "one_hot"},
        {"0-d"},
        "NumPy gives numbers without axes one",
    ),
]
# What operators refuse and their references take: names, kinds, reason.
REFUSED: list[tuple[set[str], set[str], str]] = [
    ({"one_hot"}, {"empty", "no columns"}, "the largest class says how many there are"),
    ({"histogram"}, {"no columns"}, "bins have two edges"),
    ({"fold", "layer_norm", "narrow", "split"}, {"no columns"}, "the case says the extent"),
    ({"conv_transpose2d"}, {"no columns"}, "less than nothing remains of the axis"),
    ({"median"}, {"empty", "no columns"}, "no element is in the middle"),
    ({"logsumexp"}, {"empty", "no columns"}, "no element is the largest"),
    ({"pad"}, {"empty"}, "nothing is there to be repeated"),
    ({"scaled_dot_product_attention"}, {"one element"}, "the mask has more heads than that"),
    (
        {"all", "amax", "amin", "any", "argmax", "argmin", "log_softmax"}
        | {"nansum", "prod", "softmax", "sum"},
        {"0-d"},
        "the case names an axis",
    ),
]
KINDS = SIZES | VALUES | REPEATED


def outcome_of_reference(case: Case, arrays: list) -> np.ndarray | None:
    """What NumPy says; None where it refuses."""
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return np.asarray(case.reference(*(wide(array) for array in arrays)))
    except (ValueError, IndexError, TypeError, ZeroDivisionError):
        return None


def applies(case: Case, kind: str) -> bool:
    """Whether a kind changes anything of a case."""
    if len(case.arrays) == 0:
        return False
    changed = KINDS[kind](case.arrays)
    return any(
        new.shape != old.shape or not np.array_equal(new, old)
        for new, old in zip(changed, case.arrays, strict=True)
    )


def compare(case: Case, arrays: list, device: object, kind: str) -> bool:
    """Checks one call; False where NumPy refuses the arrays, or the operator as REFUSED says."""
    expected = outcome_of_reference(case, arrays)
    tensors = [vkml.tensor(array.copy(order="C"), device=device) for array in arrays]
    if kind in REPEATED:
        tensors = [
            tensor[:1].broadcast_to(tensor.shape)
            if tensor.dtype == vkml.float32 and tensor.ndim and tensor.numel()
            else tensor
            for tensor in tensors
        ]
    try:
        result = case.function(*tensors)
        found = exact(result)
    except vkml.VkmlError:
        if expected is not None and not is_in(REFUSED, case.name, kind):
            raise
        return False
    if expected is None:
        return False
    assert found.shape == expected.shape, (str(case), kind)
    if not np.issubdtype(expected.dtype, np.floating):
        np.testing.assert_array_equal(found, expected, f"{case}: {kind}")
        return True
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(
        np.where(finite, 0, found), np.where(finite, 0, expected), f"{case}: {kind}"
    )
    scale = np.max(np.abs(expected), initial=1.0, where=finite)
    # A rounding for each addend, at worst, where a case that has few was checked for a few.
    growth = LARGE / 32 if kind == "large" else 1
    bound = max(case.units, 2) * growth * 2.0**-23 * scale
    np.testing.assert_allclose(
        found[finite], expected[finite], rtol=0, atol=bound, err_msg=f"{case}: {kind}"
    )
    return True


def is_in(listed: list[tuple[set[str], set[str], str]], name: str, kind: str) -> bool:
    return any(name in names and kind in kinds for names, kinds, _ in listed)


def is_left_out(name: str, kind: str) -> bool:
    return is_in(LEFT_OUT, name, kind)


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("name", NAMES)
def test_structural_operators(name: str, kind: str, device: object) -> None:
    compared = [
        compare(case, KINDS[kind](case.arrays), device, kind)
        for case in CASES
        if case.name == name and applies(case, kind) and not is_left_out(name, kind)
    ]
    # What has an axis, or elements along each, both may refuse.
    if kind not in ("no columns", "0-d"):
        assert any(compared) or not compared, "neither the operator nor its reference takes it"


DIFFERENTIABLE = sorted({case.name for case in CASES if case.gradient and len(case.arrays)})


def without_ties(arrays: list) -> list:
    """Floats moved a little, each by another amount: repeated ones would share gradients."""
    generator = np.random.default_rng(len(arrays))
    return [
        (array + generator.uniform(-0.02, 0.02, array.shape)).astype(array.dtype)
        if np.issubdtype(array.dtype, np.floating)
        else array
        for array in arrays
    ]


@pytest.mark.parametrize("kind", ["one element", "odd"])
@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients_of_other_sizes(name: str, kind: str, device: object) -> None:
    for case in CASES:
        if case.name != name or not case.gradient or is_left_out(name, kind):
            continue
        arrays = without_ties(SIZES[kind](case.arrays))
        if applies(case, kind) and compare(case, arrays, device, kind):
            check(case.function, case.reference, arrays, device, max(case.units, 2))
            return  # cases of one function differ in options, which have tests of their own


GRADIENT_LAYOUTS = {
    "reversed": lambda tensor: tensor.flip(tuple(range(tensor.ndim))).clone(),
    "transposed": lambda tensor: tensor.T.clone(),
}


@pytest.mark.parametrize("layout", list(GRADIENT_LAYOUTS))
@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients_through_views(name: str, layout: str, device: object) -> None:
    """Gradients arrive at the memory that a view reads with steps: those of plain tensors."""
    for case in [case for case in CASES if case.name == name and case.gradient][:2]:
        plain, stored, views = [], [], []
        for array in case.arrays:
            tensor = vkml.tensor(array, device=device)
            if not tensor.dtype.is_floating_point or tensor.ndim == 0:
                plain.append(tensor)
                views.append(tensor)
                continue
            memory = GRADIENT_LAYOUTS[layout](tensor).requires_grad_()
            back = (slice(None, None, -1),) * tensor.ndim
            views.append(memory.T if layout == "transposed" else memory[back])
            stored.append(memory)
            plain.append(tensor.requires_grad_())
        for tensors in (plain, views):
            case.function(*tensors).square().sum().backward()
        leaves = [tensor for tensor in plain if tensor.requires_grad]
        for leaf, memory in zip(leaves, stored, strict=True):
            found = (
                memory.grad.T
                if layout == "transposed"
                else memory.grad.flip(tuple(range(memory.ndim)))
            )
            assert_close(found, exact(leaf.grad), max(case.units, 2))


def test_what_is_left_out_exists() -> None:
    for names, kinds, reason in LEFT_OUT + REFUSED:
        assert names <= set(NAMES)
        assert kinds <= set(KINDS)
        assert reason


NOT_FOR_ENDS = {"bucketize", "histc", "histogram", "searchsorted"}  # their edges are sorted
FOR_FLOATS = {"index_fill", "masked_fill", "max_pool2d"}  # they fill with what integers lack
EXACT = sorted({case.name for case in CASES if case.units == 0 and case.arrays} - NOT_FOR_ENDS)
DTYPES = {
    vkml.float16: np.float16,
    vkml.float32: np.float32,
    vkml.float64: np.float64,
    vkml.uint8: np.uint8,
    vkml.int32: np.int32,
    vkml.int64: np.int64,
}


@pytest.mark.parametrize("dtype", list(DTYPES), ids=str)
@pytest.mark.parametrize("name", EXACT)
def test_ends_of_dtypes(name: str, dtype: object, device: object) -> None:
    """What moves or picks elements keeps each as it is, whatever its value."""
    if name in FOR_FLOATS and not dtype.is_floating_point:
        return
    for case in (case for case in CASES if case.name == name and case.units == 0):
        arrays = [
            extremes(DTYPES[dtype], array.shape)
            if np.issubdtype(array.dtype, np.floating)
            else array
            for array in case.arrays
        ]
        if all(new is old for new, old in zip(arrays, case.arrays, strict=True)):
            continue
        expected = outcome_of_reference(case, arrays)
        assert expected is not None, case
        found = exact(case.function(*(vkml.tensor(array, device=device) for array in arrays)))
        np.testing.assert_array_equal(found, expected, str(case))


VIEWS = {
    "strided": lambda tensor: tensor[:, ::2],
    "negative step": lambda tensor: tensor[::-1, ::-1],
    "transposed": lambda tensor: tensor.transpose(0, 1),
    "zero stride": lambda tensor: tensor[:, :1].broadcast_to((7, 6)),
}
SHAPES = [(7, 6), (1, 6), (7, 1), (6,)]


@pytest.mark.parametrize("name", FLOAT_NAMES)
def test_elementwise_operators_read_views_and_broadcast(name: str, device: object) -> None:
    row = ROWS[name]
    whole = operands(row, (7, 6), vkml.float32, device)
    for view, make in VIEWS.items():
        check_values(row, [make(tensor) for tensor in whole], view)
    if row.arity > 1:
        shapes = [SHAPES[k % len(SHAPES)] for k in range(1, row.arity + 1)]
        mixed = [operands(row, shape, vkml.float32, device)[k] for k, shape in enumerate(shapes)]
        check_values(row, mixed, "broadcast")
