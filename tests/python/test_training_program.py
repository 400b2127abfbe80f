"""The training program of examples/python: results, Ctrl-C, repeatability, clear errors."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import safetensors.numpy

import vkml
from vkml.data.fashion_mnist import DEBIAN_FOLDER

PROGRAM = Path(__file__).parents[2] / "examples" / "python" / "train_fashion_mnist.py"

needs_data = pytest.mark.skipif(
    not DEBIAN_FOLDER.is_dir(), reason="dataset-fashion-mnist is not installed"
)
pytest.importorskip("matplotlib")
pytest.importorskip("tqdm")


def command(*arguments):
    return [sys.executable, str(PROGRAM), "--device", "cpu", *map(str, arguments)]


def environment():
    # The package under test may come from the path rather than from an installation.
    paths = [str(Path(vkml.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}


def run(*arguments):
    return subprocess.run(
        command(*arguments), capture_output=True, text=True, env=environment(), check=False
    )


def weights_path(folder):
    return folder / "fashion_mnist_mlp.safetensors"


def weights(folder):
    return weights_path(folder).read_bytes()


def test_help_names_every_option():
    result = run("--help")
    assert result.returncode == 0
    for option in ["model", "epochs", "batch", "seed", "device", "data", "out", "resume", "eager"]:
        assert f"--{option}" in result.stdout


def test_help_installs_and_builds_nothing(tmp_path):
    """With a Python that has no vkML, as on a fresh machine."""
    script = PROGRAM.parents[2] / "scripts" / "run.sh"
    if not script.is_file():
        pytest.skip("not in a checkout")
    result = subprocess.run(
        ["bash", script, "--help"], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert "--resume" in result.stdout
    assert "setup:" not in result.stdout + result.stderr


@needs_data
def test_one_epoch_writes_all_results_and_ends_with_the_accuracy(tmp_path):
    result = run("--epochs", 1, "--batch", 512, "--out", tmp_path)
    assert result.returncode == 0, result.stderr
    last_line = result.stdout.splitlines()[-1]
    accuracy = re.fullmatch(r"test accuracy: (\d+\.\d) %", last_line)
    assert accuracy
    assert float(accuracy[1]) > 80
    for name in ("curve", "predictions"):
        assert (tmp_path / f"fashion_mnist_mlp_{name}.png").read_bytes().startswith(b"\x89PNG")
    assert len(safetensors.numpy.load(weights(tmp_path))) == 6
    for shown in ("images/s", "loss=", "accuracy=", "<"):
        assert shown in result.stderr


@needs_data
def test_default_settings_reach_88_percent(tmp_path):
    result = run("--out", tmp_path)
    assert result.returncode == 0, result.stderr
    assert float(result.stdout.split()[-2]) >= 88.0


# The program on the first images alone: arguments are their number, and the program's own.
ON_FEW_IMAGES = """
import sys

sys.path.insert(0, sys.argv[1])
import train_fashion_mnist as program

def load_part(folder):
    data, count = load_all(folder), int(sys.argv[2])
    return data._replace(
        train_images=data.train_images[:count], train_labels=data.train_labels[:count]
    )

load_all, program.load_fashion_mnist = program.load_fashion_mnist, load_part
sys.exit(program.main(sys.argv[3:]))
"""


def run_on(images, folder, device, *arguments):
    """Trains for one epoch: (the bytes of the weights, the test accuracy in percent)."""
    options = ["--device", device, "--epochs", 1, "--out", folder, *arguments]
    result = subprocess.run(
        [sys.executable, "-c", ON_FEW_IMAGES, *map(str, (PROGRAM.parent, images, *options))],
        capture_output=True,
        text=True,
        env=environment(),
        check=False,
    )
    assert result.returncode == 0, result.stderr
    (weights_file,) = folder.glob("fashion_mnist_*.safetensors")
    return weights_file.read_bytes(), float(result.stdout.split()[-2])


DEVICES = sorted({info.device.type for info in vkml.devices()})


@pytest.fixture(scope="module")
def repeated(tmp_path_factory):
    """By device the results of two runs with one seed."""
    return {
        device: [
            run_on(6400, tmp_path_factory.mktemp("run"), device, "--batch", 64, "--seed", 3)
            for _ in range(2)
        ]
        for device in DEVICES
    }


@needs_data
@pytest.mark.parametrize("device", DEVICES)
def test_one_seed_gives_the_same_weights_bit_by_bit(repeated, device):
    (first, _), (second, _) = repeated[device]
    assert first == second


@needs_data
@pytest.mark.skipif("vulkan" not in DEVICES, reason="there is no Vulkan device")
def test_cpu_and_vulkan_reach_the_same_accuracy(repeated):
    (_, on_cpu), (_, on_vulkan) = repeated["cpu"][0], repeated["vulkan"][0]
    assert abs(on_cpu - on_vulkan) <= 0.5


@needs_data
def test_another_seed_gives_other_weights(repeated, tmp_path):
    other, _ = run_on(6400, tmp_path, "cpu", "--batch", 64, "--seed", 4)
    assert other != repeated["cpu"][0][0]


@needs_data
def test_a_short_run_of_the_cnn_learns(tmp_path):
    _, accuracy = run_on(12800, tmp_path, "cpu", "--model", "cnn", "--batch", 64)
    assert accuracy >= 80.0


@needs_data
def test_interrupted_and_resumed_run_equals_an_uninterrupted_one(tmp_path):
    settings = ["--epochs", 2, "--batch", 500, "--seed", 7]
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    assert run(*settings, "--out", whole).returncode == 0

    process = subprocess.Popen(
        command(*settings, "--out", parts),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    )
    # The bar is redrawn by carriage returns: wait until it reports a loss.
    seen = ""
    while "loss=" not in seen:
        character = process.stderr.read(1)
        assert character, seen
        seen += character
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 130, output
    assert "--resume" in output
    assert not (parts / "fashion_mnist_mlp.safetensors").exists()

    clash = run("--resume", "--batch", 64, "--out", parts)
    assert clash.returncode == 1
    assert "--batch 64 differs" in clash.stderr

    resumed = run("--resume", "--out", parts)
    assert resumed.returncode == 0, resumed.stderr
    assert weights(parts) == weights(whole)


# Sends Ctrl-C when the program looks for a module, then runs it.
INTERRUPT_AT_IMPORT = """
import os, runpy, signal, sys

