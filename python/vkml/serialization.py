"""Saving and loading tensors as safetensors files.

A dictionary of tensors becomes a plain safetensors file, which any other reader understands.
Nested dictionaries and lists with numbers, strings and booleans between the tensors (a checkpoint)
become one too: tensors under their dotted paths, the rest as JSON in the file's metadata. Nothing
in a file is ever executed. A file is written beside its destination and renamed, so that what is
found there is always whole.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import stat
import struct
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, cast

import vkml
from vkml import FileError, Tensor
from vkml.argument_errors import check_arguments as _check_arguments
from vkml.paths import check_path

if TYPE_CHECKING:
    from numpy.typing import NDArray

_HEADER_ALIGNMENT = 8
_STRUCTURE_KEY = "vkml.structure"
_TENSOR_KEY = "$tensor"
# File codes of the element types, with NumPy's names; bfloat16 travels as its bits.
_NUMPY_TYPES = {
    "F64": "<f8",
    "F32": "<f4",
    "F16": "<f2",
    "BF16": "<u2",
    "I64": "<i8",
    "I32": "<i4",
    "U8": "u1",
    "BOOL": "?",
}


def save(
    obj: Any, f: str | os.PathLike[str] | BinaryIO, metadata: Mapping[str, str] | None = None
) -> None:
    """Writes tensors, or a structure that holds tensors, to a safetensors file.

    Args:
        obj: A dictionary of tensors; or dictionaries (with string or integer keys), lists and
            tuples of tensors, numbers, strings, booleans and None.
        f: The file; an existing one is replaced, as a whole or not at all. A link stays, and
            the file that it points to is written. Or an object that bytes are written to.
        metadata: Strings to keep beside the tensors.

    Raises:
        FileError: If the file cannot be written, or the path is that of something else: a folder,
            a device, a pipe.
        ArgumentError: If `obj` holds anything else.
    """
    tensors: dict[str, Tensor] = {}
    texts = dict(metadata or {})
    if isinstance(obj, Mapping) and all(
        isinstance(name, str) and isinstance(value, Tensor) for name, value in obj.items()
    ):
        tensors = dict(obj)
    else:
        texts[_STRUCTURE_KEY] = json.dumps(_describe(obj, "", tensors))
    if "__metadata__" in tensors:
        raise vkml.ArgumentError("[save] the name '__metadata__' belongs to the file format.")
    entries = {name: _entry(tensor) for name, tensor in tensors.items()}
    if isinstance(f, str | os.PathLike) or not hasattr(f, "write"):
        _write(cast("str | os.PathLike[str]", f), entries, texts)
    else:
        _write_contents(f, entries, texts)


def load(
    f: str | os.PathLike[str] | BinaryIO,
    map_location: vkml.DeviceLike | None = None,
    *,
    weights_only: bool = True,
    device: vkml.DeviceLike | None = None,
) -> Any:
    """Reads what `save`, or any other writer of safetensors, has written.

    Args:
        f: The file, or an object that holds one from where it is read.
        map_location: Where the tensors go; None for the default device.
        weights_only: Accepted as PyTorch's: files hold no code in any case.
        device: `map_location` by vkML's name.

    Returns:
        The structure that was saved; for other writers' files, a dictionary of tensors.

    Raises:
        FileError: If the file cannot be read, is damaged, or holds element types that vkML lacks.
    """
    if map_location is not None and device is not None:
        raise vkml.ArgumentError("[load] map_location and device name the same thing. Pass one.")
    target = device if map_location is None else map_location
    if not (target is None or isinstance(target, str | vkml.Device)):
        raise vkml.DTypeError(
            f"[load] map_location is {target!r}. Pass a device, or move the tensors afterwards."
        )
    metadata, entries = _read(f)
    tensors = {name: _tensor(f, name, entry, target) for name, entry in sorted(entries.items())}
    if _STRUCTURE_KEY not in metadata:
        return tensors
    try:
        return _rebuild(json.loads(metadata[_STRUCTURE_KEY]), tensors)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise FileError(
            f"[load] {f}: the structure in the metadata is damaged: {error!r}."
        ) from error


# Structures: JSON with a mark in the place of each tensor.


def _describe(value: Any, path: str, tensors: dict[str, Tensor]) -> Any:
    """JSON for `value`; puts the tensors below it into `tensors` by path."""
    if isinstance(value, Tensor):
        name = path or "tensor"
        # Different keys may spell one path: 1 and "1", "a.b" and "b" in "a".
        copy = 2
        while name in tensors:
            name = f"{path}#{copy}"
            copy += 1
        tensors[name] = value
        return {_TENSOR_KEY: name}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    prefix = f"{path}." if path else ""
    if isinstance(value, Mapping):
        if not all(isinstance(key, (str, int)) for key in value):
            raise vkml.ArgumentError(
                f"[save] the dictionary at '{path}' has keys that are neither strings nor integers."
            )
        # Pairs, because JSON would turn integer keys into strings.
        return {"$dict": [[k, _describe(v, f"{prefix}{k}", tensors)] for k, v in value.items()]}
    if isinstance(value, (list, tuple)):
        kind = "$list" if isinstance(value, list) else "$tuple"
        return {kind: [_describe(v, f"{prefix}{i}", tensors) for i, v in enumerate(value)]}
    raise vkml.ArgumentError(
        f"[save] cannot save {type(value).__name__} at '{path}'. Save tensors, numbers, strings, "
        f"booleans, None, and dictionaries, lists and tuples of them."
    )


def _rebuild(value: Any, tensors: Mapping[str, Tensor]) -> Any:
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == _TENSOR_KEY:
        return tensors[content]
    if kind == "$dict":
        return {key: _rebuild(entry, tensors) for key, entry in content}
    items = [_rebuild(entry, tensors) for entry in content]
    if kind == "$tuple":
        return tuple(items)
    if kind == "$list":
        return items
    raise ValueError(f"unknown mark {kind!r}")


# Elements: NumPy arrays in, NumPy arrays out.


class _Entry(NamedTuple):
    """A tensor as a file holds it."""

    code: str
    shape: tuple[int, ...]
    elements: NDArray[Any]  # flat, contiguous, little-endian


def _entry(tensor: Tensor) -> _Entry:
    import numpy as np

    shape = tuple(tensor.shape)
    value = tensor.detach()
    if value.dtype == vkml.bfloat16:
        # Widening is exact, and the upper half of a float32 is the bfloat16 again.
        wide = np.ascontiguousarray(value.to(vkml.float32).numpy()).reshape(-1)
        return _Entry("BF16", shape, (wide.view(np.uint32) >> 16).astype("<u2"))
    array = np.ascontiguousarray(value.numpy()).reshape(-1)
    code = next(c for c, t in _NUMPY_TYPES.items() if c != "BF16" and array.dtype == np.dtype(t))
    return _Entry(code, shape, array)


def _tensor(
    path: str | os.PathLike[str] | BinaryIO,
    name: str,
    entry: Mapping[str, Any],
    device: vkml.DeviceLike | None,
) -> Tensor:
    import numpy as np

    code = entry["dtype"]
    if code not in _NUMPY_TYPES:
        raise FileError(
            f"[load] {path}: tensor '{name}' has element type {code}. vkML has "
            f"{', '.join(_NUMPY_TYPES)}."
        )
    rank = len(entry["shape"])
    if rank > vkml.MAX_DIMS:
        raise FileError(
            f"[load] {path}: tensor '{name}': rank {rank} exceeds {vkml.MAX_DIMS} axes."
        )
    array = np.frombuffer(entry["data"], _NUMPY_TYPES[code]).reshape(entry["shape"])
    if code == "BF16":
        wide = (array.astype(np.uint32) << 16).view(np.float32)
        return vkml.tensor(wide, device=device).to(vkml.bfloat16)
    return vkml.tensor(array, device=device)


# Files.


def _write(
    path: str | os.PathLike[str], entries: Mapping[str, _Entry], metadata: dict[str, str]
) -> None:
    check_path(path, "save")
    temporary = None
    try:
        destination = _destination(path)
        handle, temporary = tempfile.mkstemp(
            prefix=f".{destination.name}.", suffix=".part", dir=destination.parent
        )
        with os.fdopen(handle, "wb") as file:
            _write_contents(file, entries, metadata)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, destination)
    except OSError as error:
        raise FileError(
            f"[save] {path}: cannot write: {error.strerror or error}. Choose a file in a folder "
            f"that exists, is writable and has room; what was at this path before is unchanged."
        ) from error
    finally:
        if temporary is not None:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary)


def _destination(path: str | os.PathLike[str]) -> Path:
    """The file that a path leads to, through links; it may be replaced, or is not there yet.

    Raises:
        OSError: If something is there that is no plain file, a folder or a device, say.
    """
    if "\0" in os.fspath(path):
        raise OSError(errno.EINVAL, "the name has a zero byte")
    # What a link points to need not be there yet.
    destination = Path(os.path.realpath(path))
    with contextlib.suppress(FileNotFoundError):
        mode = os.lstat(destination).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, "it is a folder")
        if stat.S_ISLNK(mode):
            raise OSError(errno.ELOOP, "it is a link that leads to itself")
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "it is a device, a pipe or a socket, not a file")
    return destination


def _write_contents(
    file: BinaryIO, entries: Mapping[str, _Entry], metadata: dict[str, str]
) -> None:
    """The format: a length, a JSON header of that length, the elements without gaps."""
    # Wide elements first, so that each tensor lies at a multiple of its element size.
    ordered = sorted(entries.items(), key=lambda item: (-item[1].elements.itemsize, item[0]))
    header: dict[str, Any] = {"__metadata__": metadata} if metadata else {}
    offset = 0
    for name, entry in ordered:
        end = offset + entry.elements.nbytes
        header[name] = {"dtype": entry.code, "shape": entry.shape, "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % _HEADER_ALIGNMENT)
    file.write(struct.pack("<Q", len(text)) + text)
    for _, entry in ordered:
        file.write(entry.elements.data)


def _umask() -> int:
    # The mask can only be read by setting it.
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _read(
    path: str | os.PathLike[str] | BinaryIO,
) -> tuple[dict[str, str], dict[str, dict[str, Any]]]:
    """The metadata and the entries of a file, both checked."""
    import safetensors

    try:
        if hasattr(path, "read"):
            contents = path.read()
        else:
            check_path(path, "load")
            contents = Path(path).read_bytes()
        # Checks lengths, offsets, overlaps, types and coverage, everything but repeated names.
        entries = safetensors.deserialize(contents)  # type: ignore[no-untyped-call]
        header = _header(contents)
    except OSError as error:
        raise FileError(f"[load] {path}: cannot read: {error.strerror or error}.") from error
    except (safetensors.SafetensorError, ValueError, RecursionError) as error:
        raise FileError(f"[load] {path}: not a valid safetensors file: {error}.") from error
    return header.get("__metadata__", {}), dict(entries)


def _header(contents: bytes) -> dict[str, Any]:
    (length,) = struct.unpack("<Q", contents[:8])
    header: dict[str, Any] = json.loads(contents[8 : 8 + length], object_pairs_hook=_unique)
    return header


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = dict(pairs)
    if len(names) != len(pairs):
        twice = next(name for name in names if sum(name == other for other, _ in pairs) > 1)
        raise ValueError(f"the name '{twice}' appears twice")
    return names


_check_arguments(globals())
