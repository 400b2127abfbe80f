"""Batches on their way between processes: arrays in one block of shared memory, the rest by pickle.

The block is made by the worker and removed by whoever unpacks or discards the batch. Its name
follows from the worker and the request, so that what a killed worker never sent can be found.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from multiprocessing.shared_memory import SharedMemory
from typing import Any, NamedTuple

import vkml
from vkml import Tensor
from vkml.data.collate import is_array

_ALIGNMENT = 64


class _ArrayPlace(NamedTuple):
    """Stands in a batch for an array that lies in shared memory."""

    offset: int
    shape: tuple[int, ...]
    dtype: str


class PackedBatch(NamedTuple):
    """A batch as it is sent: its structure, and the block that holds its arrays."""

    structure: Any
    block: str | None


def block_name(process: int, request: int) -> str:
    """The name of the block that a process answers its n-th request with."""
    return f"vkml_{process}_{request}"


def pack(batch: Any, name: str) -> PackedBatch:
    """Moves the arrays and tensors of a batch into a block of shared memory of this name."""
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
        return PackedBatch(structure, None)
    import numpy as np

    block = SharedMemory(name, create=True, size=end)
    try:
        for offset, array in arrays:
            np.ndarray(array.shape, array.dtype, block.buf, offset)[...] = array
    finally:
        block.close()
    return PackedBatch(structure, block.name)


def unpack(packed: PackedBatch) -> Any:
    """The batch again, tensors and arrays as tensors; removes the block."""
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


def discard(packed: PackedBatch) -> None:
    """Removes the block of a batch that nobody wants."""
    if packed.block is not None:
        block = SharedMemory(packed.block)
        block.close()
        block.unlink()


def discard_block(name: str) -> None:
    """Removes the block of this name, if there is one."""
    try:
        discard(PackedBatch(None, name))
    except FileNotFoundError:
        return


def _map_leaves(function: Callable[[Any], Any], value: Any) -> Any:
    """The same dictionaries, lists and tuples with `function` of each leaf."""
    if isinstance(value, _ArrayPlace):
        return function(value)
    if isinstance(value, Mapping):
        return {key: _map_leaves(function, entry) for key, entry in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_map_leaves(function, entry) for entry in value))
    if isinstance(value, list | tuple):
        return type(value)(_map_leaves(function, entry) for entry in value)
    return function(value)