module, program, *arguments = sys.argv[1:]

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == module:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)

sys.path.insert(0, os.path.dirname(program))
sys.argv = [program, *arguments]
sys.meta_path.insert(0, Finder())
runpy.run_path(program, run_name="__main__")
"""


@pytest.mark.parametrize("module", ["argparse", "vkml", "vkml.data.fashion_mnist", "tqdm"])
def test_ctrl_c_before_training_ends_the_program_without_a_word(module, tmp_path):
    result = subprocess.run(
        [sys.executable, "-c", INTERRUPT_AT_IMPORT, module, *command("--out", tmp_path)[1:]],
        capture_output=True,
        text=True,
        env=environment(),
        check=False,
    )
    assert (result.returncode, result.stdout, result.stderr) == (130, "", "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--device", "tpu"], "tpu"),
        (["--data", "/nonexistent"], "dataset-fashion-mnist"),
        (["--resume"], "Train without --resume first"),
        (["--out", "/proc/nowhere"], "Choose another folder"),
        (["--out", "/dev/null/out"], "Choose another folder"),
    ],
)
def test_errors_are_one_clear_line(arguments, message, tmp_path):
    # A later option wins over an earlier one.
    result = run("--out", tmp_path, *arguments)
    assert result.returncode == 1
    assert result.stderr.startswith("error: ")
    assert message in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("contents", "message"),
    [(b"garbage", "not a valid safetensors file"), (None, "not a checkpoint of this program")],
)
def test_foreign_checkpoints_are_refused(contents, message, tmp_path):
    path = tmp_path / "checkpoint.safetensors"
    if contents is None:
        vkml.save({"weight": vkml.zeros(1)}, path)
    else:
        path.write_bytes(contents)
    result = run("--out", tmp_path, "--resume")
    assert result.returncode == 1
    assert result.stderr.startswith("error: ")
    assert message in result.stderr


@needs_data
@pytest.mark.parametrize("part", ["settings", "optimizer", "schedule", "totals"])
def test_a_checkpoint_with_a_damaged_part_is_refused(part, tmp_path):
    assert run("--epochs", 1, "--batch", 4096, "--out", tmp_path).returncode == 0
    path = tmp_path / "checkpoint.safetensors"
    saved = {
        "settings": {"model": "mlp", "epochs": 2, "batch": 4096, "seed": 0},
        "model": vkml.load(weights_path(tmp_path)),
        "optimizer": {},
        "schedule": {},
        "totals": {},
        "step": 0,
        "history": [],
    }
    saved[part] = {"seed": 0}
    vkml.save(saved, path)
    result = run("--out", tmp_path, "--resume")
    assert result.returncode == 1
    assert result.stderr.startswith("error: --resume: ")
    assert "is not a checkpoint of this program" in result.stderr


def test_full_disk_is_a_clear_error():
    if not os.path.exists("/dev/shm") or os.geteuid() != 0:
        pytest.skip("needs a small file system: root and mount")
    folder = Path(f"/tmp/vkml-small-{os.getpid()}-{time.monotonic_ns()}")
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder],
        capture_output=True,
        check=False,
    )
    try:
        if mounted.returncode != 0:
            pytest.skip("needs a small file system: mount is not allowed")
        result = run("--out", folder)
        assert result.returncode == 1
        assert "No space left on device" in result.stderr
        assert "--out" in result.stderr
    finally:
        if mounted.returncode == 0:
            subprocess.run(["umount", folder], check=True)
        folder.rmdir()


def test_impossible_options_are_refused():
    for arguments in (["--epochs", 0], ["--batch", -1], ["--model", "rnn"], ["--seed", "x"]):
        result = run(*arguments)
        assert result.returncode == 2
        assert "usage" in result.stderr
