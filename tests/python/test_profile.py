"""vkml.profile: which kernels ran and what they did, by arithmetic; traces; threads; errors."""

import json
import os
import pathlib
import re
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import vkml
from vkml.nn import functional

# Seconds by which a device's clock may be off the host's on a busy machine.
CLOCKS_AGREE = 0.05


def arrays(device, *shapes, dtype=None):
    """Computed tensors of small numbers."""
    made = [
        vkml.tensor(np.arange(np.prod(shape)).reshape(shape) % 7 + 1.0, device=device)
        for shape in shapes
    ]
    return [x.to(dtype or vkml.float32).realize() for x in made]


def profiled(function):
    """The profile of computing what `function` records."""
    with vkml.profile() as p:
        function().realize()
    return p


def only(p):
    """The one kernel that ran, once."""
    assert len(p.runs) == 1
    (kernel,) = p.kernels
    assert kernel.count == 1
    return kernel


# What is computed of three matrices.
GRAPHS = {
    "chain": lambda a, b, c: vkml.sigmoid(a * b + a) * vkml.tanh(b) - a / 2,
    "product": lambda a, b, c: vkml.relu(a @ b + c),
    "softmax": lambda a, b, c: functional.softmax(a, dim=-1),
    "sort": lambda a, b, c: (a + b).argsort(dim=-1) * 2,
    "several": lambda a, b, c: ((a @ b).sum(dim=0) + c).cumsum(dim=0) @ b,
}


@pytest.mark.parametrize("name", GRAPHS)
def test_kernels_are_those_that_explain_prints(name, device):
    a, b, c = arrays(device, (12, 12), (12, 12), (12, 12))
    plan = vkml.explain(GRAPHS[name](a, b, c))
    expected = re.findall(r"^kernel \d+: (.*) space", plan, re.MULTILINE)
    with vkml.profile() as p:
        GRAPHS[name](a, b, c).realize()
    assert [run.name for run in p.runs] == expected
    assert sum(kernel.count for kernel in p.kernels) == len(expected)
    assert {str(run.device) for run in p.runs} == {str(device)}


def test_a_chain_reads_each_operand_once(device):
    a, b, c = arrays(device, (1000,), (1000,), (1000,))
    kernel = only(profiled(lambda: a * b + c))
    assert (kernel.bytes_read, kernel.bytes_written, kernel.flops) == (12000, 4000, 2000)
    kernel = only(profiled(lambda: a * a + a))
    assert (kernel.bytes_read, kernel.bytes_written, kernel.flops) == (4000, 4000, 2000)
    assert kernel.extents == [1, 1, 1, 1000]


def test_a_row_that_is_broadcast_is_read_once(device):
    a, row = arrays(device, (20, 30), (30,))
    kernel = only(profiled(lambda: a + row))
    assert (kernel.bytes_read, kernel.bytes_written, kernel.flops) == (2520, 2400, 600)


def test_a_sum_adds_each_element(device):
    (x,) = arrays(device, (40, 50))
    kernel = only(profiled(lambda: x.sum()))
    assert (kernel.bytes_read, kernel.bytes_written, kernel.flops) == (8000, 4, 2000)
    kernel = only(profiled(lambda: x.sum(dim=1)))
    assert (kernel.bytes_read, kernel.bytes_written, kernel.flops) == (8000, 160, 2000)


@pytest.mark.parametrize(("dtype", "width"), [(vkml.float32, 4), (vkml.bfloat16, 2)])
def test_a_product_takes_two_operations_for_each_term(dtype, width, device):
    a, b = arrays(device, (3, 32, 48), (3, 48, 16), dtype=dtype)
    kernel = only(profiled(lambda: a @ b))
    assert kernel.name == "matmul"
    assert kernel.bytes_read == width * 3 * (32 * 48 + 48 * 16)
    assert kernel.bytes_written == width * 3 * 32 * 16
    assert kernel.flops == 2 * 3 * 32 * 48 * 16
    fused = only(profiled(lambda: a @ b + a[:, :, :16]))
    assert fused.name == "matmul add"
    assert fused.flops == kernel.flops + 3 * 32 * 16
    assert fused.bytes_read == kernel.bytes_read + width * 3 * 32 * 16


