"""Data types of vkml.array_api against array-api-strict: promotion, kinds, limits, defaults."""

import itertools

import numpy as np
import pytest

import vkml
from array_api_reference import DTYPES, dtype_name, strict
from vkml import array_api
from vkml.array_api.left_out import LEFT_OUT


def pairs_of_dtypes():
    return itertools.product(DTYPES, repeat=2)


def outcome(call):
    try:
        return call()
    except (TypeError, ValueError) as error:
        return "refused", isinstance(error, TypeError)


def test_casts_and_result_types():
    for a, b in pairs_of_dtypes():
        ours = [getattr(vkml, name) for name in (a, b)]
        theirs = [getattr(strict, name) for name in (a, b)]
        meeting = outcome(lambda theirs=theirs: dtype_name(strict.result_type(*theirs)))
        if isinstance(meeting, str):
            assert dtype_name(array_api.result_type(*ours)) == meeting
            assert array_api.can_cast(*ours) == strict.can_cast(*theirs)
            x = vkml.ones(2, dtype=ours[0])
            assert array_api.can_cast(x, ours[1]) == strict.can_cast(*theirs)
        for number in (True, 2, 0.5):
            meeting = outcome(
                lambda theirs=theirs, n=number: dtype_name(strict.result_type(theirs[0], n))
            )
            if isinstance(meeting, str):
                assert dtype_name(array_api.result_type(ours[0], number)) == meeting
    assert vkml.promote_types(vkml.int32, vkml.float16) == vkml.float16
    assert array_api.result_type(vkml.uint8, 0.5, vkml.float16) == vkml.float16
    # The numbers meet last, in whichever place they stand.
    x = vkml.ones(2, dtype=vkml.uint8)
    assert vkml.where(x > 0, 0.5, vkml.ones(2, dtype=vkml.float16)).dtype == vkml.float16
    assert vkml.addcmul(x, 0.5, vkml.ones(2, dtype=vkml.float16)).dtype == vkml.float16
    with pytest.raises(vkml.ArgumentError, match="result_type"):
        vkml.result_type()


def test_isdtype():
    kinds = ["bool", "signed integer", "unsigned integer", "integral", "real floating"]
    kinds += ["complex floating", "numeric", ("bool", "integral")]
    for name in DTYPES:
        for kind in kinds:
            expected = strict.isdtype(getattr(strict, name), kind)
            assert array_api.isdtype(getattr(vkml, name), kind) == expected, (name, kind)
        for other in DTYPES:
            assert array_api.isdtype(getattr(vkml, name), getattr(vkml, other)) == (name == other)
    with pytest.raises(vkml.ArgumentError, match="isdtype"):
        array_api.isdtype(vkml.bool, "floating")


def test_limits_of_dtypes():
    for name in ("float16", "float32", "float64"):
        info, expected = array_api.finfo(getattr(vkml, name)), np.finfo(name)
        for field in ("bits", "eps", "max", "min", "smallest_normal", "tiny"):
            assert getattr(info, field) == getattr(expected, field), (name, field)
        assert info.dtype == getattr(vkml, name)
    bf16 = array_api.finfo(vkml.ones(1, dtype=vkml.bfloat16))
    assert (bf16.eps, bf16.smallest_normal) == (2.0**-7, 2.0**-126)
    assert vkml.tensor([bf16.max], dtype=vkml.bfloat16).to(vkml.float32).item() == bf16.max
    for name in ("uint8", "int32", "int64"):
        info, expected = array_api.iinfo(getattr(vkml, name)), np.iinfo(name)
        assert (info.bits, info.max, info.min) == (expected.bits, expected.max, expected.min)
    with pytest.raises(vkml.DTypeError, match="finfo"):
        array_api.finfo(vkml.int32)
    with pytest.raises(vkml.DTypeError, match="iinfo"):
        array_api.iinfo(vkml.float32)


def test_namespace_info(device):
    info = vkml.ones(1).__array_namespace__().__array_namespace_info__()
    theirs = strict.__array_namespace_info__()
    assert set(info.capabilities()) == set(theirs.capabilities())
    assert info.capabilities()["max dimensions"] == vkml.MAX_DIMS
    assert info.default_device() == device
    assert device in info.devices()
    assert set(info.default_dtypes()) == set(theirs.default_dtypes()) - {"complex floating"}
    missing = set(theirs.dtypes()) - set(info.dtypes())
    assert missing == {name for name in LEFT_OUT if name in theirs.dtypes()}
    for kind in ("bool", "integral", "real floating", "numeric", ("bool", "signed integer")):
        expected = set(theirs.dtypes(kind=kind)) - set(LEFT_OUT)
        assert set(info.dtypes(kind=kind)) == expected
    defaults = info.default_dtypes()
    assert vkml.tensor([1.0]).dtype == defaults["real floating"]
    assert vkml.tensor([1]).dtype == defaults["integral"]
    assert array_api.argmax(vkml.ones(3)).dtype == defaults["indexing"]
