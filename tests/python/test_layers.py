"""The layers include downwards only, and a backend's private headers stay its own."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parents[2]


def layers_below() -> dict[str, set[str]]:
    """What each layer may include, beside itself: what its target links to publicly."""
    text = (ROOT / "CMakeLists.txt").read_text()
    below: dict[str, set[str]] = {}
    for layer, dependencies in re.findall(r"^vkml_layer\((\S+) DEPENDS ([^)]*)\)", text, re.M):
        linked = re.split(r"\b[A-Z]+_DEPENDS\b", dependencies)[0]
        direct = {name for name in below if f"vkml_{name.replace('/', '_')}" in linked.split()}
        below[layer] = direct.union(*(below[name] for name in direct))
    # Python's module links to the whole, and sees no more of it than a user does.
    return below | {"bindings": {"core", "api"}}


# The order of the keys is the order of the layers.
BELOW = layers_below()
BACKENDS = [layer for layer in BELOW if layer.startswith("backend/")]
# Nodes are opaque to the bindings. The elementwise table and the way to wait hold none.
FREE_OF_NODES = {"ops/elementwise.def.h", "ops/elementwise_row.h", "dispatch/device_mutex.h"}
# What operators are written with, in C++ by users too, and what draws graphs.
SHOWING_NODES = {"autograd.h", "plan.h"}
# The one place that knows which backends there are.
REGISTRATION = {f"src/api/runtime.cpp -> {backend}/register.h" for backend in BACKENDS}

INCLUDE = re.compile(r'^\s*#\s*include\s*["<]([^">]+)[">]', re.MULTILINE)


def layer_of(path: str) -> str | None:
    """The layer of a path such as `backend/cpu/kernels/x.h`, or None."""
    return next((layer for layer in BELOW if path.startswith(layer + "/")), None)


def sources(layer: str) -> list[pathlib.Path]:
    """Every C++ file of a layer."""
    if layer == "bindings":
        folders = [ROOT / "bindings"]
    else:
        folders = [ROOT / "src" / layer, ROOT / "include" / "vkml" / layer]
    return [
        file
        for folder in folders
        for file in sorted(folder.rglob("*"))
        if file.suffix in {".h", ".cpp", ".inc"}
    ]


def included_layers(file: pathlib.Path, layer: str) -> list[tuple[str, str]]:
    """(included path under its layer's root, its layer) for each include of vkML's own headers."""
    found = []
    for name in INCLUDE.findall(file.read_text()):
        path = name.removeprefix("vkml/")
        here = file.parent / name
        if layer_of(path):
            found.append((path, layer_of(path)))
        elif here.is_file():
            relative = here.resolve().relative_to(ROOT)
            parts = relative.as_posix().split("/", 1)
            found.append((parts[1], layer_of(parts[1]) or layer))
    return found


@pytest.mark.parametrize("layer", BELOW)
def test_a_layer_includes_downwards_only(layer):
    upward = [
        f"{file.relative_to(ROOT)} -> {path}"
        for file in sources(layer)
        for path, target in included_layers(file, layer)
        if target not in BELOW[layer] | {layer}
        if not (layer == "bindings" and path in FREE_OF_NODES)
    ]
    assert sorted(set(upward) - REGISTRATION) == []


@pytest.mark.parametrize("backend", BACKENDS)
def test_private_headers_of_a_backend_stay_inside(backend):
    private = {
        path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src" / backend).rglob("*.h")
    }
    leaks = [
        f"{file.relative_to(ROOT)} -> {path}"
        for layer in BELOW
        if layer != backend
        for file in sources(layer)
        for path, _ in included_layers(file, layer)
        if path in private
    ]
    assert sorted(set(leaks) - REGISTRATION) == []


def test_tensors_show_nodes_through_a_forward_declaration_alone():
    """Whoever includes these headers cannot reach into a node, through whatever they include."""
    waiting = [ROOT / "include/vkml" / path for path in FREE_OF_NODES]
    api = sorted((ROOT / "include/vkml/api").glob("*.h"))
    waiting += [header for header in api if header.name not in SHOWING_NODES]
    reached = set(waiting)
    while waiting:
        for name in INCLUDE.findall(waiting.pop().read_text()):
            path = ROOT / "include" / name
            if path.is_file() and path not in reached:
                reached.add(path)
                waiting.append(path)
    assert ROOT / "include/vkml/core/shape.h" in reached
    assert ROOT / "include/vkml/graph/node.h" not in reached


def test_no_public_header_names_a_device_api():
    named = [
        f"{file.relative_to(ROOT)} -> {name}"
        for file in sorted((ROOT / "include").rglob("*.h"))
        for name in INCLUDE.findall(file.read_text())
        if re.search(r"vulkan/vulkan|dnnl|omp\.h|hwy/|spirv", name)
    ]
    assert named == []


def test_core_knows_no_other_layer():
    """Guards the walk itself: a broken pattern would pass everything above."""
    walked = {path for file in sources("graph") for path, _ in included_layers(file, "graph")}
    assert "core/shape.h" in walked
    assert BELOW["core"] == set()
    assert BELOW["backend/cpu"] == {"core", "graph", "ops", "dispatch"}
    assert BELOW["api"] == {"core", "graph", "ops", "autograd", "dispatch"}
