"""Python numbers on their way into tensors: exact where the dtype holds them, else an error."""

import pytest

import vkml

WIDE = 2**60 + 1


def test_a_full_tensor_of_a_wide_integer_is_exact(device: object) -> None:
    assert vkml.full((2,), 2**40, device=device).tolist() == [2**40] * 2
    assert vkml.full((2,), 2**40).dtype == vkml.int64
    assert vkml.full((2,), 7).dtype == vkml.int32
    assert vkml.full((2,), WIDE, dtype=vkml.int64, device=device).tolist() == [WIDE] * 2
    like = vkml.zeros(2, dtype=vkml.int64, device=device)
    assert vkml.full_like(like, WIDE).tolist() == [WIDE] * 2
    padded = vkml.pad(vkml.full((1,), WIDE, dtype=vkml.int64, device=device), (0, 1), value=3)
    assert padded.tolist() == [WIDE, 3]


def test_a_range_of_wide_integers_is_exact(device: object) -> None:
    wide = vkml.arange(2**60, 2**60 + 3, dtype=vkml.int64, device=device)
    assert wide.tolist() == [2**60, 2**60 + 1, 2**60 + 2]
    assert vkml.arange(2**40, 2**40 + 2, device=device).tolist() == [2**40, 2**40 + 1]
    ends = vkml.arange(-(2**63), 2**63 - 1, 2**63 - 1, dtype=vkml.int64, device=device)
    assert ends.tolist() == [-(2**63), -1, 2**63 - 2]
    assert vkml.arange(5, 0, -2, device=device).tolist() == [5, 3, 1]
    assert vkml.arange(250, 256, dtype=vkml.uint8, device=device).tolist() == [*range(250, 256)]
    assert vkml.arange(3, 3, device=device).tolist() == []
    assert vkml.arange(0, 3, 0.5, device=device).tolist() == [0, 0.5, 1, 1.5, 2, 2.5]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: vkml.full((2,), 2**40, dtype=vkml.int32), r"\[full\] 1099511627776 .* int32"),
        (lambda: vkml.full((2,), 2**70), r"\[full\] 1180591620717411303424 .* 64 bits"),
        (lambda: vkml.tensor(2**70), r"\[tensor\] 1180591620717411303424 .* 64 bits"),
        (lambda: vkml.tensor([1, [2**70][0]]), r"\[tensor\] 1180591620717411303424 .* 64 bits"),
        (lambda: vkml.tensor([1, 300], dtype=vkml.uint8), r"\[tensor\] 300 .* uint8"),
        (lambda: vkml.tensor([1], dtype=vkml.int32) + 2**40, r"\[add\] 1099511627776 .* int32"),
        (
            lambda: vkml.zeros(2, dtype=vkml.uint8) + 300,
            r"\[add\] 300 .* uint8.*0 to 255",
        ),
        (lambda: vkml.zeros(2, dtype=vkml.uint8) * -1, r"\[mul\] -1 does not fit uint8"),
        (lambda: vkml.arange(250, 257, dtype=vkml.uint8), r"\[arange\] 256 .* uint8"),
        (lambda: vkml.arange(0, 5, 0), r"\[arange\] from 0 to 5 by 0 never ends"),
        (lambda: vkml.arange(0.0, 1e300, 1.0, dtype=vkml.int64), r"\[arange\] 1e\+300"),
        (lambda: vkml.arange(0.0, float("inf")), r"\[arange\] .*never ends"),
        (
            lambda: vkml.randint(0, 2**33, (2,), dtype=vkml.int32),
            r"\[randint\] 8589934591 .* int32",
        ),
        (lambda: vkml.zeros(2, dtype=vkml.uint8).copy_(300), r"\[copy_\] 300 .* uint8"),
    ],
)
def test_a_number_that_the_dtype_cannot_hold_is_an_error(make: object, message: str) -> None:
    with pytest.raises(vkml.ArgumentError, match=message):
        make()


def test_an_element_that_the_dtype_cannot_hold_is_an_error(device: object) -> None:
    x = vkml.zeros(3, dtype=vkml.uint8, device=device)
    with pytest.raises(vkml.ArgumentError, match=r"\[setitem\] 300 does not fit uint8"):
        x[0] = 300
    assert x.tolist() == [0, 0, 0]


def test_comparisons_have_an_answer_for_every_number(device: object) -> None:
    x = vkml.tensor([0, 255], dtype=vkml.uint8, device=device)
    assert (x < 300).tolist() == [True, True]
    assert (x == -1).tolist() == [False, False]
    assert (x > -1).tolist() == [True, True]
    assert (vkml.tensor([1], dtype=vkml.int32, device=device) < 2**40).tolist() == [True]


def test_lists_deeper_than_a_tensor_are_an_error() -> None:
    endless: list = []
    endless.append(endless)
    deep: list = [1]
    for _ in range(100_000):
        deep = [deep]
    for data in (endless, deep, [[[[[1]]]]]):
        with pytest.raises(vkml.ShapeError, match=r"rank 5 exceeds kMaxDims=4"):
            vkml.tensor(data)
    assert vkml.tensor([[[[1]]]]).shape == (1, 1, 1, 1)
    while deep != [1]:  # an interpreter before 3.12 frees nested lists recursively
        (deep,) = deep


HUGE = 2**62


@pytest.mark.parametrize(
    "make",
    [
        lambda x: vkml.pad(x, (2**63 - 1, 2**63 - 1)),
        lambda x: vkml.pad(x, (HUGE, HUGE)),
        lambda x: vkml.conv2d(x, x, padding=HUGE),
        lambda x: vkml.conv2d(x, x, padding=2**63 - 1, stride=2**62),
        lambda x: vkml.conv2d(x, x, dilation=HUGE),
        lambda x: vkml.max_pool2d(x, HUGE, padding=HUGE),
        lambda x: vkml.max_pool2d(x, 3, dilation=HUGE),
        lambda x: vkml.avg_pool2d(x, 2**63 - 1, padding=2**63 - 1),
    ],
)
def test_windows_past_64_bits_are_an_error(make: object, device: object) -> None:
    x = vkml.ones(1, 1, 4, 4, device=device)
    with pytest.raises((vkml.ShapeError, vkml.ArgumentError), match=r"\[(pad|conv2d|.*pool2d)\]"):
        make(x)
    assert x.sum().item() == 16
