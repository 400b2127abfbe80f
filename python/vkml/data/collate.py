"""Joining items into a batch: tensors and arrays are stacked, numbers become a tensor.

Without batches, items are converted one by one.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, MutableMapping, Sequence
from typing import Any

import vkml
from vkml import Tensor


def default_collate(batch: Sequence[Any]) -> Any:
    """Joins equal positions of items: tuples to a list, dictionaries to one of their type.

    Args:
        batch: Items of one structure, made of tensors, NumPy arrays, numbers, strings, tuples,
            lists and dictionaries. Named tuples stay what they are; strings are not joined but
            listed.
    """
    if len(batch) == 0:
        raise vkml.ArgumentError("[default_collate] the batch has no items. Pass one at least.")
    first = batch[0]
    if isinstance(first, (str, bytes)):
        return list(batch)
    if isinstance(first, Mapping):
        joined = {key: default_collate([item[key] for item in batch]) for key in first}
        return _of_type(first, joined)
    if isinstance(first, (tuple, list)):
        if any(len(item) != len(first) for item in batch):
            raise vkml.ShapeError(
                f"[default_collate] items have different lengths: "
                f"{sorted({len(item) for item in batch})}. Pad them to one length, or pass a "
                f"collate_fn."
            )
        columns = [default_collate(column) for column in zip(*batch, strict=True)]
        return type(first)(*columns) if hasattr(first, "_fields") else columns
    return _stack(batch)


def default_convert(data: Any) -> Any:
    """NumPy arrays in an item as tensors, the rest as it is: what a loader without batches does."""
    if is_array(data):
        return vkml.tensor(data)
    if isinstance(data, (str, bytes, Tensor)):
        return data
    if isinstance(data, Mapping):
        return _of_type(data, {key: default_convert(value) for key, value in data.items()})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(default_convert(value) for value in data))
    if isinstance(data, (tuple, list)):
        return [default_convert(value) for value in data]
    return data


def _of_type(first: Mapping[Any, Any], joined: dict[Any, Any]) -> Mapping[Any, Any]:
    """A mapping of the type that the items have, if that can be made of a dictionary."""
    if type(first) is dict:
        return joined
    if isinstance(first, MutableMapping):
        # A copy keeps what else the type knows, such as the default of a defaultdict.
        result = copy.copy(first)
        result.update(joined)
        return result
    try:
        return type(first)(joined)  # type: ignore[call-arg]
    except TypeError:
        return joined


def _stack(values: Sequence[Any]) -> Tensor:
    first = values[0]
    if isinstance(first, Tensor) or is_array(first):
        _check_shapes(values)
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


def _check_shapes(values: Sequence[Any]) -> None:
    first = tuple(values[0].shape)
    for number, value in enumerate(values):
        shape = tuple(getattr(value, "shape", ()))
        if shape != first:
            raise vkml.ShapeError(
                f"[default_collate] item 0 of the batch has shape {first}, item {number} {shape}. "
                f"Bring the dataset's items to one shape (crop, resize or pad them), or pass a "
                f"collate_fn."
            )


def is_array(value: object) -> bool:
    """Whether a value is a NumPy array or scalar, told without importing NumPy."""
    return type(value).__module__ == "numpy" and hasattr(value, "__array_interface__")
