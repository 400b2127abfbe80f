"""Libraries written for the Array API take tensors: array-api-compat, SciPy."""

import os
import subprocess
import sys

import pytest

import vkml
from vkml import array_api


def test_array_api_compat():
    compat = pytest.importorskip("array_api_compat", reason="array-api-compat is not installed")
    x = vkml.ones(2, 3)
    assert compat.is_array_api_obj(x)
    assert compat.array_namespace(x, 1.0) is array_api
    assert compat.device(x) == vkml.cpu
    assert compat.size(x) == 6
    assert compat.to_device(x, vkml.cpu).device == vkml.cpu


SCIPY = """
import numpy as np, vkml
from scipy import cluster, integrate, ndimage, signal, spatial, special, stats

values = np.random.default_rng(0).uniform(0.1, 1, (5, 4))
CALLS = {
    "logsumexp": lambda x: special.logsumexp(x, axis=1),
    "softmax": lambda x: special.softmax(x, axis=1),
    "log_softmax": lambda x: special.log_softmax(x, axis=1),
    "expit": lambda x: special.expit(x),
    "xlogy": lambda x: special.xlogy(x, x),
    "ndtr": lambda x: special.ndtr(x),
    **{
        name: lambda x, f=getattr(special, name): f(x)
        for name in ("j0", "j1", "y0", "y1", "k0", "k1", "k0e", "k1e")
    },
    "gammainc": lambda x: special.gammainc(x, x),
    "gammaincc": lambda x: special.gammaincc(x, x),
    "entropy": lambda x: stats.entropy(x, axis=0),
    "zscore": lambda x: stats.zscore(x, axis=0),
    "gmean": lambda x: stats.gmean(x, axis=0),
    "skew": lambda x: stats.skew(x, axis=0),
    "kurtosis": lambda x: stats.kurtosis(x, axis=0),
    "moment": lambda x: stats.moment(x, 2, axis=0),
    "ttest_1samp": lambda x: stats.ttest_1samp(x, 0.5).statistic,
    "pearsonr": lambda x: stats.pearsonr(x[:, 0], x[:, 1]).statistic,
    "tmean": lambda x: stats.tmean(x, (0.2, 0.8)),
    "whiten": lambda x: cluster.vq.whiten(x),
    "linkage": lambda x: cluster.hierarchy.linkage(x),
    "trapezoid": lambda x: integrate.trapezoid(x),
    "detrend": lambda x: signal.detrend(x),
    "gaussian_filter": lambda x: ndimage.gaussian_filter(x, 1.0),
    "rotation": lambda x: spatial.transform.Rotation.from_quat(x).as_matrix(),
}
for name, call in CALLS.items():
    actual = call(vkml.tensor(values, dtype=vkml.float64))
    assert isinstance(actual, vkml.Tensor), name
    np.testing.assert_allclose(actual.numpy(), call(values), rtol=1e-10, atol=1e-12, err_msg=name)
print(len(CALLS))
"""


def test_scipy_takes_tensors():
    scipy = pytest.importorskip("scipy", reason="SciPy is not installed")
    if tuple(int(part) for part in scipy.__version__.split(".")[:2]) < (1, 17):
        pytest.skip("this SciPy has fewer functions of the Array API")
    environment = {**os.environ, "SCIPY_ARRAY_API": "1"}
    result = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SCIPY],
        env=environment,
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert result.returncode == 0, result.stderr
    assert int(result.stdout) > 20
