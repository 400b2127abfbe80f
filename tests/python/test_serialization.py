"""safetensors files: round trips, other readers and writers, and every kind of damage."""

import copy
import json
import os
import pickle
import stat
import struct

import numpy as np
import pytest
import safetensors.numpy

import vkml
from vkml import nn, optim

DTYPES = ["float64", "float32", "float16", "bfloat16", "int64", "int32", "uint8", "bool"]


def everything(device):
    values = {
        name: vkml.tensor([[0.0, 1.0, 2.0], [3.0, 0.5, 100.0]], device=device).to(
            getattr(vkml, name)
        )
        for name in DTYPES
    }
    values["scalar"] = vkml.tensor(3.5, device=device)
    values["empty"] = vkml.zeros((0, 3), device=device)
    values["transposed"] = vkml.tensor([[1.0, 2.0], [3.0, 4.0]], device=device).transpose(0, 1)
    return values


def test_dictionary_goes_round(device, tmp_path):
    tensors = everything(device)
    path = tmp_path / "all.safetensors"
    vkml.save(tensors, path)
    loaded = vkml.load(path, device=device)
    assert set(loaded) == set(tensors)
    for name, tensor in tensors.items():
        assert loaded[name].dtype == tensor.dtype
        assert tuple(loaded[name].shape) == tuple(tensor.shape)
        assert loaded[name].device == tensor.device
        assert loaded[name].tolist() == tensor.tolist()


def test_other_readers_and_writers_agree(tmp_path):
    tensors = {k: v for k, v in everything(vkml.cpu).items() if k != "bfloat16"}
    path = tmp_path / "ours.safetensors"
    vkml.save(tensors, path, metadata={"made by": "a test"})
    theirs = safetensors.numpy.load_file(path)
    assert set(theirs) == set(tensors)
    for name, array in theirs.items():
        np.testing.assert_array_equal(array, tensors[name].numpy())
    with safetensors.safe_open(path, "numpy") as file:
        assert file.metadata() == {"made by": "a test"}

    path = tmp_path / "theirs.safetensors"
    safetensors.numpy.save_file({"x": np.arange(6, dtype=np.int32).reshape(2, 3)}, path)
    assert vkml.load(path)["x"].tolist() == [[0, 1, 2], [3, 4, 5]]


def test_bfloat16_bits_are_kept(tmp_path):
    path = tmp_path / "b.safetensors"
    vkml.save({"x": vkml.tensor([1.0, -2.5]).to(vkml.bfloat16)}, path)
    ((_, entry),) = safetensors.deserialize(path.read_bytes())
    assert entry["dtype"] == "BF16"
    assert bytes(entry["data"]) == struct.pack("<2H", 0x3F80, 0xC020)


def test_checkpoint_goes_round(device, tmp_path):
    model = nn.Linear(2, 3, device=device)
    optimizer = optim.Adam(model.parameters(), lr=0.01)
    model(vkml.ones((1, 2), device=device)).sum().backward()
    optimizer.step()
    checkpoint = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "epoch": 3,
        "notes": ["a", None, True, 0.1, float("inf"), ()],
        7: {"nested": [vkml.tensor([1, 2])]},
    }
    path = tmp_path / "checkpoint.safetensors"
    vkml.save(checkpoint, path)
    loaded = vkml.load(path, device=device)
    assert loaded["notes"] == checkpoint["notes"]
    assert loaded["epoch"] == 3
    assert loaded[7]["nested"][0].tolist() == [1, 2]
    assert loaded["optimizer"]["param_groups"] == checkpoint["optimizer"]["param_groups"]
    model.load_state_dict(loaded["model"])
    optimizer.load_state_dict(loaded["optimizer"])
    state = optimizer.state_dict()["state"][0]
    assert state["exp_avg"].tolist() == checkpoint["optimizer"]["state"][0]["exp_avg"].tolist()
    assert "model.weight" in safetensors.numpy.load_file(path)


