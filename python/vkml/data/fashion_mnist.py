"""Fashion-MNIST: 70,000 images of clothes, 28x28, ten classes (Xiao, Rasul and Vollgraf, 2017).

The data comes from Debian's package `dataset-fashion-mnist`, or from any folder that holds its four
IDX files, compressed or not. Contents are checked by size and checksum.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from vkml import FileError
from vkml.data.idx import read_idx

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

DEBIAN_FOLDER = Path("/usr/share/datasets/fashion-mnist")
CLASSES = (
    "T-shirt/top",
    "trouser",
    "pullover",
    "dress",
    "coat",
    "sandal",
    "shirt",
    "sneaker",
    "bag",
    "ankle boot",
)


class _File(NamedTuple):
    name: str
    size: int
    sha256: str


_TRAIN_IMAGES = _File(
    "train-images-idx3-ubyte",
    47040016,
    "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
)
_TRAIN_LABELS = _File(
    "train-labels-idx1-ubyte",
    60008,
    "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
)
_TEST_IMAGES = _File(
    "t10k-images-idx3-ubyte",
    7840016,
    "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
)
_TEST_LABELS = _File(
    "t10k-labels-idx1-ubyte",
    10008,
    "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
)


class FashionMnist(NamedTuple):
    """Images as (count, 28, 28) bytes, labels as (count,) bytes from 0 to 9."""

    train_images: NDArray[np.uint8]
    train_labels: NDArray[np.uint8]
    test_images: NDArray[np.uint8]
    test_labels: NDArray[np.uint8]


def load_fashion_mnist(folder: str | os.PathLike[str] | None = None) -> FashionMnist:
    """Reads and checks the four files.

    Args:
        folder: Where they are; None for the place of Debian's package.

    Raises:
        FileError: If a file is missing, or is not the one it should be.
    """
    place = DEBIAN_FOLDER if folder is None else Path(folder)
    return FashionMnist(
        *(
            read_idx(_find(place, file.name), file.size, file.sha256)
            for file in (_TRAIN_IMAGES, _TRAIN_LABELS, _TEST_IMAGES, _TEST_LABELS)
        )
    )


def _find(folder: Path, name: str) -> Path:
    for candidate in (folder / f"{name}.gz", folder / name):
        if candidate.is_file():
            return candidate
    raise FileError(
        f"[load_fashion_mnist] {folder} has neither {name}.gz nor {name}. Install Debian's package "
        f"dataset-fashion-mnist, or give the folder that holds Fashion-MNIST's IDX files."
    )
