"""Paths of files, as arguments."""

from __future__ import annotations

import os

import vkml


def check_path(path: object, operator: str) -> None:
    """Raises DTypeError for what is no path: an integer would be taken for an open file."""
    if not isinstance(path, str) and not (
        isinstance(path, os.PathLike) and isinstance(os.fspath(path), str)
    ):
        raise vkml.DTypeError(
            f"[{operator}] the path is {path!r}, of type {type(path).__name__}. Pass a string or a "
            f"pathlib.Path."
        )