def test_convolutions_and_their_gradients_take_the_same_operations(device):
    x, w = arrays(device, (2, 4, 9, 9), (6, 2, 3, 3))
    x.requires_grad_()
    w.requires_grad_()
    with vkml.profile() as p:
        y = functional.conv2d(x, w, stride=2, groups=2)
        y.backward(vkml.ones_like(y))
        vkml.realize([y, x.grad, w.grad])
    flops = {k.name: k.flops for k in p.kernels if k.name.startswith("conv2d")}
    assert flops == dict.fromkeys(
        ("conv2d", "conv2d_input_gradient", "conv2d_weight_gradient"),
        2 * (2 * 6 * 4 * 4) * (2 * 3 * 3),
    )


def test_a_gather_reads_what_its_index_names(device):
    (table,) = arrays(device, (1000, 8))
    index = vkml.tensor([3, 5], device=device)
    kernels = profiled(lambda: table[index]).kernels
    read = sum(kernel.bytes_read for kernel in kernels if kernel.name.startswith("gather"))
    assert 2 * 8 * 4 <= read < 1000


def test_integers_take_no_floating_point_operations(device):
    x = vkml.tensor([1, 2, 3], device=device)
    assert only(profiled(lambda: x * 3 + x)).flops == 0
    square = vkml.ones(3, 3, dtype=vkml.int32, device=device).realize()
    assert sum(kernel.flops for kernel in profiled(lambda: square @ square).kernels) == 0


def test_times_lie_inside_the_block(device):
    a, b, _ = arrays(device, (64, 64), (64, 64), (64, 64))
    (a @ b).realize()
    begin = time.perf_counter()
    with vkml.profile() as p:
        for _ in range(3):
            (a @ b).realize()
    end = time.perf_counter()
    (kernel,) = p.kernels
    assert kernel.count == 3
    assert kernel.timed_by == "device"
    assert 0 < kernel.shortest <= kernel.seconds / 3
    assert kernel.seconds == pytest.approx(sum(run.seconds for run in p.runs))
    assert kernel.seconds <= p.seconds <= end - begin
    for run in p.runs:
        assert begin - CLOCKS_AGREE <= run.begin <= run.begin + run.seconds <= end + CLOCKS_AGREE
    begins = [run.begin for run in p.runs]
    assert begins == sorted(begins)
    assert len({run.submission for run in p.runs}) == 3


def test_kernels_of_one_submission_do_not_overlap(device):
    """Independent ones would, on a GPU: then a kernel's time would hold another one's."""
    a, b, _ = arrays(device, (48, 48), (48, 48), (1,))
    with vkml.profile() as p:
        vkml.realize([a @ b, b @ a, vkml.tanh(a).sum(), a.cumsum(dim=0)])
    assert len(p.runs) == 4
    for before, after in zip(p.runs, p.runs[1:], strict=False):
        assert before.begin + before.seconds <= after.begin + 1e-9


def test_rates_and_the_share_of_the_roof(device):
    a, b, _ = arrays(device, (96, 96), (96, 96), (1,))
    (a @ b).realize()
    kernel = only(profiled(lambda: a @ b))
    assert kernel.gflops_per_second == pytest.approx(1e-9 * kernel.flops / kernel.seconds)
    traffic = kernel.bytes_read + kernel.bytes_written
    assert kernel.gb_per_second == pytest.approx(1e-9 * traffic / kernel.seconds)
    assert kernel.share_of_roof > 0


def test_a_profile_holds_what_ran_inside_its_block_alone(device):
    (x,) = arrays(device, (10,))
    (x + 1).realize()
    with vkml.profile() as p:
        pass
    (x + 2).realize()
    assert p.runs == []
    assert p.kernels == []
    assert [span.name for span in p.spans if span.name == "realize"] == []
    assert "0 kernels" in str(p)


