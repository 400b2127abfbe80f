"""DLPack both ways: right values, memory that lives while it is read, no shared writes."""

import gc
import weakref

import numpy as np
import pytest

import vkml
from checking import exact, inputs

DTYPES = ["bool", "uint8", "int32", "int64", "float16", "float32", "float64"]


class Holder:
    """Hands out an array's capsule, and can be watched."""

    def __init__(self, array: np.ndarray, versioned: bool = True) -> None:
        self.array = array
        self.versioned = versioned

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def __dlpack__(self, **options: object) -> object:
        if options and not self.versioned:
            raise TypeError("an old library takes no arguments")
        return self.array.__dlpack__(**options)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0, 3), (5,), (2, 3, 4, 5)])
def test_values_go_round(dtype: str, shape: tuple, device: object) -> None:
    array = (inputs(shape, -100, 100) > 0 if dtype == "bool" else inputs(shape, 0, 100)).astype(
        dtype
    )
    x = vkml.tensor(array, device=device).cpu()
    there = np.from_dlpack(x)
    assert there.dtype == array.dtype
    np.testing.assert_array_equal(there, array)
    back = vkml.from_dlpack(there.copy(), device=device)
    assert back.device == device
    assert str(back.dtype) == str(x.dtype)
    np.testing.assert_array_equal(exact(back), array)


def test_strides_are_shared_as_they_are() -> None:
    x = vkml.tensor(inputs((4, 6), -1, 1), device="cpu")
    for view in (x.T, x[1:, ::2], x.unsqueeze(1).expand(4, 3, 6), x[::-1]):
        np.testing.assert_array_equal(np.from_dlpack(view), exact(view))
    array = inputs((4, 6), -1, 1)
    for view in (array.T, array[1:, ::2], array[::-1, ::-1], array[2:3]):
        np.testing.assert_array_equal(exact(vkml.from_dlpack(view)), view)
        np.testing.assert_array_equal(exact(vkml.from_dlpack(view) * 2), view * 2)


@pytest.mark.parametrize("versioned", [True, False])
def test_the_array_lives_until_the_tensor_is_gone(versioned: bool) -> None:
    array = inputs((64,), -1, 1).copy()
    expected = array.copy()
    watch = weakref.ref(array)
    x = vkml.from_dlpack(Holder(array, versioned))
    array[0] = expected[0] = 5  # shared, not copied
    del array
    gc.collect()
    assert watch() is not None
    assert (x + 1).tolist() == (expected + np.float32(1)).tolist()
    del x
    gc.collect()
    assert watch() is None


def test_the_memory_lives_until_the_consumer_is_gone() -> None:
    values = inputs((1000,), -1, 1)
    x = vkml.tensor(values, device="cpu")
    there = np.from_dlpack(x)
    del x
    for _ in range(20):  # what would be given the freed memory
        vkml.zeros(1000).realize()
    np.testing.assert_array_equal(there, values)


@pytest.mark.parametrize("options", [{}, {"max_version": (1, 0)}])
def test_a_capsule_never_consumed_is_freed(options: dict) -> None:
    held = []
    for _ in range(12):
        x = vkml.rand(1_000_000, device="cpu").realize()
        capsule = x.__dlpack__(**options)
        del x, capsule
        held.append(vkml.allocated_bytes("cpu"))
    assert held[-1] == held[2]


def test_a_capsule_is_consumed_once() -> None:
    capsule = vkml.ones(3).__dlpack__(max_version=(1, 0))
    assert vkml.from_dlpack(capsule).tolist() == [1, 1, 1]
    with pytest.raises(vkml.ArgumentError, match="consumed before"):
        vkml.from_dlpack(capsule)


def test_what_is_shared_is_not_written_to() -> None:
    x = vkml.zeros(4, device="cpu").realize()
    there = np.from_dlpack(x)
    assert not there.flags.writeable
    x += 1
    x[0] = 9
    assert x.tolist() == [9, 1, 1, 1]
    assert there.tolist() == [0, 0, 0, 0]
    array = np.zeros(4, np.float32)
    y = vkml.from_dlpack(array)
    y += 1
    assert y.tolist() == [1] * 4
    assert array.tolist() == [0] * 4


def test_copies_on_request() -> None:
    x = vkml.zeros(4, device="cpu").realize()
    mine = np.from_dlpack(x, copy=True)
    mine[0] = 5
    assert x.tolist() == [0] * 4
    array = np.zeros(4, np.float32)
    y = vkml.from_dlpack(array, copy=True)
    array[0] = 7
    assert y.tolist() == [0] * 4
    with pytest.raises(BufferError, match="copy"):
        x.__dlpack__(copy=False)


def test_devices() -> None:
    assert vkml.ones(1, device="cpu").__dlpack_device__() == (1, 0)
    others = [info.device for info in vkml.devices() if info.device != vkml.cpu]
    if not others:
        pytest.skip("there is one device")
    x = vkml.tensor([1.0, 2.0], device=others[0])
    assert x.__dlpack_device__() == (7, others[0].index)
    with pytest.raises(vkml.UnsupportedError, match=r"x\.cpu\(\)"):
        x.__dlpack__()
    assert vkml.from_dlpack(x.__dlpack__(dl_device=(1, 0))).tolist() == [1, 2]
    with pytest.raises(vkml.DeviceError, match=r"\(7, 0\)"):
        vkml.from_dlpack(x)


def test_what_is_wrong_is_said() -> None:
    leaf = vkml.ones(2, requires_grad=True)
    with pytest.raises(vkml.AutogradError, match="detach"):
        leaf.__dlpack__()
    with pytest.raises(vkml.DTypeError, match="no vkML dtype"):
        vkml.from_dlpack(np.zeros(2, np.complex64))
    with pytest.raises(vkml.ShapeError, match="rank 5 exceeds kMaxDims=4"):
        vkml.from_dlpack(np.zeros((1, 1, 1, 1, 1)))
    with pytest.raises(vkml.DTypeError, match="__dlpack__"):
        vkml.from_dlpack([1, 2])


def test_bfloat16_keeps_its_bits() -> None:
    torch = pytest.importorskip("torch")
    x = vkml.tensor([1.5, -2.25], dtype=vkml.bfloat16, device="cpu")
    there = torch.from_dlpack(x)
    assert there.dtype == torch.bfloat16
    assert there.tolist() == [1.5, -2.25]
    back = vkml.from_dlpack(there)
    assert back.dtype == vkml.bfloat16
    assert back.tolist() == [1.5, -2.25]
