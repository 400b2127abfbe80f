"""Workers of a DataLoader: seeds, failures, and what is left behind."""

import os
import random
import signal
import threading
import time

import numpy as np
import pytest

import vkml
from vkml.data import DataLoader, Dataset, IterableDataset, get_worker_info

pytestmark = pytest.mark.skipif(
    not os.path.isdir("/dev/shm"), reason="shared memory cannot be listed here"
)


class Draws(Dataset):
    """Items that are random, and say who made them."""

    def __len__(self):
        return 8

    def __getitem__(self, index):
        info = get_worker_info()
        return index, info.id, info.num_workers, random.random(), np.random.rand()  # noqa: NPY002


class Numbers(IterableDataset):
    """Numbers divided among the workers."""

    def __init__(self, end):
        self.end = end

    def __iter__(self):
        info = get_worker_info()
        start, step = (0, 1) if info is None else (info.id, info.num_workers)
        return iter(range(start, self.end, step))


class Awkward(Dataset):
    """Does something at one item."""

    def __init__(self, action, at=5):
        self.action, self.at = action, at

    def __len__(self):
        return 12

    def __getitem__(self, index):
        if index == self.at:
            if self.action == "exit":
                os._exit(3)
            elif self.action == "sleep":
                time.sleep(60)
            elif self.action == "unpicklable":
                raise UnpicklableError(lambda: 0)
            else:
                raise LookupError(f"item {index} is broken")
        return np.full((4,), index, dtype=np.float32)


class UnpicklableError(Exception):
    """Holds a function, which no pickle takes."""


def set_mark(number):
    os.environ["VKML_TEST_MARK"] = str(number)


