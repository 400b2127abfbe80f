"""Tensors in tuples, lists and dictionaries: taken out into a list, and put back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import vkml
from vkml import Tensor


def flatten(tree: Any) -> list[Tensor]:
    """All tensors of a tree, in order."""
    found: list[Tensor] = []

    def visit(leaf: Any) -> Any:
        if isinstance(leaf, Tensor):
            found.append(leaf)
        return leaf

    map_leaves(visit, tree)
    return found


def unflatten(tree: Any, tensors: Sequence[Any]) -> Any:
    """The tree with its tensors replaced, in order."""
    remaining: Iterator[Any] = iter(tensors)
    return map_leaves(lambda leaf: next(remaining) if isinstance(leaf, Tensor) else leaf, tree)


def map_leaves(function: Callable[[Any], Any], tree: Any) -> Any:
    """The same tuples, lists and dictionaries with `function` of each leaf."""
    if isinstance(tree, Mapping):
        return {key: map_leaves(function, entry) for key, entry in tree.items()}
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*(map_leaves(function, entry) for entry in tree))
    if isinstance(tree, list | tuple):
        return type(tree)(map_leaves(function, entry) for entry in tree)
    return function(tree)


def broadcast_prefix(prefix: Any, tree: Any, name: str) -> list[Any]:
    """The entry of `prefix` for each tensor of `tree`: a prefix's leaf holds for all below it."""
    if not isinstance(prefix, list | tuple | Mapping):
        return [prefix] * len(flatten(tree))
    keyed = isinstance(prefix, Mapping)
    if isinstance(tree, Mapping) != keyed or not isinstance(tree, list | tuple | Mapping):
        raise vkml.ArgumentError(
            f"{name} is {prefix!r}, which does not fit a {type(tree).__name__}."
        )
    keys = list(tree) if isinstance(tree, Mapping) else range(len(tree))
    if len(prefix) != len(tree) or (isinstance(prefix, Mapping) and set(prefix) != set(keys)):
        raise vkml.ArgumentError(
            f"{name} has {len(prefix)} entries for {len(tree)} values: {prefix!r}."
        )
    return [entry for key in keys for entry in broadcast_prefix(prefix[key], tree[key], name)]
