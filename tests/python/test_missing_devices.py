"""A Vulkan that fails: the reason and the remedy reach the user, and the CPU works."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import vkml

REPORT = """
import vkml

for make in (
    lambda: vkml.ones(3, device="vulkan").realize(),
    lambda: vkml.set_default_device("vulkan"),
    lambda: vkml.tensor([1.0]).to("vulkan"),
):
    try:
        make()
    except vkml.DeviceError as error:
        print(error)
print([str(info.device) for info in vkml.devices()])
print(vkml.missing_devices())
print((vkml.ones(3) + 1).tolist())
"""

# A driver that agrees on versions, and then refuses to make an instance.
REFUSING_DRIVER = """
typedef int (*function)(void);
static int refuse(void) { return -3; }
function vk_icdGetInstanceProcAddr(void* instance, const char* name) { return refuse; }
function vk_icdGetPhysicalDeviceProcAddr(void* instance, const char* name) { return 0; }
int vk_icdNegotiateLoaderICDInterfaceVersion(unsigned* version) { *version = 5; return 0; }
"""


def report(**environment):
    """The lines that a process with these variables prints; it has not failed otherwise."""
    result = subprocess.run(
        [sys.executable, "-c", REPORT],
        capture_output=True,
        text=True,
        check=True,
        env={
            **os.environ,
            "PYTHONPATH": str(Path(vkml.__file__).parents[1]),
            **{name: str(value) for name, value in environment.items()},
        },
    )
    return result.stdout.splitlines()


def check(lines, reason):
    """Every error and the list of what is missing give the reason, and the CPU works."""
    *errors, found, missing, values = lines
    assert len(errors) == 3
    for error in errors:
        assert error.startswith("[device] vulkan:0 is not here: ")
        assert reason in error
        assert "Install" in error
        assert "vkml.cpu" in error
    assert found == "['cpu']"
    assert missing.startswith("{'vulkan': ")
    assert reason in missing
    assert values == "[2.0, 2.0, 2.0]"


def driver_file(folder, library):
    path = folder / "driver.json"
    icd = {"library_path": str(library), "api_version": "1.3.0"}
    path.write_text(json.dumps({"file_format_version": "1.0.0", "ICD": icd}))
    return path


def nothing(folder):
    return folder / "nothing.json"


def garbled_file(folder):
    (folder / "driver.json").write_text("garbage")
    return folder / "driver.json"


def garbled_library(folder):
    (folder / "driver.so").write_text("garbage")
    return driver_file(folder, folder / "driver.so")


def refusing_library(folder):
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-x", "c", "-", "-o", folder / "driver.so"],
        input=REFUSING_DRIVER,
        text=True,
        check=True,
    )
    return driver_file(folder, folder / "driver.so")


@pytest.mark.parametrize("make", [nothing, garbled_file, garbled_library, refusing_library])
def test_a_driver_that_fails_is_named_with_the_remedy(make, tmp_path):
    path = make(tmp_path)
    lines = report(VK_DRIVER_FILES=path, VK_ICD_FILENAMES=path)
    check(lines, f"VK_DRIVER_FILES={path}")
    assert "VK_ERROR" in lines[0]


def test_a_loader_that_cannot_be_opened_is_named_with_the_remedy(tmp_path):
    for name in ("libvulkan.so.1", "libvulkan.so"):
        (tmp_path / name).write_text("no library")
    check(report(LD_LIBRARY_PATH=tmp_path), "there is no Vulkan loader (")


def test_devices_that_are_here_are_not_missing():
    kinds = {info.device.type for info in vkml.devices()}
    assert kinds.isdisjoint(vkml.missing_devices())


def test_one_device_too_far_says_how_many_there_are(device):
    count = sum(info.device.type == device.type for info in vkml.devices())
    if device.type == "cpu":
        pytest.skip("there is one CPU, without a number")
    with pytest.raises(vkml.DeviceError, match=f"vulkan:200 is not here: {count} of its kind"):
        vkml.ones(1, device="vulkan:200").realize()
