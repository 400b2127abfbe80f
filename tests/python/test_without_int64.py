"""On the least device (VKML_MIN_SPEC=1): networks train, int64 travels, halves are computed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import safetensors.numpy

import vkml

needs_vulkan = pytest.mark.skipif(
    "vulkan" in vkml.missing_devices(), reason="there is no Vulkan device"
)

TRAIN = """
import sys
import vkml
from vkml import nn

vkml.set_default_device("vulkan")
model = nn.Sequential(
    nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.Flatten(), nn.Linear(2 * 16, 3)
)
optimizer = vkml.optim.SGD(model.parameters(), lr=0.1)
images, labels = vkml.randn(4, 1, 6, 6), vkml.tensor([0, 1, 2, 1])
nodes, misses = [], []
for _ in range(12):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(images), labels)
    loss.backward()
    optimizer.step()
    loss.item()
    nodes.append(vkml._vkml._live_nodes())
    misses.append(vkml.cache_info("vulkan").misses)
print(len(set(nodes[2:])), misses[-1] - misses[1])
vkml.save(model.state_dict(), sys.argv[1])
other = nn.BatchNorm2d(2)
other.load_state_dict({k[2:]: v for k, v in vkml.load(sys.argv[1]).items() if k.startswith("1.")})
print(other.num_batches_tracked.item(), other.to("cpu").state_dict()["num_batches_tracked"].dtype)
"""

TRAVEL = """
import sys
import numpy as np
import vkml

vkml.set_default_device("vulkan")
for dtype in (np.int64, np.float64):
    array = np.arange(24, dtype=dtype).reshape(2, 3, 4) * 5 - 2**40
    x = vkml.tensor(array)
    views = [x, x.permute(2, 0, 1), x[1:, ::-2, 1:3], x[:1].expand(2, 3, 4), x[0, 0, 0]]
    arrays = [
        array,
        array.transpose(2, 0, 1),
        array[1:, ::-2, 1:3],
        np.broadcast_to(array[:1], (2, 3, 4)),
        array[0, 0, 0],
    ]
    vkml.save(views, sys.argv[1])
    loaded = vkml.load(sys.argv[1])
    for view, same, expected in zip(views, loaded, arrays, strict=True):
        for tensor in (view, view.cpu(), view.cpu().to("vulkan"), same):
            np.testing.assert_array_equal(tensor.numpy(), expected)
            assert tensor.tolist() == expected.tolist()
    for value in (x + x, vkml.ones(3, dtype=x.dtype)):
        try:
            value.realize()
        except vkml.UnsupportedError as error:
            print(error)
"""


def run(code, *arguments):
    """What a process on the least Vulkan device prints."""
    result = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env={
            **os.environ,
            "PYTHONPATH": str(Path(vkml.__file__).parents[1]),
            "VKML_MIN_SPEC": "1",
        },
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.splitlines()


@needs_vulkan
def test_a_network_with_batch_norm_trains_and_is_saved_as_pytorch_would(tmp_path):
    path = tmp_path / "state.safetensors"
    assert run(TRAIN, path) == ["1 0", "12 vkml.int64"]
    counter = safetensors.numpy.load_file(path)["1.num_batches_tracked"]
    assert (counter.dtype, counter.shape, counter.item()) == ("int64", (), 12)


@needs_vulkan
def test_tensors_without_arithmetic_travel_in_every_layout(tmp_path):
    of_integers, new_integers, of_doubles, new_doubles = run(TRAVEL, tmp_path / "views")
    for text, name in ((of_integers, "add"), (new_integers, "full")):
        assert text.startswith(f"[{name}] is not available on vulkan:0: int64 needs shaderInt64")
        # The value cannot be computed to be moved: it has to be made elsewhere, or otherwise.
        assert text.endswith("Use int32, or make the tensors on the CPU: device=vkml.cpu")
    for text, name in ((of_doubles, "add"), (new_doubles, "full")):
        assert text.startswith(f"[{name}] is not available on vulkan:0: float64 needs shaderFloat")
        assert text.endswith("Use float32, or make the tensors on the CPU: device=vkml.cpu")


HALVES = """
import vkml
(device,) = [info for info in vkml.devices() if info.device == vkml.vulkan]
print("storageBuffer16BitAccess" in device.features)
for dtype in (vkml.float16, vkml.bfloat16, vkml.float32):
    x = vkml.tensor([1.0, 2.5, -3.0], dtype=dtype, device=vkml.vulkan)
    y = (x * 2 + 1)[1:]
    print(y.dtype, y.tolist(), (x @ x).item())
try:
    (vkml.tensor([1.0], dtype=vkml.float64, device=vkml.vulkan) + 1).item()
except vkml.UnsupportedError as error:
    print(error)
"""


@needs_vulkan
def test_halves_without_storage_of_16_bits():
    """They share words: no feature is missed but where the error names it."""
    has_storage, *values, error = run(HALVES)
    assert has_storage == "False"
    assert values == [
        f"vkml.{name} [6.0, -5.0] 16.25" for name in ("float16", "bfloat16", "float32")
    ]
    assert "float64 needs shaderFloat64" in error
