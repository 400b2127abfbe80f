"""Reading batches in processes of their own.

Workers are spawned, never forked: a fork would copy this process's threads and device handles in a
state nobody can use. A worker joins its items into a batch, puts the arrays into one block of
shared memory and sends the rest by pickle. The loader maps the block, copies the arrays into
tensors and removes the block. Batches come in the loader's order, two for each worker in advance.
"""

from __future__ import annotations

import multiprocessing
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing.shared_memory import SharedMemory
from typing import Any, NamedTuple

import vkml
from vkml import Tensor
from vkml.data.collate import default_collate, is_array

_BATCHES_AHEAD = 2  # for each worker: one being read, one ready
_ALIGNMENT = 64

Collate = Callable[[Sequence[Any]], Any]


class _ArrayPlace(NamedTuple):
    """Stands in a batch for an array that lies in shared memory."""

    offset: int
    shape: tuple[int, ...]
    dtype: str


class _Packed(NamedTuple):
    """A batch as it is sent: its structure, and the block that holds its arrays."""

    structure: Any
    block: str | None


def read_in_workers(
    dataset: Any,
    batches: Sequence[Sequence[int]],
    collate: Collate | None,
    workers: int,
) -> Iterator[Any]:
    """Yields the batches whose item numbers are given, in order.

    Raises:
        Exception: What the dataset or the collate function raised in a worker.
    """
    executor = ProcessPoolExecutor(
        max_workers=workers,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_start_worker,
        initargs=(dataset, collate),
    )
    pending: deque[Future[_Packed]] = deque()
    remaining = iter(batches)
    try:
        while True:
            while len(pending) < workers * _BATCHES_AHEAD:
                numbers = next(remaining, None)
                if numbers is None:
                    break
                pending.append(executor.submit(_read_batch, numbers))
            if not pending:
                return
            yield _unpack(pending.popleft().result())
    finally:
        # A loop left early leaves batches that nobody will fetch: their blocks must go too.
        executor.shutdown(wait=True, cancel_futures=True)
        for future in pending:
            if not future.cancelled() and future.exception() is None:
                _remove_block(future.result().block)


# In a worker.

_dataset: Any = None
_collate: Collate = default_collate


def _start_worker(dataset: Any, collate: Collate | None) -> None:
    global _dataset, _collate
    vkml.set_default_device(vkml.cpu)
    _dataset = dataset
    _collate = default_collate if collate is None else collate


def _read_batch(numbers: Sequence[int]) -> _Packed:
    return _pack(_collate([_dataset[number] for number in numbers]))


def _pack(batch: Any) -> _Packed:
    arrays: list[tuple[int, Any]] = []
    end = 0

    def place(array: Any) -> _ArrayPlace:
        nonlocal end
        offset = -(-end // _ALIGNMENT) * _ALIGNMENT
        end = offset + array.nbytes
        arrays.append((offset, array))
        return _ArrayPlace(offset, array.shape, array.dtype.str)

    def visit(value: Any) -> Any:
        if isinstance(value, Tensor):
            return place(value.detach().numpy())
        return place(value) if is_array(value) else value

    structure = _map_leaves(visit, batch)
    if end == 0:
        return _Packed(structure, None)
    import numpy as np

    block = SharedMemory(create=True, size=end)
    try:
        for offset, array in arrays:
            np.ndarray(array.shape, array.dtype, block.buf, offset)[...] = array
    finally:
        block.close()
    return _Packed(structure, block.name)


# In the loader's process.


def _unpack(packed: _Packed) -> Any:
    import numpy as np

    block = None if packed.block is None else SharedMemory(packed.block)

    def visit(value: Any) -> Any:
        if not isinstance(value, _ArrayPlace):
            return value
        if block is None:
            return vkml.tensor(np.empty(value.shape, value.dtype))
        shared = np.ndarray(value.shape, value.dtype, block.buf, value.offset)
        return vkml.tensor(shared.copy())

    try:
        return _map_leaves(visit, packed.structure)
    finally:
        if block is not None:
            block.close()
            block.unlink()


def _remove_block(name: str | None) -> None:
    if name is not None:
        block = SharedMemory(name)
        block.close()
        block.unlink()


def _map_leaves(function: Callable[[Any], Any], value: Any) -> Any:
    """The same dictionaries, lists and tuples with `function` of each leaf."""
    if isinstance(value, _ArrayPlace):
        return function(value)
    if isinstance(value, Mapping):
        return {key: _map_leaves(function, entry) for key, entry in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_map_leaves(function, entry) for entry in value))
    if isinstance(value, (list, tuple)):
        return type(value)(_map_leaves(function, entry) for entry in value)
    return function(value)
