"""grid_sample and affine_grid together, and what they refuse; `functional_cases` has the rest."""

import numpy as np
import pytest

import vkml
from checking import inputs
from vkml.nn import functional as F

IMAGE = inputs((2, 3, 5, 4), -1, 1)


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