@pytest.mark.parametrize(
    "saved",
    [
        {1: 1.0, "1": 2.0},
        {"a.b": 1.0, "a": {"b": 2.0, "b#2": 3.0}, "z": 0},
        {"a#2": 1.0, "a": {"": 2.0}, "b": [3.0], "b.0": 4.0},
    ],
)
def test_paths_that_collide_are_kept_apart(saved, tmp_path):
    def with_tensors(value):
        if isinstance(value, dict):
            return {key: with_tensors(item) for key, item in value.items()}
        if isinstance(value, list):
            return [with_tensors(item) for item in value]
        return vkml.tensor(value) if isinstance(value, float) else value

    def with_numbers(value):
        if isinstance(value, dict):
            return {key: with_numbers(item) for key, item in value.items()}
        if isinstance(value, list):
            return [with_numbers(item) for item in value]
        return value.item() if isinstance(value, vkml.Tensor) else value

    path = tmp_path / "x.safetensors"
    vkml.save(with_tensors(saved), path)
    assert with_numbers(vkml.load(path)) == saved


def test_what_cannot_be_saved_is_refused_and_nothing_written(tmp_path):
    path = tmp_path / "x.safetensors"
    for value in ({"a": object()}, {("tuple",): 1}, {"__metadata__": vkml.zeros(1)}):
        with pytest.raises(vkml.ArgumentError):
            vkml.save(value, path)
    assert os.listdir(tmp_path) == []


# Pickle and deepcopy.


def test_tensors_and_modules_are_copied_and_pickled(device):
    model = nn.Sequential(nn.Linear(2, 3, device=device), nn.BatchNorm1d(3, device=device))
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert isinstance(other[0].weight, nn.Parameter)
        assert other[0].weight is not model[0].weight
        assert other[0].weight.requires_grad
        assert {n: t.tolist() for n, t in other.state_dict().items()} == {
            n: t.tolist() for n, t in model.state_dict().items()
        }
    tensor = vkml.tensor([1.0, -2.5], device=device).to(vkml.bfloat16)
    other = pickle.loads(pickle.dumps(tensor))
    assert (other.dtype, other.device, other.tolist()) == (vkml.bfloat16, device, [1.0, -2.5])


# Files that cannot be written.


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_folder_without_permission(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(vkml.FileError, match="Permission denied"):
        vkml.save({"x": vkml.zeros(1)}, tmp_path / "x.safetensors")
    tmp_path.chmod(0o700)


def test_folder_that_is_not_there_or_not_a_folder(tmp_path):
    for path in (tmp_path / "nowhere" / "x", tmp_path / "file" / "x"):
        (tmp_path / "file").touch()
        with pytest.raises(vkml.FileError, match="cannot write") as caught:
            vkml.save({"x": vkml.zeros(1)}, path)
        assert str(path) in str(caught.value)


def test_full_disk_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "x.safetensors"
    vkml.save({"x": vkml.ones(1)}, path)

    def no_space(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(vkml.FileError, match="No space left"):
        vkml.save({"x": vkml.zeros(1)}, path)
    assert os.listdir(tmp_path) == ["x.safetensors"]
    assert vkml.load(path)["x"].tolist() == [1.0]


def test_a_link_stays_and_its_target_is_written(tmp_path):
    target, link = tmp_path / "folder" / "target", tmp_path / "link"
    target.parent.mkdir()
    link.symlink_to(target)  # to what is not there yet
    for value in (1.0, 2.0):
        vkml.save({"x": vkml.full((1,), value)}, link)
        assert link.is_symlink()
        assert vkml.load(target)["x"].tolist() == [value]
    assert os.listdir(target.parent) == ["target"]


def folder_at(path):
    path.mkdir()


def device_at(path):
    os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 7))


def link_to_itself_at(path):
    path.symlink_to(path)


@pytest.mark.parametrize("make", [folder_at, os.mkfifo, device_at, link_to_itself_at])
def test_what_is_no_file_is_not_replaced(make, tmp_path):
    if make is device_at and os.geteuid() != 0:
        pytest.skip("only root makes devices")
    path = tmp_path / "x"
    make(path)
    link = tmp_path / "link"
    link.symlink_to(path)
    before = os.lstat(path)
    for name in (path, link):
        with pytest.raises(vkml.FileError, match=r"cannot write: it is a|cannot write: Too many"):
            vkml.save({"x": vkml.zeros(1)}, name)
    assert os.lstat(path) == before
    assert sorted(os.listdir(tmp_path)) == ["link", "x"]


