"""Fixtures of all tests: `device` runs a test on every device there is."""

import pytest

import vkml


def _available_devices() -> list[str]:
    """The CPU, and the first Vulkan device, a software driver included."""
    names = [str(info.device) for info in vkml.devices()]
    vulkan = [name for name in names if name.startswith("vulkan")]
    return ["cpu", *vulkan[:1]]


@pytest.fixture(params=_available_devices())
def device(request):
    """Each device in turn, as the default device for the length of the test."""
    chosen = vkml.device(request.param)
    vkml.set_default_device(chosen)
    yield chosen
    vkml.set_default_device(vkml.cpu)
