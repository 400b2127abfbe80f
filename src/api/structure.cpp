// Structural operators whose extents follow from their operands' extents: recorded at once.

#include "vkml/api/structure.h"

#include <fmt/format.h>

#include "record_tensor.h"
#include "vkml/api/context.h"
#include "vkml/ops/autocast.h"
#include "vkml/ops/composites.h"
#include "vkml/ops/ordering.h"

namespace vkml {
namespace {

using graph::Value;

/// An operator along an axis on a tensor that may have none.
template <typename Operator>
Tensor along_axis(const Tensor& x, std::int64_t axis, Operator op) {
  const Value value = x.value();
  if (value.rank() > 0) return record(op(value, axis));
  const std::int64_t one[] = {1};
  return record(graph::reshape(op(graph::reshape(value, one), axis), {}));
}

}  // namespace

Tensor dot(const Tensor& a, const Tensor& b) { return record(graph::dot(a.value(), b.value())); }
Tensor outer(const Tensor& a, const Tensor& b) {
  return record(graph::outer(a.value(), b.value()));
}
Tensor add_product(const Tensor& input, const Tensor& a, const Tensor& b, double beta,
                   double alpha) {
  return record(graph::add_product(input.value(), a.value(), b.value(), beta, alpha));
}
Tensor tensordot(const Tensor& a, const Tensor& b, const Extents& axes_a, const Extents& axes_b) {
  return record(graph::tensordot(a.value(), b.value(), axes_a, axes_b));
}
Tensor einsum(const std::string& equation, std::span<const Tensor> operands) {
  return record(graph::einsum(equation, values_of(operands)));
}

Tensor standard_deviation(const Tensor& x, const Extents& axes, bool keepdim, double correction) {
  return record(graph::standard_deviation(x.value(), axes, keepdim, correction));
}
Tensor norm(const Tensor& x, double order, const Extents& axes, bool keepdim) {
  return record(graph::norm(graph::as_precise_operand(x.value()), order, axes, keepdim));
}
Tensor count_nonzero(const Tensor& x, const Extents& axes, bool keepdim) {
  return record(graph::count_nonzero(x.value(), axes, keepdim));
}
Tensor quantile(const Tensor& x, double fraction, std::optional<std::int64_t> axis, bool keepdim,
                Interpolation interpolation) {
  if (axis) return record(graph::quantile(x.value(), fraction, *axis, keepdim, interpolation));
  const std::int64_t flat[] = {x.numel()};
  const Value result =
      graph::quantile(graph::reshape(x.value(), flat), fraction, 0, false, interpolation);
  return record(keepdim ? graph::reshape(result, Extents(x.extents().size(), 1)) : result);
}

Tensor flip(const Tensor& x, const Extents& axes) { return record(graph::flip(x.value(), axes)); }
Tensor roll(const Tensor& x, const Extents& shifts, const Extents& axes) {
  return record(graph::roll(x.value(), shifts, axes));
}
Tensor repeat(const Tensor& x, const Extents& counts) {
  return record(graph::repeat(x.value(), counts));
}
Tensor repeat_interleave(const Tensor& x, std::int64_t count, std::int64_t axis) {
  return record(graph::repeat_interleave(x.value(), count, axis));
}
Tensor pad_from_inside(const Tensor& x, const std::vector<std::array<std::int64_t, 2>>& amounts,
                       PadMode mode) {
  return record(graph::pad_from_inside(x.value(), amounts, mode));
}
Tensor triangle(const Tensor& x, std::int64_t offset, bool upper) {
  return record(graph::triangle(x.value(), offset, upper));
}
Tensor diagonal(const Tensor& x, std::int64_t offset, std::int64_t axis0, std::int64_t axis1) {
  return view_of(x, [&](const Value& v) { return graph::diagonal(v, offset, axis0, axis1); });
}
Tensor diag_embed(const Tensor& x, std::int64_t offset) {
  return record(graph::diag_embed(x.value(), offset));
}
Tensor eye(std::int64_t rows, std::int64_t columns, std::int64_t offset, DType dtype,
           std::optional<Device> device) {
  return record(graph::eye(rows, columns, offset, dtype, device.value_or(default_device())));
}
Tensor linspace(double start, double stop, std::int64_t steps, DType dtype,
                std::optional<Device> device) {
  return record(graph::linspace(start, stop, steps, dtype, device.value_or(default_device())));
}
Tensor one_hot(const Tensor& x, std::int64_t classes) {
  return record(graph::one_hot(x.value(), classes));
}
Tensor sliding_windows(const Tensor& x, std::int64_t axis, std::int64_t size, std::int64_t step) {
  return view_of(x, [&](const Value& v) { return graph::sliding_windows(v, axis, size, step); });
}
Tensor movedim(const Tensor& x, const Extents& from, const Extents& to) {
  return view_of(x, [&](const Value& v) { return graph::movedim(v, from, to); });
}
std::vector<Tensor> unbind(const Tensor& x, std::int64_t axis) {
  const int along = normalize_axis("unbind", axis, x.rank());
  std::vector<Tensor> parts;
  for (std::int64_t i = 0; i < x.shape()[along]; ++i) {
    parts.push_back(
        view_of(x, [&](const Value& v) { return graph::select_index("unbind", v, along, i); }));
  }
  return parts;
}
std::vector<Tensor> broadcast_tensors(std::span<const Tensor> tensors) {
  std::vector<Tensor> results;
  if (tensors.empty()) return results;
  Shape common = tensors[0].shape();
  for (const Tensor& tensor : tensors) {
    common = broadcast_extents("broadcast_tensors", common, tensor.shape(), tensor.dtype());
  }
  for (const Tensor& tensor : tensors) {
    results.push_back(
        view_of(tensor, [&](const Value& v) { return graph::broadcast_to(v, common.extents()); }));
  }
  return results;
}

Tensor cumsum(const Tensor& x, std::int64_t axis) {
  return along_axis(x, axis, [](const Value& value, std::int64_t along) {
    return graph::cumsum(graph::as_precise_operand(value), along);
  });
}
Tensor cumprod(const Tensor& x, std::int64_t axis) {
  return along_axis(x, axis, [](const Value& value, std::int64_t along) {
    return graph::cumprod(graph::as_precise_operand(value), along);
  });
}
Tensor polygamma(std::int64_t order, const Tensor& x) {
  return record(graph::polygamma(order, x.value()));
}
Tensor logcumsumexp(const Tensor& x, std::int64_t axis) {
  return along_axis(x, axis, &graph::logcumsumexp);
}
Ranked max_along(const Tensor& x, std::int64_t axis, bool keepdim) {
  return {record(graph::first_max(x.value(), axis, keepdim)), argmax(x, {axis}, keepdim)};
}
Ranked min_along(const Tensor& x, std::int64_t axis, bool keepdim) {
  return {record(graph::first_min(x.value(), axis, keepdim)), argmin(x, {axis}, keepdim)};
}

Tensor linear_recurrence(const Tensor& a, const Tensor& b, std::int64_t axis) {
  return record(graph::linear_recurrence(a.value(), b.value(), axis));
}

namespace {
Ranked cumulative(const Tensor& x, std::int64_t axis,
                  Value (*position)(const Value&, std::int64_t)) {
  const Tensor line = x.rank() == 0 ? reshape(x, {1}) : x;
  const Value indices = position(graph::detach(line.value()), axis);
  const Value values = graph::gather(line.value(), axis, indices);
  const Extents extents = x.extents();
  return {record(graph::reshape(values, extents)), record(graph::reshape(indices, extents))};
}
}  // namespace

Ranked cummax(const Tensor& x, std::int64_t axis) {
  return cumulative(x, axis, &graph::cumulative_argmax);
}
Ranked cummin(const Tensor& x, std::int64_t axis) {
  return cumulative(x, axis, &graph::cumulative_argmin);
}

Tensor scatter(const Tensor& base, std::int64_t axis, const Tensor& index, const Tensor& source,
               ScatterKind kind, std::string_view name) {
  return record(graph::scatter(base.value(), axis, index.value(), source.value(), kind, name));
}

Tensor conv_transpose2d(const Tensor& input, const Tensor& weight, const Tensor& bias, Pair stride,
                        Pair padding, Pair output_padding, std::int64_t groups, Pair dilation) {
  Value y = graph::conv_transpose2d(input.value(), weight.value(),
                                    {stride, padding, dilation, groups}, output_padding);
  if (bias.is_defined()) {
    const std::int64_t channels[] = {y.shape()[1], 1, 1};
    y = y + graph::reshape(graph::as_product_operand(bias.value()), channels);
  }
  return record(y);
}
Tensor unfold(const Tensor& x, Pair kernel, Pair dilation, Pair padding, Pair stride) {
  return record(graph::unfold(x.value(), {kernel, stride, padding, dilation}));
}
Tensor fold(const Tensor& columns, Pair image, Pair kernel, Pair dilation, Pair padding,
            Pair stride) {
  return record(graph::fold(columns.value(), image, {kernel, stride, padding, dilation}));
}
Ranked max_pool2d_with_indices(const Tensor& input, Pair kernel, Pair stride, Pair padding,
                               Pair dilation, bool ceil_mode) {
  graph::Pool2dParameters parameters;
  parameters.kernel = kernel;
  parameters.stride = stride;
  parameters.padding = padding;
  parameters.dilation = dilation;
  parameters.ceil_mode = ceil_mode;
  return {record(graph::max_pool2d(input.value(), parameters)),
          record(graph::max_pool2d_indices(input.value(), parameters))};
}

}  // namespace vkml