def test_a_training_step_and_its_replays(device):
    """A step that is recorded, and replayed often enough for its commands to be kept."""
    vkml.manual_seed(0)
    model = vkml.nn.Sequential(vkml.nn.Linear(6, 8), vkml.nn.ReLU(), vkml.nn.Linear(8, 3))
    model.to(device)
    optimizer = vkml.optim.SGD(model.parameters(), lr=0.1)
    (x,) = arrays(device, (4, 6))
    y = vkml.tensor([0, 1, 2, 1], device=device)

    def step():
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    def losses(function, profiles):
        start = {name: value.clone().realize() for name, value in model.state_dict().items()}
        found = []
        for i in range(9):
            if i in profiles:
                with vkml.profile() as p:
                    found.append(function().item())
                profiles[i] = p
            else:
                found.append(function().item())
        model.load_state_dict(start)
        return found

    expected = losses(step, {})
    seen = {1: None, 5: None, 8: None}
    assert losses(vkml.jit(step), seen) == expected
    names = [sorted(run.name for run in p.runs) for p in seen.values()]
    assert names[0] == names[1] == names[2]
    assert len(names[0]) > 3
    assert {span.name for span in seen[8].spans} >= {"replay"}


def test_an_error_in_the_block_closes_it(device):
    (x,) = arrays(device, (10,))
    p = vkml.profile()

    def fail():
        with p:
            (x * 2).realize()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert len(p.runs) == 1
    assert len(profiled(lambda: x * 3).runs) == 1


def test_a_bad_index_does_not_end_the_profile(device):
    (x,) = arrays(device, (10,))
    with vkml.profile() as p:
        with pytest.raises(IndexError):
            x.gather(0, vkml.tensor([11], device=device)).tolist()
        (x * 2).realize()
    assert [run.name for run in p.runs][-1] == "region mul"


def test_profiles_do_not_nest(device):
    (x,) = arrays(device, (10,))
    with vkml.profile() as p:
        with pytest.raises(vkml.ArgumentError, match="another profile is open"):
            vkml.profile().__enter__()
        with pytest.raises(vkml.ArgumentError, match="entered already"):
            p.__enter__()
        (x * 2).realize()
    assert len(p.runs) == 1


def test_a_profile_is_read_after_its_block():
    p = vkml.profile()
    with pytest.raises(vkml.ArgumentError, match="is empty"):
        _ = p.runs
    with p:
        for read in (lambda: p.kernels, lambda: p.runs, lambda: p.spans, lambda: str(p)):
            with pytest.raises(vkml.ArgumentError, match="still open"):
                read()
    assert p.runs == []


