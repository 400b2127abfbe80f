"""Pictures of graphs, and explain(): what they say, and that they change nothing."""

import shutil
import subprocess
import xml.etree.ElementTree as ElementTree

import pytest

import vkml
from vkml import graph

SVG = "{http://www.w3.org/2000/svg}"


def example(device):
    """Two kernels: a product, and a reduction of what is made of it."""
    x = vkml.ones((4, 8), device=device).realize()
    w = vkml.ones((8, 3), device=device).realize().requires_grad_()
    return ((x @ w).softmax(-1) * 2.0).sum()


def test_nodes_say_what_was_recorded(device):
    picture = graph.draw(example(device))
    by_op = {node["op"]: node for node in picture.nodes}
    assert by_op["matmul"]["shape"] == (4, 3)
    assert by_op["matmul"]["dtype"] is vkml.float32
    assert not by_op["matmul"]["is_computed"]
    assert by_op["matmul"]["requires_grad"]
    assert picture.nodes[-1]["op"] == "sum"
    assert picture.nodes[-1]["is_root"]
    assert by_op["scalar"]["is_number"]
    assert sum(node["is_computed"] for node in picture.nodes) >= 2
    for number, node in enumerate(picture.nodes):
        assert all(0 <= source < number for source in node["sources"])


def test_kernels_and_memory_are_those_of_the_plan(device):
    y = example(device)
    picture = graph.draw(y)
    before = vkml.cache_info(device).kernels
    y.realize()
    assert len(picture.kernels) == vkml.cache_info(device).kernels - before
    (product,) = [k for k, kernel in enumerate(picture.kernels) if kernel["kind"] == "matmul"]
    assert "matmul" in {picture.nodes[n]["op"] for n in picture.members(product)}
    results = [buffer for buffer in picture.buffers if buffer["kind"] == "result"]
    assert {4} <= {buffer["bytes"] for buffer in results}
    for buffer in picture.buffers:
        if buffer["kind"] == "temporary":
            assert 0 <= buffer["offset"] <= picture.arena_bytes - buffer["bytes"]
    for kernel in picture.kernels:
        assert all(picture.buffers[b]["kind"] != "input" for b in kernel["writes"])


def test_a_computed_tensor_is_drawn_with_what_it_keeps(device):
    y = example(device).realize()
    picture = graph.draw(y)
    assert picture.kernels == []
    assert picture.title == f"{device}: computed"
    assert picture.nodes[-1]["is_computed"]
    assert "matmul" in {node["op"] for node in picture.nodes}  # its gradient is to be had yet
    with vkml.no_grad():
        z = example(device).realize()
    assert [node["op"] for node in graph.draw(z).nodes] == ["sum"]


def test_describing_changes_nothing(device):
    x = vkml.ones((4, 4), device=device).realize()
    view = x[1:]
    y = view * 3.0
    before = repr(vkml.cache_info(device))
    live = vkml._vkml._live_nodes()
    kept = vkml.allocated_bytes(device)
    first = vkml.explain(y)
    assert "cache miss" in first
    assert "48 bytes of new results" in first
    assert vkml.explain(y) == first
    assert "already computed" in vkml.explain(view)
    assert not y.is_computed
    assert not graph.draw([y, y.sum()]).is_cached
    assert (repr(vkml.cache_info(device)), vkml._vkml._live_nodes()) == (before, live)
    assert vkml.allocated_bytes(device) == kept
    y.realize()
    again = view * 3.0
    assert "cache hit" in vkml.explain(again)
    assert graph.draw(again).is_cached
    assert "already computed" in vkml.explain(y)


def test_an_assignment_in_place_is_told_from_a_new_block(device):
    x = vkml.zeros(64, device=device)
    x += 1
    x.realize()
    x += 1
    picture = graph.draw(x)
    assert [buffer["overwrites"] for buffer in picture.buffers if buffer["kind"] == "result"] == [0]
    assert "in place, 256 bytes" in picture.dot


def test_dot_names_every_node_edge_and_kernel(device):
    picture = graph.draw(example(device))
    text = picture.dot
    assert text.startswith("digraph vkml {")
    assert text.count(" -> ") == sum(len(node["sources"]) for node in picture.nodes)
    assert text.count("subgraph cluster_") == len(picture.kernels)
    for number in range(len(picture.nodes)):
        assert f"  n{number} [label=" in text
    assert "float32 (4, 3)" in text
    if shutil.which("dot"):
        subprocess.run(["dot", "-Tsvg"], input=text.encode(), capture_output=True, check=True)


def test_svg_draws_every_node_and_edge_without_overlap(device):
    picture = graph.draw(example(device))
    root = ElementTree.fromstring(picture.svg)
    boxes = [box for box in root.iter(f"{SVG}rect") if box.get("rx")]
    assert len(boxes) == len(picture.nodes)
    edges = [path for path in root.iter(f"{SVG}path") if path.get("class") == "edge"]
    assert len(edges) == sum(len(node["sources"]) for node in picture.nodes)
    texts = [text.text for text in root.iter(f"{SVG}text")]
    assert "matmul" in texts
    assert picture.title in texts
    assert any(text.startswith("kernel 0: ") for text in texts)
    places = [tuple(float(box.get(k)) for k in ("x", "y", "width", "height")) for box in boxes]
    for number, (x, y, width, height) in enumerate(places):
        assert 0 <= x <= float(root.get("width"))
        for other_x, other_y, other_width, other_height in places[:number]:
            apart = x >= other_x + other_width or other_x >= x + width
            assert apart or y >= other_y + other_height or other_y >= y + height
        for source in picture.nodes[number]["sources"]:
            assert places[source][1] < y
    assert picture._repr_svg_() == picture.svg


def test_files_are_written_by_their_ending(tmp_path):
    picture = graph.draw(vkml.ones(2) + 1)
    picture.save(tmp_path / "a.svg")
    picture.save(tmp_path / "a.dot")
    assert (tmp_path / "a.svg").read_text() == picture.svg
    assert (tmp_path / "a.dot").read_text() == picture.dot
    with pytest.raises(vkml.ArgumentError, match=r"\.svg or \.dot"):
        picture.save(tmp_path / "a.png")
    assert repr(picture).startswith("Drawing(")


def test_tensors_of_two_devices_are_refused():
    if len(vkml.devices()) < 2:
        pytest.skip("there is one device")
    with pytest.raises(vkml.DeviceError):
        graph.draw([vkml.ones(2, device="cpu") + 1, vkml.ones(2, device="vulkan") + 1])


def test_a_record_prints_itself(device):
    record = vkml.autograd.ComputationGraph()
    x = vkml.tensor([2.0], device=device, requires_grad=True)
    y = record.apply("mul", x, x)
    record.apply("exp", y)
    lines = str(record).splitlines()
    assert "mul" in lines[0]
    assert "exp" in lines[1]
    assert "#0" in lines[1]
