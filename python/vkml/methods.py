"""Methods of tensors that are a few lines of others, by PyTorch's names.

Importing this module gives them to `Tensor`; the stub of the native module takes their signatures
from here (`bindings/python/finish_stub.py`), so annotations name nothing but built-in types,
`Tensor`, `_RandomStream` and `typing`.
"""

from __future__ import annotations

import typing

import vkml
from vkml._vkml import Tensor, _RandomStream
from vkml.argument_errors import checked


class TensorMethods(Tensor):
    """A place to write methods in: nobody makes one, `Tensor` gets what is in it."""

    # What a tensor is.

    @property
    def is_cpu(self) -> bool:
        """Whether the tensor is on the CPU."""
        return self.device == vkml.cpu

    @property
    def is_cuda(self) -> bool:
        """False: vkML reaches every GPU through Vulkan; see `is_vulkan`."""
        return False

    @property
    def is_vulkan(self) -> bool:
        """Whether the tensor is on a Vulkan device."""
        return str(self.device).startswith("vulkan")

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.numel() * self.dtype.itemsize

    def type(self, dtype: typing.Any = None, non_blocking: bool = False) -> typing.Any:
        """The tensor in a dtype, as `to`; without one the dtype's name, `vkml.float32` say."""
        if dtype is None:
            return str(self.dtype)
        return self.to(dtype, non_blocking=non_blocking)

    def __contains__(self, element: typing.Any) -> bool:
        """Whether an element equals a number, or a tensor's elements where it broadcasts."""
        if not isinstance(element, Tensor | int | float):
            raise vkml.DTypeError(
                f"[in] looks for {element!r} in a tensor. Ask for a number or a tensor."
            )
        return bool(vkml.any(vkml.eq(self, element)).item())

    def element_size(self) -> int:
        """Bytes of an element."""
        return self.dtype.itemsize

    def nelement(self) -> int:
        """Number of elements."""
        return self.numel()

    def ndimension(self) -> int:
        """Number of axes."""
        return self.ndim

    def stride(self, dim: int | None = None) -> typing.Any:
        """Elements from one to the next along each axis, or along one. `strides` counts bytes."""
        steps = tuple(step // self.dtype.itemsize for step in self.strides)
        return steps if dim is None else steps[dim]

    def is_floating_point(self) -> bool:
        """Whether the elements have fractions."""
        return self.dtype.is_floating_point

    def is_complex(self) -> bool:
        """Whether the dtype is complex: never."""
        return False

    def is_signed(self) -> bool:
        """Whether the dtype has negative numbers."""
        return vkml.is_signed(self)

    def is_nonzero(self) -> bool:
        """Whether the one element is not 0. Waits for it."""
        return vkml.is_nonzero(self)

    def is_same_size(self, other: Tensor) -> bool:
        """Whether two tensors have one shape."""
        return vkml.is_same_size(self, other)

    # Gradients.

    def backward(
        self,
        gradient: Tensor | None = None,
        retain_graph: bool | None = None,
        create_graph: bool = False,
        inputs: typing.Any = None,
    ) -> None:
        """Adds the gradient with respect to every leaf below to that leaf's grad.

        See `vkml.autograd.backward`.
        """
        if inputs is None:
            keep = create_graph if retain_graph is None else retain_graph
            self._backward(gradient, keep, create_graph)
        else:
            vkml.autograd.backward(self, gradient, retain_graph, create_graph, inputs=inputs)

    # New tensors, of this one's dtype and device.

    def new_tensor(self, data: typing.Any, *, dtype: typing.Any = None) -> Tensor:
        """A tensor of data on this one's device, and of its dtype unless told."""
        kind = self.dtype if dtype is None else dtype
        return vkml.tensor(data, dtype=kind, device=self.device)

    def new_full(self, size: typing.Any, fill_value: float, *, dtype: typing.Any = None) -> Tensor:
        """A tensor of one value on this one's device, and of its dtype unless told."""
        kind = self.dtype if dtype is None else dtype
        return vkml.full(_sizes(size), fill_value, dtype=kind, device=self.device)

    def new_empty(self, *size: typing.Any, dtype: typing.Any = None) -> Tensor:
        """A tensor on this one's device whose elements are to be written."""
        kind = self.dtype if dtype is None else dtype
        return vkml.empty(_sizes(*size), dtype=kind, device=self.device)

    def new_zeros(self, *size: typing.Any, dtype: typing.Any = None) -> Tensor:
        """A tensor of zeros on this one's device, and of its dtype unless told."""
        kind = self.dtype if dtype is None else dtype
        return vkml.zeros(_sizes(*size), dtype=kind, device=self.device)

    def new_ones(self, *size: typing.Any, dtype: typing.Any = None) -> Tensor:
        """A tensor of ones on this one's device, and of its dtype unless told."""
        kind = self.dtype if dtype is None else dtype
        return vkml.ones(_sizes(*size), dtype=kind, device=self.device)

    # Shapes and dtypes like another tensor's.

    def type_as(self, other: Tensor) -> Tensor:
        """The elements in another tensor's dtype, on its device."""
        return self.to(other.dtype).to(other.device)

    def view_as(self, other: Tensor) -> Tensor:
        """A view in another tensor's shape."""
        return self.view(*other.shape)

    def reshape_as(self, other: Tensor) -> Tensor:
        """The elements in another tensor's shape."""
        return self.reshape(tuple(other.shape))

    def sum_to_size(self, *size: typing.Any) -> Tensor:
        """Sums that leave a shape which broadcasts to this one: what undoes `expand`."""
        shape = _sizes(*size)
        extra = self.ndim - len(shape)
        axes = [
            axis
            for axis, extent in enumerate(self.shape)
            if axis < extra or (shape[axis - extra] == 1 and extent != 1)
        ]
        if extra < 0 or any(
            want not in (1, extent)
            for want, extent in zip(shape, tuple(self.shape)[extra:], strict=False)
        ):
            raise vkml.ShapeError(f"[sum_to_size] {self.shape} is no broadcast of {shape}.")
        return self.sum(dim=tuple(axes), keepdim=True).reshape(shape) if axes else self

    def adjoint(self) -> Tensor:
        """Matrices transposed, as all numbers here are real. A view."""
        return self.mT

    def narrow_copy(self, dim: int, start: int, length: int) -> Tensor:
        """A part along an axis, as a copy of its own."""
        return vkml.narrow_copy(self, dim, start, length)

    def diagflat(self, offset: int = 0) -> Tensor:
        """See `vkml.diagflat`."""
        return vkml.diagflat(self, offset)

    def hsplit(self, indices_or_sections: typing.Any) -> typing.Any:
        """See `vkml.hsplit`."""
        return vkml.hsplit(self, indices_or_sections)

    def vsplit(self, indices_or_sections: typing.Any) -> typing.Any:
        """See `vkml.vsplit`."""
        return vkml.vsplit(self, indices_or_sections)

    def dsplit(self, indices_or_sections: typing.Any) -> typing.Any:
        """See `vkml.dsplit`."""
        return vkml.dsplit(self, indices_or_sections)

    # Copies with a part replaced.

    def select_scatter(self, src: Tensor, dim: int, index: int) -> Tensor:
        """See `vkml.select_scatter`."""
        return vkml.select_scatter(self, src, dim, index)

    def slice_scatter(
        self,
        src: Tensor,
        dim: int = 0,
        start: int | None = None,
        end: int | None = None,
        step: int = 1,
    ) -> Tensor:
        """See `vkml.slice_scatter`."""
        return vkml.slice_scatter(self, src, dim, start, end, step)

    def diagonal_scatter(
        self, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1
    ) -> Tensor:
        """See `vkml.diagonal_scatter`."""
        return vkml.diagonal_scatter(self, src, offset, dim1, dim2)

    def index_reduce(
        self,
        dim: int,
        index: Tensor,
        source: Tensor,
        reduce: str,
        *,
        include_self: bool = True,
    ) -> Tensor:
        """See `vkml.index_reduce`."""
        return vkml.index_reduce(self, dim, index, source, reduce, include_self=include_self)

    def put(self, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
        """See `vkml.put`."""
        return vkml.put(self, index, source, accumulate)

    def take(self, index: Tensor) -> Tensor:
        """Elements by their numbers in row-major order."""
        return vkml.take(self, index)

    # Numbers.

    def angle(self) -> Tensor:
        """See `vkml.angle`."""
        return vkml.angle(self)

    def conj(self) -> Tensor:
        """The tensor itself, as all numbers here are real."""
        return self

    def frexp(self) -> typing.Any:
        """See `vkml.frexp`."""
        return vkml.frexp(self)

    def isreal(self) -> Tensor:
        """True everywhere, as all numbers here are real."""
        return vkml.isreal(self)

    # Products, distances, statistics.

    def addbmm(
        self, batch1: Tensor, batch2: Tensor, *, beta: float = 1, alpha: float = 1
    ) -> Tensor:
        """See `vkml.addbmm`."""
        return vkml.addbmm(self, batch1, batch2, beta=beta, alpha=alpha)

    def addr(self, vec1: Tensor, vec2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
        """See `vkml.addr`."""
        return vkml.addr(self, vec1, vec2, beta=beta, alpha=alpha)

    def cross(self, other: Tensor, dim: int | None = None) -> Tensor:
        """See `vkml.cross`."""
        return vkml.cross(self, other, dim)

    def inner(self, other: Tensor) -> Tensor:
        """See `vkml.inner`."""
        return vkml.inner(self, other)

    def kron(self, other: Tensor) -> Tensor:
        """See `vkml.kron`."""
        return vkml.kron(self, other)

    def vdot(self, other: Tensor) -> Tensor:
        """See `vkml.vdot`."""
        return vkml.vdot(self, other)

    def dist(self, other: Tensor, p: float = 2.0) -> Tensor:
        """See `vkml.dist`."""
        return vkml.dist(self, other, p)

    def renorm(self, p: float, dim: int, maxnorm: float) -> Tensor:
        """See `vkml.renorm`."""
        return vkml.renorm(self, p, dim, maxnorm)

    def cov(
        self,
        *,
        correction: int = 1,
        fweights: Tensor | None = None,
        aweights: Tensor | None = None,
    ) -> Tensor:
        """See `vkml.cov`."""
        return vkml.cov(self, correction=correction, fweights=fweights, aweights=aweights)

    def corrcoef(self) -> Tensor:
        """See `vkml.corrcoef`."""
        return vkml.corrcoef(self)

    def mode(self, dim: int = -1, keepdim: bool = False) -> typing.Any:
        """See `vkml.mode`."""
        return vkml.mode(self, dim, keepdim)

    def nanmedian(self, dim: int | None = None, keepdim: bool = False) -> typing.Any:
        """See `vkml.nanmedian`."""
        return vkml.nanmedian(self, dim, keepdim)

    def nanquantile(
        self,
        q: typing.Any,
        dim: int | None = None,
        keepdim: bool = False,
        *,
        interpolation: str = "linear",
    ) -> Tensor:
        """See `vkml.nanquantile`."""
        return vkml.nanquantile(self, q, dim, keepdim, interpolation=interpolation)

    def histogram(
        self,
        bins: typing.Any,
        *,
        range: typing.Any = None,
        weight: Tensor | None = None,
        density: bool = False,
    ) -> typing.Any:
        """See `vkml.histogram`."""
        return vkml.histogram(self, bins, range=range, weight=weight, density=density)

    def multinomial(
        self,
        num_samples: int,
        replacement: bool = False,
        *,
        generator: _RandomStream | None = None,
    ) -> Tensor:
        """See `vkml.multinomial`."""
        return vkml.multinomial(self, num_samples, replacement, generator=generator)

    def bernoulli(self, *, generator: _RandomStream | None = None) -> Tensor:
        """See `vkml.bernoulli`."""
        return vkml.bernoulli(self, generator=generator)

    # Small matrices; see `vkml.linalg`.

    def cholesky_inverse(self, upper: bool = False) -> Tensor:
        """See `vkml.linalg.cholesky_inverse`."""
        return vkml.linalg.cholesky_inverse(self, upper)

    def cholesky_solve(self, input2: Tensor, upper: bool = False) -> Tensor:
        """See `vkml.linalg.cholesky_solve`."""
        return vkml.linalg.cholesky_solve(self, input2, upper)

    def det(self) -> Tensor:
        """See `vkml.linalg.det`."""
        return vkml.linalg.det(self)

    def inverse(self) -> Tensor:
        """See `vkml.linalg.inv`."""
        return vkml.linalg.inv(self)

    def logdet(self) -> Tensor:
        """See `vkml.linalg.logdet`."""
        return vkml.linalg.logdet(self)

    def matrix_exp(self) -> Tensor:
        """See `vkml.linalg.matrix_exp`."""
        return vkml.linalg.matrix_exp(self)

    def matrix_power(self, n: int) -> Tensor:
        """See `vkml.linalg.matrix_power`."""
        return vkml.linalg.matrix_power(self, n)

    def pinverse(self, rcond: float | None = None) -> Tensor:
        """See `vkml.linalg.pinv`."""
        return vkml.linalg.pinv(self, rcond)

    def slogdet(self) -> typing.Any:
        """See `vkml.linalg.slogdet`."""
        return vkml.linalg.slogdet(self)

    # In place: the tensor gets the value of the method without the underscore.

    def eq_(self, other: typing.Any) -> Tensor:
        """In place: 1 where equal, else 0."""
        return self.copy_(self.eq(other))

    def ne_(self, other: typing.Any) -> Tensor:
        """In place: 1 where different, else 0."""
        return self.copy_(self.ne(other))

    def lt_(self, other: typing.Any) -> Tensor:
        """In place: 1 where less, else 0."""
        return self.copy_(self.lt(other))

    def le_(self, other: typing.Any) -> Tensor:
        """In place: 1 where less or equal, else 0."""
        return self.copy_(self.le(other))

    def gt_(self, other: typing.Any) -> Tensor:
        """In place: 1 where greater, else 0."""
        return self.copy_(self.gt(other))

    def ge_(self, other: typing.Any) -> Tensor:
        """In place: 1 where greater or equal, else 0."""
        return self.copy_(self.ge(other))

    def logical_and_(self, other: Tensor) -> Tensor:
        """In place: whether both are not 0."""
        return self.copy_(self.logical_and(other))

    def logical_or_(self, other: Tensor) -> Tensor:
        """In place: whether one is not 0."""
        return self.copy_(self.logical_or(other))

    def logical_xor_(self, other: Tensor) -> Tensor:
        """In place: whether exactly one is not 0."""
        return self.copy_(self.logical_xor(other))

    def logical_not_(self) -> Tensor:
        """In place: whether it is 0."""
        return self.copy_(self.logical_not())

    def cumsum_(self, dim: int, *, dtype: typing.Any = None) -> Tensor:
        """In place: sums up to each element, added in a dtype."""
        return self.copy_(self.cumsum(dim, dtype))

    def cumprod_(self, dim: int, *, dtype: typing.Any = None) -> Tensor:
        """In place: products up to each element, multiplied in a dtype."""
        return self.copy_(self.cumprod(dim, dtype))

    def tril_(self, diagonal: int = 0) -> Tensor:
        """In place: zeros above a diagonal."""
        return self.copy_(self.tril(diagonal))

    def triu_(self, diagonal: int = 0) -> Tensor:
        """In place: zeros below a diagonal."""
        return self.copy_(self.triu(diagonal))

    def addmm_(self, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
        """In place: beta times itself plus alpha times a product."""
        return self.copy_(self.addmm(mat1, mat2, beta=beta, alpha=alpha))

    def put_(self, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
        """In place: elements replaced, or added to, by their numbers in row-major order."""
        return self.copy_(self.put(index, source, accumulate))

    def renorm_(self, p: float, dim: int, maxnorm: float) -> Tensor:
        """In place: slices whose norm exceeds a limit, scaled down to it."""
        return self.copy_(self.renorm(p, dim, maxnorm))

    def fill_diagonal_(self, fill_value: float) -> Tensor:
        """In place: one value on the main diagonal of a matrix."""
        vkml.diagonal(self).fill_(fill_value)
        return self

    # In place: random numbers.

    def random_(
        self, low: int = 0, high: int | None = None, *, generator: _RandomStream | None = None
    ) -> Tensor:
        """In place: integers from `low` to below `high`, or from 0 to below `low` alone.

        Without either, up to what the dtype holds exactly: 2^24 for float32, at most 2^31 - 1.
        """
        if high is None and low == 0:
            limits = {vkml.bool: 2, vkml.uint8: 256, vkml.float16: 2**11, vkml.bfloat16: 2**8}
            high = {**limits, vkml.float32: 2**24}.get(self.dtype, 2**31 - 1)
        elif high is None:
            low, high = 0, low
        drawn = vkml.randint(low, high, tuple(self.shape), generator=generator, device=self.device)
        return self.copy_(drawn)

    def cauchy_(
        self, median: float = 0.0, sigma: float = 1.0, *, generator: _RandomStream | None = None
    ) -> Tensor:
        """In place: draws from the Cauchy distribution."""
        if not sigma > 0:
            raise vkml.ArgumentError(f"[cauchy_] sigma is {sigma}. Pass a positive number.")
        angle = (_uniform(self, generator) - 0.5) * vkml.pi
        return self.copy_(median + sigma * vkml.tan(angle))

    def geometric_(self, p: float, *, generator: _RandomStream | None = None) -> Tensor:
        """In place: how many trials of success `p` it takes to succeed, 1 at least."""
        if not 0 < p < 1:
            raise vkml.ArgumentError(f"[geometric_] p is {p}. Pass a probability in (0, 1).")
        # 1 - u is never 0.
        share = vkml.log(1 - _uniform(self, generator))
        trials = vkml.ceil(share / vkml.log1p(vkml.tensor(-p)).item())
        return self.copy_(vkml.clamp(trials, min=1.0))

    def log_normal_(
        self, mean: float = 1.0, std: float = 2.0, *, generator: _RandomStream | None = None
    ) -> Tensor:
        """In place: exponentials of draws from the normal distribution."""
        if not std > 0:
            raise vkml.ArgumentError(f"[log_normal_] std is {std}. Pass a positive number.")
        drawn = vkml.randn(tuple(self.shape), generator=generator, device=self.device)
        return self.copy_(vkml.exp(drawn * std + mean))


def _sizes(*size: typing.Any) -> tuple[int, ...]:
    """Extents given one by one, or as one sequence."""
    return tuple(size[0]) if len(size) == 1 and not isinstance(size[0], int) else tuple(size)


def _uniform(like: Tensor, generator: _RandomStream | None) -> Tensor:
    """Uniform numbers in [0, 1) of a tensor's shape, in float32."""
    return vkml.rand(tuple(like.shape), generator=generator, device=like.device)


for _name, _method in vars(TensorMethods).items():
    if not _name.startswith("__") or _name == "__contains__":
        setattr(Tensor, _name, checked(_method, _name) if callable(_method) else _method)