class Mark(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return os.getpid(), int(os.environ["VKML_TEST_MARK"])


@pytest.fixture(autouse=True)
def _nothing_is_left():
    def blocks():
        return {name for name in os.listdir("/dev/shm") if name.startswith("vkml_")}

    before = blocks()
    yield
    # Tests that run beside this one have blocks for a while; what stays is a leak.
    left = blocks() - before
    deadline = time.monotonic() + 30
    while left and time.monotonic() < deadline:
        time.sleep(0.1)
        left &= blocks()
    assert not left


def test_random_draws_follow_the_seed_and_the_worker():
    def passes(seed, persistent):
        loader = DataLoader(
            Draws(), 2, num_workers=2, generator=seed, persistent_workers=persistent
        )
        return [[[column.tolist() for column in batch] for batch in loader] for _ in range(2)]

    first = passes(3, persistent=True)
    assert passes(3, persistent=False) == first
    assert passes(4, persistent=False) != first
    assert first[0] != first[1]
    for batches in first:
        assert [batch[0] for batch in batches] == [[0, 1], [2, 3], [4, 5], [6, 7]]
        assert [batch[1] for batch in batches] == [[0, 0], [1, 1], [0, 0], [1, 1]]
        draws = [draw for batch in batches for draw in batch[3] + batch[4]]
        assert len(set(draws)) == 16
    assert get_worker_info() is None


def test_an_iterable_dataset_is_divided_among_workers():
    alone = [batch.tolist() for batch in DataLoader(Numbers(7), 3)]
    assert alone == [[0, 1, 2], [3, 4, 5], [6]]
    assert len(list(DataLoader(Numbers(7), 3, drop_last=True))) == 2
    loader = DataLoader(Numbers(9), 2, num_workers=2, persistent_workers=True)
    for _ in range(2):
        shared = [batch.tolist() for batch in loader]
        assert shared == [[0, 2], [1, 3], [4, 6], [5, 7], [8]]


def test_persistent_workers_are_initialised_once_and_end_with_the_loader():
    loader = DataLoader(Mark(), 1, num_workers=2, worker_init_fn=set_mark, persistent_workers=True)
    passes = [[tuple(c.item() for c in batch) for batch in loader] for _ in range(2)]
    assert passes[0] == passes[1]
    assert [mark for _, mark in passes[0]] == [0, 1, 0, 1]
    started = {pid for pid, _ in passes[0]}
    early = iter(loader)
    next(early)
    early.close()
    assert {batch[0].item() for batch in loader} == started
    del loader, early
    for pid in started:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_an_error_shows_where_it_was_raised():
    with pytest.raises(LookupError, match="item 5 is broken") as caught:
        list(DataLoader(Awkward("raise"), 2, num_workers=2))
    text = str(caught.value.__cause__)
    assert "Traceback" in text
    assert "in __getitem__" in text
    with pytest.raises(RuntimeError, match=r"worker 0 failed:[\s\S]*UnpicklableError"):
        list(DataLoader(Awkward("unpicklable"), 2, num_workers=2))


def test_a_loader_goes_on_after_an_error():
    loader = DataLoader(Awkward("raise", at=11), 2, num_workers=2, persistent_workers=True)
    for _ in range(2):
        batches = []
        with pytest.raises(LookupError):
            batches.extend(loader)
        assert [batch[0, 0].item() for batch in batches] == [0, 2, 4, 6, 8]


def test_a_worker_that_dies_is_an_error():
    with pytest.raises(RuntimeError, match=r"worker \d \(process \d+\) died with exit code 3"):
        list(DataLoader(Awkward("exit"), 2, num_workers=2))


def test_a_worker_that_is_killed_is_an_error():
    loader = DataLoader(Mark(), 1, num_workers=1, worker_init_fn=set_mark, persistent_workers=True)
    (pid,) = {batch[0].item() for batch in loader}
    batches = iter(loader)
    next(batches)
    os.kill(pid, signal.SIGKILL)
    time.sleep(0.2)
    with pytest.raises(RuntimeError, match="died with exit code -9"):
        list(batches)
    assert len(list(loader)) == 4  # a new worker


def test_a_worker_that_takes_too_long_is_an_error():
    begin = time.monotonic()
    with pytest.raises(RuntimeError, match="no batch within 8 seconds"):
        list(DataLoader(Awkward("sleep"), 2, num_workers=1, timeout=8))
    assert time.monotonic() - begin < 40


def test_ctrl_c_ends_a_pass():
    # A shell that starts the tests in the background has them ignore it.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        _end_a_pass()
    finally:
        signal.signal(signal.SIGINT, before)


def _end_a_pass():
    loader = DataLoader(Awkward("sleep", at=7), 2, num_workers=1, timeout=30)
    batches = iter(loader)
    next(batches)
    timer = threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        list(batches)
    timer.join()
    assert time.monotonic() - begin < 20


@pytest.mark.parametrize("workers", [0, 2])
def test_batches_are_copied_ahead_to_a_device(workers, device):
    loader = DataLoader(
        Awkward("raise", at=99), 5, num_workers=workers, pin_memory=True, pin_memory_device=device
    )
    batches = list(loader)
    assert [batch.device for batch in batches] == [device] * 3
    assert [batch[0, 0].item() for batch in batches] == [0, 5, 10]
    default = next(iter(DataLoader(Awkward("raise", at=99), pin_memory=True)))
    assert default.device == device


@pytest.mark.parametrize(
    "settings",
    [
        {"persistent_workers": True},
        {"timeout": 3},
        {"timeout": -1, "num_workers": 1},
        {"prefetch_factor": 2},
        {"prefetch_factor": 0, "num_workers": 1},
        {"batch_sampler": [[0]], "batch_size": 2},
    ],
)
def test_impossible_settings_are_refused(settings):
    with pytest.raises(vkml.ArgumentError, match=r"\[DataLoader\]"):
        DataLoader(Draws(), **settings)


def test_an_iterable_dataset_takes_no_order():
    with pytest.raises(vkml.ArgumentError, match="own order"):
        DataLoader(Numbers(3), shuffle=True)
    with pytest.raises(TypeError, match="unknown"):
        len(DataLoader(Numbers(3)))
