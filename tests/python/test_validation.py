"""A training loop on Vulkan, watched by the Khronos validation layer."""

import os
import subprocess
import sys

import pytest

import vkml

TRAINING = """
import vkml, vkml.nn as nn
vkml.set_default_device("vulkan")
vkml.manual_seed(0)
model = nn.Sequential(
    nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
    nn.Dropout(0.1), nn.Linear(128, 16), nn.LayerNorm(16), nn.GELU(), nn.Linear(16, 3),
).to("vulkan")
x, y = vkml.randn(6, 1, 8, 8), vkml.tensor([0, 1, 2, 0, 1, 2])
optimizer = vkml.optim.AdamW(model.parameters(), lr=1e-2)

@vkml.jit
def recorded_step():
    return step()

def step():
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    return loss

for run in (step, recorded_step):
    for _ in range(4):
        assert run().item() < 10
order = vkml.argsort(x.reshape(-1)).numpy()
assert sorted(order) == list(range(384))
try:
    vkml.embedding(vkml.tensor([8]), x[0, 0]).numpy()
except IndexError:
    print("refused the index")
"""


@pytest.mark.parametrize(
    "setting",
    ["VKML_VULKAN_BUFFERS=addresses", "VKML_VULKAN_BUFFERS=descriptors", "VKML_MIN_SPEC=1"],
)
def test_a_training_loop_is_valid_vulkan(setting):
    if not any(str(info.device).startswith("vulkan") for info in vkml.devices()):
        pytest.skip("no Vulkan device")
    name, value = setting.split("=")
    done = subprocess.run(
        [sys.executable, "-c", TRAINING],
        env=os.environ | {"VKML_VALIDATION": "1", name: value},
        capture_output=True,
        text=True,
        check=False,
    )
    if "is not installed" in done.stderr:
        pytest.skip("the validation layer is not installed")
    assert done.returncode == 0, done.stderr
    assert "refused the index" in done.stdout
    assert "validation error" not in done.stderr.lower()