def test_kernels_of_other_threads_carry_their_number(device):
    (x,) = arrays(device, (10,))
    numbers = {}

    def work(index):
        numbers[index] = threading.get_native_id()
        for _ in range(5):
            (x * 2 if index else x + 2).realize()

    with vkml.profile() as p:
        threads = [threading.Thread(target=work, args=(index,)) for index in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for index, name in enumerate(["region add", "region mul"]):
        (kernel,) = (kernel for kernel in p.kernels if kernel.name == name)
        assert kernel.count == 5
        assert kernel.threads == [numbers[index]]
    realized = [span.thread for span in p.spans if span.name == "realize"]
    assert sorted(realized) == sorted(5 * list(numbers.values()))


def test_two_threads_cannot_profile_at_once(device):
    (x,) = arrays(device, (10,))
    errors = []

    def work():
        try:
            with vkml.profile():
                pass
        except vkml.ArgumentError as error:
            errors.append(error)

    with vkml.profile() as p:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        (x * 2).realize()
    assert len(errors) == 1
    assert len(p.runs) == 1


def test_host_work_nests_and_says_what_it_moved(device):
    with vkml.profile() as p:
        x = vkml.tensor(np.ones(5000, np.float32)).to(device)
        (x * 1.25 + 3).numpy()
    names = {span.name for span in p.spans}
    assert names >= {"realize", "plan", "compile"}
    outer = next(span for span in p.spans if span.name == "plan")
    inner = next(span for span in p.spans if span.name == "compile")
    assert outer.begin <= inner.begin
    assert inner.begin + inner.seconds <= outer.begin + outer.seconds
    if device.type == "vulkan":
        assert names >= {"record commands", "submit"}
        moved = {s.name: s.bytes for s in p.spans if s.bytes > 0}
        assert moved == {"upload": 20000, "download": 20000}


def test_the_table_lists_kernels_and_host_work(device):
    a, b, _ = arrays(device, (16, 16), (16, 16), (1,))
    with vkml.profile() as p:
        (a @ b).realize()
        (a + b).realize()
        (a - b).realize()
    text = str(p)
    assert text == p.table()
    lines = text.splitlines()
    assert lines[0].startswith("3 kernels, ")
    longest = p.kernels[0]
    assert lines[3].startswith(longest.name)
    assert str(device) in lines[3]
    assert any(line.startswith("realize ") for line in lines)
    assert "and 2 more" in p.table(rows=1)


def test_the_trace_has_an_event_for_everything(device, tmp_path):
    a, b, _ = arrays(device, (16, 16), (16, 16), (1,))
    with vkml.profile() as p:
        (a @ b).sum().item()
        vkml.tanh(a).numpy()
    path = tmp_path / "trace.json"
    p.trace(path)
    events = json.loads(path.read_text())["traceEvents"]
    kernels = [event for event in events if event.get("cat") == "kernel"]
    assert [event["name"] for event in kernels] == [run.name for run in p.runs]
    for event, run in zip(kernels, p.runs, strict=True):
        assert event["dur"] == pytest.approx(1e6 * run.seconds, abs=1e-3)
        assert event["args"]["bytes_read"] == run.bytes_read
        assert event["args"]["flops"] == run.flops
        assert event["tid"] == run.thread
        assert event["ts"] > -1e6 * CLOCKS_AGREE
    host = [event["name"] for event in events if event.get("cat") == "host"]
    assert host == [span.name for span in p.spans]
    processes = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert {processes[event["pid"]] for event in kernels} == {str(device)}
    assert "host" in processes.values()


def a_profile():
    """Any."""
    with vkml.profile() as p:
        (vkml.ones(3) * 2).realize()
    return p


def test_a_trace_that_cannot_be_written_is_an_error(tmp_path):
    p = a_profile()
    (tmp_path / "folder").mkdir()
    for path in (tmp_path / "folder", tmp_path / "missing" / "trace.json", "/dev/full"):
        with pytest.raises(vkml.FileError, match=re.escape(str(path))) as raised:
            p.trace(path)
        assert isinstance(raised.value, OSError)
    assert [entry.name for entry in tmp_path.iterdir()] == ["folder"]


def test_a_trace_replaces_what_a_link_points_to(tmp_path):
    target, link = tmp_path / "target.json", tmp_path / "link.json"
    target.write_text("before")
    link.symlink_to(target)
    a_profile().trace(link)
    assert link.is_symlink()
    assert "traceEvents" in json.loads(target.read_text())
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["link.json", "target.json"]


FILLS_THE_DISK = """
import resource, sys, vkml
with vkml.profile() as p:
    for i in range(50):
        (vkml.ones(3) * i).realize()
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    p.trace(sys.argv[1])
except vkml.FileError as error:
    print(error)
"""


def output_of(code: str, *arguments: str, **environment: str) -> str:
    """What a program prints."""
    path = str(pathlib.Path(vkml.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env={**os.environ, "PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_a_full_disk_leaves_the_file_as_it_was(tmp_path):
    path = tmp_path / "trace.json"
    path.write_text("before")
    assert "File too large" in output_of(FILLS_THE_DISK, str(path))
    assert path.read_text() == "before"
    assert [entry.name for entry in tmp_path.iterdir()] == ["trace.json"]


WITHOUT_TIMESTAMPS = """
import vkml
a = vkml.rand(40, 40, device=vkml.vulkan).realize()
with vkml.profile() as p:
    y = (a @ a).sum(dim=0).cumsum(dim=0).realize()
assert abs(y.numpy()[-1] - (a.numpy() @ a.numpy()).sum()) < 1
print([run.timed_by for run in p.runs], all(run.seconds > 0 for run in p.runs))
print(p.table())
"""


@pytest.mark.skipif(len(vkml.devices()) == 1, reason="there is no Vulkan device")
def test_a_queue_without_timestamps_is_timed_by_the_host():
    said = output_of(WITHOUT_TIMESTAMPS, VKML_MIN_SPEC="1")
    assert re.match(r"\['host'(, 'host')+\] True", said)
    assert "vulkan:0 writes no timestamps" in said
