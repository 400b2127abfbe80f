"""grid_sample and affine_grid against PyTorch, value and gradients of image and positions."""

from typing import Any

import numpy as np
import pytest

import vkml
from checking import inputs
from torch_agreement import assert_agrees, torch
from vkml.nn import functional as F

IMAGE = inputs((2, 3, 5, 4), -1, 1)
# Past both ends, so that padding counts; no position lies on a pixel, where slopes jump.
GRID = inputs((2, 3, 7, 2), -1.6, 1.6)


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_grid_sample(mode: str, padding: str, align_corners: bool, device: object) -> None:
    def positions(grid: Any) -> Any:
        # The nearest pixel stays the nearest: PyTorch's gradient is 0, and here there is none.
        return grid.detach() if mode == "nearest" else grid

    assert_agrees(
        lambda x, g: F.grid_sample(x, positions(g), mode, padding, align_corners),
        lambda x, g: torch.nn.functional.grid_sample(x, positions(g), mode, padding, align_corners),
        [IMAGE, GRID],
        device,
        128,
    )


@pytest.mark.filterwarnings("ignore:Since version 1.3.0:UserWarning")
@pytest.mark.parametrize("align_corners", [False, True])
def test_affine_grid(align_corners: bool, device: object) -> None:
    theta = inputs((2, 2, 3), -1, 1)
    for size in ((2, 1, 4, 5), (2, 3, 1, 1)):
        assert_agrees(
            lambda t, s=size: F.affine_grid(t, s, align_corners),
            lambda t, s=size: torch.nn.functional.affine_grid(t, s, align_corners),
            [theta],
            device,
        )


def test_the_identity_map_gives_the_image_back(device: object) -> None:
    image = vkml.tensor(IMAGE, device=device)
    theta = vkml.tensor([[1.0, 0, 0], [0, 1, 0]], device=device).broadcast_to((2, 2, 3))
    for align_corners in (False, True):
        grid = F.affine_grid(theta, (2, 3, 5, 4), align_corners)
        found = F.grid_sample(image, grid, align_corners=align_corners)
        np.testing.assert_allclose(found.numpy(), IMAGE, atol=2e-6)


def test_what_does_not_fit_is_said() -> None:
    image, grid = vkml.ones(1, 1, 2, 2), vkml.zeros(1, 2, 2, 2)
    for call in (
        lambda: F.grid_sample(image, grid[..., :1]),
        lambda: F.grid_sample(image[:, :, :0], grid),
        lambda: F.affine_grid(vkml.ones(2, 3), (2, 1, 2, 2)),
    ):
        with pytest.raises(vkml.ShapeError, match=r"^\[\w+\] "):
            call()
    with pytest.raises(vkml.ArgumentError, match=r"\[grid_sample\] mode is 'cubic'"):
        F.grid_sample(image, grid, "cubic")
