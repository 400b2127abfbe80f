"""Reader of IDX files, the format of MNIST and Fashion-MNIST.

An IDX file is a four-byte magic number (two zeros, an element type, a number of axes), the extents
as big-endian 32-bit integers, and the elements in row-major order, big-endian. Files may be
compressed by gzip. Sizes and checksums are of the uncompressed contents, because the same data is
distributed compressed in different ways.
"""

from __future__ import annotations

import gzip
import hashlib
import math
import os
import struct
import zlib
from typing import TYPE_CHECKING, Any

from vkml import FileError
from vkml.paths import check_path

if TYPE_CHECKING:
    from numpy.typing import NDArray

# IDX element types, as NumPy's big-endian type codes.
_ELEMENT_TYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
_GZIP_MAGIC = b"\x1f\x8b"


def read_idx(
    path: str | os.PathLike[str], size: int | None = None, sha256: str | None = None
) -> NDArray[Any]:
    """Reads one IDX file, plain or compressed.

    Args:
        path: The file.
        size: The number of bytes that the contents must have.
        sha256: The checksum that the contents must have, in hexadecimal.

    Returns:
        An array in the machine's byte order.

    Raises:
        FileError: If the file cannot be read, or is not what it should be.
    """
    check_path(path, "read_idx")
    contents = _read(path, size)
    if sha256 is not None:
        found = hashlib.sha256(contents).hexdigest()
        if found != sha256.lower():
            raise FileError(
                f"[read_idx] {path}: the checksum differs: sha256 {found}, expected {sha256}. "
                f"Fetch the file again."
            )
    return _parse(path, contents)


def _read(path: str | os.PathLike[str], size: int | None) -> bytes:
    try:
        with open(path, "rb") as file:
            packed = file.read(2) == _GZIP_MAGIC
            file.seek(0)
            source = gzip.GzipFile(fileobj=file) if packed else file
            # One byte more than expected tells a longer file, without unpacking all of it.
            contents = source.read(-1 if size is None else size + 1)
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise FileError(f"[read_idx] {path}: cannot read: {reason}.") from error
    if size is not None and len(contents) != size:
        found = f"{len(contents)}" if len(contents) < size else f"more than {size}"
        raise FileError(
            f"[read_idx] {path}: {found} bytes of contents, expected {size}. Fetch the file again."
        )
    return contents


def _parse(path: str | os.PathLike[str], contents: bytes) -> NDArray[Any]:
    import numpy as np

    if len(contents) < 4 or contents[:2] != b"\0\0" or contents[2] not in _ELEMENT_TYPES:
        raise FileError(f"[read_idx] {path}: not an IDX file: it begins with {contents[:4]!r}.")
    axes = contents[3]
    start = 4 + 4 * axes
    if len(contents) < start:
        raise FileError(f"[read_idx] {path}: the file ends inside its header of {start} bytes.")
    shape = struct.unpack(f">{axes}I", contents[4:start])
    dtype = np.dtype(_ELEMENT_TYPES[contents[2]])
    needed = math.prod(shape) * dtype.itemsize
    if len(contents) - start != needed:
        raise FileError(
            f"[read_idx] {path}: shape {shape} needs {needed} bytes of data, the file has "
            f"{len(contents) - start}."
        )
    array = np.frombuffer(contents, dtype, offset=start).reshape(shape)
    return array.astype(dtype.newbyteorder("="), copy=False)
