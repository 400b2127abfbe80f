"""Datasets, loaders, workers, and the reader of IDX files."""

import gzip
import hashlib
import os
import struct

import numpy as np
import pytest

import vkml
from vkml.data import (
    ChainDataset,
    ConcatDataset,
    DataLoader,
    Dataset,
    Generator,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    default_collate,
    random_split,
    read_idx,
)
from vkml.data.fashion_mnist import load_fashion_mnist


class Squares(Dataset):
    """Items (number, its square as an array, a name). Spawned workers import this module."""

    def __init__(self, length, fails_at=None):
        self.length = length
        self.fails_at = fails_at

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        if index == self.fails_at:
            raise LookupError(f"item {index} is broken")
        return index, np.full((2,), index**2, dtype=np.float32), {"name": f"item {index}"}


def rows(count, device):
    x = vkml.tensor(np.arange(count * 2, dtype=np.float32).reshape(count, 2), device=device)
    y = vkml.tensor(np.arange(count), device=device)
    return TensorDataset(x, y)


@pytest.mark.parametrize("drop_last", [False, True])
def test_loader_in_order(drop_last, device):
    loader = DataLoader(rows(10, device), batch_size=4, drop_last=drop_last)
    batches = [(x.tolist(), y.tolist()) for x, y in loader]
    assert len(loader) == len(batches) == (2 if drop_last else 3)
    assert [y for _, y in batches] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]][: len(batches)]
    assert all(x == [[2.0 * i, 2.0 * i + 1] for i in y] for x, y in batches)


def test_shuffled_loader_gives_each_row_once_in_a_new_order_each_pass(device):
    loader = DataLoader(rows(50, device), batch_size=8, shuffle=True, generator=3)
    passes = []
    for _ in range(2):
        order = []
        for x, y in loader:
            assert x.tolist() == [[2.0 * i, 2.0 * i + 1] for i in y.tolist()]
            order += y.tolist()
        assert sorted(order) == list(range(50))
        passes.append(order)
    assert passes[0] != passes[1]
    again = DataLoader(rows(50, device), batch_size=8, shuffle=True, generator=3)
    assert [i for _, y in again for i in y.tolist()] == passes[0]
    again.generator.draws = 1
    assert [i for _, y in again for i in y.tolist()] == passes[1]


def test_shuffling_without_generator_follows_the_global_seed(device):
    orders = []
    for seed in (1, 1, 2):
        vkml.manual_seed(seed)
        loader = DataLoader(rows(30, device), batch_size=30, shuffle=True)
        orders.append(next(iter(loader))[1].tolist())
    assert orders[0] == orders[1] != orders[2]


def test_rows_of_any_shape_and_dtype_are_gathered(device):
    images = np.arange(5 * 2 * 3 * 4).reshape(5, 2, 3, 4).astype(np.uint8)
    dataset = TensorDataset(
        vkml.tensor(images, device=device), vkml.tensor(images[:, 0, 0, 0] > 30, device=device)
    )
    x, y = next(iter(DataLoader(dataset, 5, sampler=[4, 0, 0, 2])))
    np.testing.assert_array_equal(x.numpy(), images[[4, 0, 0, 2]])
    assert y.tolist() == [True, False, False, True]
    assert x.dtype == vkml.uint8


def philox4x64(counter, key):
    """Philox4x64-10 of Salmon et al. (2011): four words from four words and a key of two."""
    for _ in range(10):
        high0, low0 = divmod(0xD2E7470EE14C6C93 * counter[0], 2**64)
        high1, low1 = divmod(0xCA5A826395121157 * counter[2], 2**64)
        counter = [high1 ^ counter[1] ^ key[0], low1, high0 ^ counter[3] ^ key[1], low0]
        key = [(key[0] + 0x9E3779B97F4A7C15) % 2**64, (key[1] + 0xBB67AE8584CAA73B) % 2**64]
    return counter


