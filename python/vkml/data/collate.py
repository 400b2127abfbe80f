"""Joining items into a batch: tensors and arrays are stacked, numbers become a tensor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import vkml
from vkml import Tensor


def default_collate(batch: Sequence[Any]) -> Any:
    """Joins equal positions of items: tuples to a list, dictionaries to a dictionary.

    Args:
        batch: Items of one structure, made of tensors, NumPy arrays, numbers, strings, tuples,
            lists and dictionaries. Strings are not joined but listed.
    """
    first = batch[0]
    if isinstance(first, (str, bytes)):
        return list(batch)
    if isinstance(first, Mapping):
        return {key: default_collate([item[key] for item in batch]) for key in first}
    if isinstance(first, (tuple, list)):
        if any(len(item) != len(first) for item in batch):
            raise vkml.ShapeError(
                f"[collate] items have different lengths: {sorted({len(i) for i in batch})}. "
                f"Pad them to one length, or pass a collate_fn."
            )
        return [default_collate(column) for column in zip(*batch, strict=True)]
    return _stack(batch)


def _stack(values: Sequence[Any]) -> Tensor:
    first = values[0]
    if isinstance(first, Tensor):
        return vkml.stack(list(values))
    if is_array(first):
        import numpy as np

        return vkml.tensor(np.stack(values))
    if isinstance(first, bool):
        return vkml.tensor(list(values), dtype=vkml.bool)
    if isinstance(first, int):
        return vkml.tensor(list(values), dtype=vkml.int64)
    if isinstance(first, float):
        return vkml.tensor(list(values), dtype=vkml.float32)
    raise vkml.DTypeError(
        f"[default_collate] a batch must contain tensors, numpy arrays, numbers, dicts or lists; "
        f"found {type(first).__name__}. Pass a collate_fn."
    )


def is_array(value: object) -> bool:
    """Whether a value is a NumPy array or scalar, told without importing NumPy."""
    return type(value).__module__ == "numpy" and hasattr(value, "__array_interface__")