@pytest.mark.parametrize("path", [None, 3, b"x", ["x"]])
def test_what_is_no_path_is_refused(path):
    with pytest.raises(vkml.DTypeError, match=r"\[load\] the path is"):
        vkml.load(path)
    with pytest.raises(vkml.DTypeError, match=r"\[save\] the path is"):
        vkml.save({"x": vkml.zeros(1)}, path)


def test_saved_files_follow_the_umask(tmp_path):
    before = os.umask(0o027)
    vkml.save({"x": vkml.zeros(1)}, tmp_path / "x")
    os.umask(before)
    assert (tmp_path / "x").stat().st_mode & 0o777 == 0o640


# Damaged files.


def file_with(header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def entry(dtype="F32", shape=(1,), offsets=(0, 4)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


ONE = b'"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}'
DAMAGED = {
    "empty": b"",
    "shorter than a length": b"\1\0\0",
    "header length near 2^63": struct.pack("<Q", 2**63 - 1) + b"{}",
    "header longer than the file": struct.pack("<Q", 100) + b"{}",
    "not json": file_with(b"hello"),
    "not an object": file_with(b"[]"),
    "deeply nested": file_with(b"[" * 100_000),
    "more elements than data": file_with({"a": entry(shape=(1000, 1000))}, b"0000"),
    "element count past 2^64": file_with({"a": entry(shape=(2**62, 2**62))}, b"0000"),
    "negative extent": file_with({"a": entry(shape=(-1,))}, b"0000"),
    "overlapping ranges": file_with({"a": entry(), "b": entry()}, b"0000"),
    "range backwards": file_with({"a": entry(offsets=(4, 0))}, b"0000"),
    "hole between ranges": file_with({"a": entry(offsets=(4, 8))}, b"00000000"),
    "duplicate names": file_with(b"{" + ONE + b"," + ONE + b"}", b"0000"),
    "truncated data": file_with({"a": entry()}, b"000"),
    "data left over": file_with({"a": entry()}, b"00000"),
    "unknown element type": file_with({"a": entry(dtype="Q8")}, b"0000"),
    "element type that vkML lacks": file_with({"a": entry(dtype="I16", offsets=(0, 2))}, b"00"),
    "damaged structure": file_with({"__metadata__": {"vkml.structure": '{"$tensor": "a"}'}}),
    "structure that is no json": file_with({"__metadata__": {"vkml.structure": "{"}}),
    "structure with unknown marks": file_with({"__metadata__": {"vkml.structure": '{"$x": []}'}}),
}


@pytest.mark.parametrize("kind", DAMAGED)
def test_damaged_files_are_refused(kind, tmp_path):
    path = tmp_path / "damaged.safetensors"
    path.write_bytes(DAMAGED[kind])
    with pytest.raises(vkml.FileError) as caught:
        vkml.load(path)
    assert str(path) in str(caught.value)


def test_missing_file_and_folder(tmp_path):
    with pytest.raises(vkml.FileError, match="No such file"):
        vkml.load(tmp_path / "nothing")
    with pytest.raises(OSError, match="directory"):
        vkml.load(tmp_path)


def test_rank_above_four_is_refused(tmp_path):
    path = tmp_path / "rank5.safetensors"
    safetensors.numpy.save_file({"x": np.zeros((1, 1, 1, 1, 1), np.float32)}, path)
    with pytest.raises(vkml.FileError, match="'x': rank 5 exceeds 4"):
        vkml.load(path)


def test_names_of_pytorchs_arguments(tmp_path, device):
    file = tmp_path / "one.safetensors"
    vkml.save(obj={"x": vkml.ones(2)}, f=file)
    loaded = vkml.load(f=file, map_location=str(device), weights_only=True)["x"]
    assert loaded.device == device
    assert vkml.load(file, device)["x"].device == device
    with pytest.raises(vkml.ArgumentError, match="name the same thing"):
        vkml.load(file, device, device=device)
    with pytest.raises(vkml.DTypeError, match="map_location is"):
        vkml.load(file, lambda storage, place: storage)