def test_permutation_orders_a_published_stream():
    words = philox4x64([1, 0, 0, 0], [7, 2]) + philox4x64([2, 0, 0, 0], [7, 2])
    generator = Generator(7)
    generator.draws = 2
    assert generator.permutation(8).tolist() == sorted(range(8), key=words.__getitem__)
    assert generator.permutation(0).tolist() == []
    assert generator.draws == 4
    with pytest.raises(vkml.ArgumentError):
        Generator(-1)


def test_items_are_collated_by_structure():
    number, square, names = next(iter(DataLoader(Squares(5), batch_size=3)))
    assert number.tolist() == [0, 1, 2]
    assert number.dtype == vkml.int64
    assert square.tolist() == [[0.0, 0.0], [1.0, 1.0], [4.0, 4.0]]
    assert names == {"name": ["item 0", "item 1", "item 2"]}
    assert default_collate([0.5, 1.5]).dtype == vkml.float32
    assert default_collate([True, False]).dtype == vkml.bool
    assert default_collate([vkml.zeros(2), vkml.ones(2)]).tolist() == [[0.0, 0.0], [1.0, 1.0]]
    with pytest.raises(vkml.ShapeError, match="lengths"):
        default_collate([[1], [1, 2]])
    with pytest.raises(TypeError, match="object"):
        default_collate([object()])


def test_collate_function_of_ones_own():
    loader = DataLoader(Squares(4), batch_size=2, collate_fn=lambda items: [i[0] for i in items])
    assert list(loader) == [[0, 1], [2, 3]]


def shared_memory_blocks():
    return {name for name in os.listdir("/dev/shm") if name.startswith("vkml_")}


@pytest.mark.skipif(not os.path.isdir("/dev/shm"), reason="shared memory cannot be listed here")
def test_workers_give_the_same_batches_and_leave_nothing_behind():
    before = shared_memory_blocks()
    alone = list(DataLoader(Squares(20), batch_size=3, shuffle=True, generator=5))
    loader = DataLoader(Squares(20), batch_size=3, shuffle=True, generator=5, num_workers=2)
    shared = list(loader)
    assert [b[0].tolist() for b in shared] == [b[0].tolist() for b in alone]
    assert [b[1].tolist() for b in shared] == [b[1].tolist() for b in alone]
    assert [b[2] for b in shared] == [b[2] for b in alone]

    early = iter(loader)
    next(early)
    early.close()
    broken = DataLoader(Squares(20, fails_at=7), batch_size=3, num_workers=2)
    with pytest.raises(LookupError, match="item 7 is broken"):
        list(broken)
    assert shared_memory_blocks() <= before


@pytest.mark.parametrize(
    "settings",
    [{"batch_size": 0}, {"num_workers": -1}, {"shuffle": True, "sampler": [0]}],
)
def test_impossible_loaders_are_refused(settings):
    with pytest.raises(vkml.ArgumentError):
        DataLoader(Squares(3), **settings)


def test_tensor_dataset_needs_equal_lengths(device):
    with pytest.raises(vkml.ShapeError, match=r"\(3,\), \(2,\)"):
        TensorDataset(vkml.zeros(3, device=device), vkml.zeros(2, device=device))
    with pytest.raises(vkml.ShapeError):
        TensorDataset()


def test_subsets_splits_and_concatenation():
    dataset = Squares(10)
    parts = random_split(dataset, [0.75, 0.25], generator=1)
    assert [len(part) for part in parts] == [8, 2]
    numbers = [part[i][0] for part in parts for i in range(len(part))]
    assert sorted(numbers) == list(range(10))
    assert numbers != list(range(10))
    assert [len(part) for part in random_split(dataset, [3, 7], 1)] == [3, 7]
    with pytest.raises(vkml.ArgumentError):
        random_split(dataset, [3, 3])
    both = ConcatDataset([Subset(dataset, [4, 2]), dataset])
    assert len(both) == 12
    assert [both[i][0] for i in (0, 1, 2, -1)] == [4, 2, 0, 9]
    with pytest.raises(IndexError):
        both[12]


# IDX files.

ARRAY = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
IDX = b"\0\0\x08\x03" + struct.pack(">3I", 2, 3, 4) + ARRAY.tobytes()


def written(folder, contents):
    path = folder / "file"
    path.write_bytes(contents)
    return path


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_idx_plain_and_compressed(pack, tmp_path):
    path = written(tmp_path, pack(IDX))
    checksum = hashlib.sha256(IDX).hexdigest()
    np.testing.assert_array_equal(read_idx(path, len(IDX), checksum), ARRAY)


def test_idx_of_wide_elements_is_in_this_machines_byte_order(tmp_path):
    values = np.array([1.5, -2.0], dtype=">f4")
    path = written(tmp_path, b"\0\0\x0d\x01" + struct.pack(">I", 2) + values.tobytes())
    array = read_idx(path)
    assert array.dtype == np.float32
    assert array.dtype.isnative
    assert array.tolist() == [1.5, -2.0]


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        (b"", "not an IDX file"),
        (b"\x89PNG....", "not an IDX file"),
        (b"\0\0\x07\x01\0\0\0\0", "not an IDX file"),
        (IDX[:10], "ends inside its header"),
        (IDX[:-1], "needs 24 bytes"),
        (IDX + b"x", "needs 24 bytes"),
        (b"\0\0\x08\x02" + b"\xff" * 8, "needs"),
        (gzip.compress(IDX, mtime=0)[:-9], "cannot read"),
        (gzip.compress(IDX, mtime=0)[:12] + b"\xff" * 20, "cannot read"),
    ],
    ids=lambda part: f"{len(part)} bytes" if isinstance(part, bytes) else part,
)
def test_damaged_idx_files_are_refused(contents, message, tmp_path):
    path = written(tmp_path, contents)
    with pytest.raises(vkml.FileError, match=message) as caught:
        read_idx(path)
    assert str(path) in str(caught.value)


def test_idx_size_and_checksum_are_checked(tmp_path):
    path = written(tmp_path, IDX)
    for size in (len(IDX) - 1, len(IDX) + 1):
        with pytest.raises(vkml.FileError, match="expected"):
            read_idx(path, size)
    with pytest.raises(vkml.FileError, match="checksum"):
        read_idx(path, sha256="0" * 64)
    with pytest.raises(vkml.FileError, match="No such file"):
        read_idx(tmp_path / "nothing")
    with pytest.raises(OSError, match="directory"):
        read_idx(tmp_path)


def test_fashion_mnist_says_what_is_missing(tmp_path):
    with pytest.raises(vkml.FileError, match=r"train-images-idx3-ubyte\.gz"):
        load_fashion_mnist(tmp_path)
    (tmp_path / "train-images-idx3-ubyte").write_bytes(IDX)
    with pytest.raises(vkml.FileError, match="expected 47040016"):
        load_fashion_mnist(tmp_path)


def test_datasets_side_by_side_and_one_after_the_other():
    numbers, letters = [1, 2, 3], ["a", "b", "c"]
    pairs = StackDataset(numbers, letters)
    assert (len(pairs), pairs[1]) == (3, (2, "b"))
    named = StackDataset(number=numbers, letter=letters)
    assert (len(named), named[2]) == (3, {"number": 3, "letter": "c"})
    batch = next(iter(DataLoader(StackDataset(numbers, [0.5, 1.5, 2.5]), 2)))
    assert [part.tolist() for part in batch] == [[1, 2], [0.5, 1.5]]
    with pytest.raises(vkml.ArgumentError, match=r"\[StackDataset\] lengths differ: \[2, 3\]"):
        StackDataset(numbers, [1, 2])
    with pytest.raises(vkml.ArgumentError, match=r"\[StackDataset\] pass datasets"):
        StackDataset(numbers, letter=letters)

    class Span(IterableDataset):
        def __init__(self, *ends):
            self.span = range(*ends)

        def __iter__(self):
            return iter(self.span)

        def __len__(self):
            return len(self.span)

    chain = ChainDataset([Span(3), Span(7, 9)])
    assert (list(chain), len(chain)) == ([0, 1, 2, 7, 8], 5)
    assert [part.tolist() for part in DataLoader(chain, 2)] == [[0, 1], [2, 7], [8]]
