#include "vkml/api/functions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "random_state.h"
#include "record_tensor.h"
#include "transfer.h"
#include "vkml/api/context.h"
#include "vkml/ops/autocast.h"
#include "vkml/ops/functions.h"

namespace vkml {
namespace {

using graph::Value;

Device device_of(std::span<const Value> operands) {
  for (const Value& operand : operands) {
    if (operand->family() != graph::Family::kScalar || !operand->is_weak()) return operand.device();
  }
  return operands[0].device();
}

template <typename... Operands>
Tensor apply(ops::Row row, const Operands&... operands) {
  std::array<Value, sizeof...(Operands)> values{operands.value()...};
  const Device device = device_of(values);
  for (Value& value : values) {
    if (is_number_elsewhere(value, device)) value = graph::scalar_on(value, device);
  }
  return record(ops::apply_elementwise_taking(row, values));
}

Device chosen(const std::optional<Device>& device) { return device.value_or(default_device()); }

/// Every element the same number, dense: a user may assign to it.
Tensor filled(const char* op, const Extents& extents, Number value, DType dtype,
              std::optional<Device> device) {
  const Value number = graph::scalar(value, dtype, chosen(device));
  return record(graph::copy(graph::broadcast_to(number, extents, op)));
}

}  // namespace

#define VKML_ROW(arity, name, ...)                        \
  Tensor name(VKML_PARAMETERS_##arity(Tensor)) {          \
    return apply(ops::Row::name, VKML_ARGUMENTS_##arity); \
  }
#include "vkml/ops/elementwise.def.h"

Tensor full(const Extents& extents, Number value, DType dtype, std::optional<Device> device) {
  return filled("full", extents, value, dtype, device);
}
Tensor zeros(const Extents& extents, DType dtype, std::optional<Device> device) {
  return filled("zeros", extents, 0, dtype, device);
}
Tensor empty(const Extents& extents, DType dtype, std::optional<Device> device) {
  return filled("empty", extents, 0, dtype, device);
}
Tensor ones(const Extents& extents, DType dtype, std::optional<Device> device) {
  return filled("ones", extents, 1, dtype, device);
}

namespace {

/// The integer that a bound of an integer range stands for.
std::int64_t whole(Number x) {
  if (x.is_integer()) return x.integer();
  constexpr double kBound = 0x1p63;
  if (!(std::fabs(x.floating()) < kBound)) {
    throw ArgumentError(fmt::format("[arange] {} does not fit int64", x.floating()));
  }
  return static_cast<std::int64_t>(x.floating());
}

Tensor integer_range(std::int64_t start, std::int64_t stop, std::int64_t step, DType dtype,
                     Device device) {
  if (step == 0) {
    throw ArgumentError(fmt::format("[arange] from {} to {} by 0 never ends", start, stop));
  }
  // Distances of 64-bit integers need unsigned ones.
  const auto bits = [](std::int64_t x) { return static_cast<std::uint64_t>(x); };
  const std::uint64_t distance = step > 0 ? bits(stop) - bits(start) : bits(start) - bits(stop);
  const std::uint64_t stride = step > 0 ? bits(step) : 0 - bits(step);
  const bool empty = step > 0 ? start >= stop : start <= stop;
  const std::uint64_t count = empty ? 0 : (distance - 1) / stride + 1;
  if (count > bits(std::numeric_limits<std::int64_t>::max())) {
    throw ArgumentError(fmt::format("[arange] {} elements are too many", count));
  }
  if (!empty) {
    const auto last = static_cast<std::int64_t>(bits(start) + (count - 1) * bits(step));
    check_fits("arange", start, dtype);
    check_fits("arange", last, dtype);
  }
  const std::int64_t extents[] = {static_cast<std::int64_t>(count)};
  // Computed modulo 2^64 or 2^32, as the checked ends show that nothing is lost.
  const bool wide = dtype == DType::kI64;
  const DType computed = wide ? DType::kI64 : DType::kI32;
  const auto number = [&](std::int64_t x) {
    return graph::scalar(wide ? x : static_cast<std::int32_t>(x), computed, device);
  };
  const Value index = graph::cast(graph::iota(extents, 0, device), computed);
  return record(graph::cast(index * number(step) + number(start), dtype));
}

Tensor floating_range(double start, double stop, double step, DType dtype, Device device) {
  if (step == 0 || !std::isfinite(start) || !std::isfinite(stop) || !std::isfinite(step)) {
    throw ArgumentError(fmt::format("[arange] from {} to {} by {} never ends", start, stop, step));
  }
  const double steps = std::ceil((stop - start) / step);
  if (steps > 0x1p53) throw ArgumentError(fmt::format("[arange] {} elements are too many", steps));
  const std::int64_t extents[] = {std::max<std::int64_t>(0, static_cast<std::int64_t>(steps))};
  const DType wide = size_of(dtype) == 2 ? DType::kF32 : dtype;
  const Value scaled = graph::cast(graph::iota(extents, 0, device), wide) * step + start;
  return record(graph::cast(scaled, dtype));
}

}  // namespace

Tensor arange(Number start, Number stop, Number step, DType dtype, std::optional<Device> device) {
  const Device where = chosen(device);
  if (!is_floating(dtype))
    return integer_range(whole(start), whole(stop), whole(step), dtype, where);
  return floating_range(start.floating(), stop.floating(), step.floating(), dtype, where);
}

Tensor rand(const Extents& extents, DType dtype, std::optional<Device> device) {
  check_draw("rand", extents, dtype);
  Value draw = graph::random_uniform(extents, next_random_key(), chosen(device));
  // Below 1, as bits that the dtype holds: rounding would reach it.
  const double steps = dtype == DType::kF16 ? 0x1p11 : 0x1p8;
  if (size_of(dtype) == 2) draw = graph::floor(draw * steps) * (1 / steps);
  return record(graph::cast(draw, dtype));
}
Tensor randn(const Extents& extents, DType dtype, std::optional<Device> device) {
  check_draw("randn", extents, dtype);
  return record(
      graph::cast(graph::random_normal(extents, next_random_key(), chosen(device)), dtype));
}
Tensor randint(std::int64_t low, std::int64_t high, const Extents& extents, DType dtype,
               std::optional<Device> device) {
  if (low >= high)
    throw ArgumentError(fmt::format("[randint] no integer is in [{}, {})", low, high));
  const Shape possible(extents, dtype, "randint");
  const Device where = chosen(device);
  check_fits("randint", low, dtype);
  check_fits("randint", high - 1, dtype);
  const auto unit = [&] { return graph::random_uniform(extents, next_random_key(), where); };
  const double range = static_cast<double>(high) - static_cast<double>(low);
  constexpr double kBits = 0x1p24;  // of one draw
  Value offset;
  if (range <= kBits) {
    offset = graph::cast(graph::floor(unit() * range), dtype);
  } else if (range <= 0x1p40) {
    // Two draws make 48 bits; their remainder is uniform within 2^-8 of a part in 2^40.
    const auto word = [&] { return graph::cast(graph::floor(unit() * kBits), DType::kI64); };
    const auto whole = [&](std::int64_t x) { return graph::weak_scalar(x, where); };
    const Value wide = word() * whole(std::int64_t{1} << 24) + word();
    offset = graph::cast(graph::remainder(wide, whole(high - low)), dtype);
  } else {
    throw ArgumentError(fmt::format("[randint] the range [{}, {}) exceeds 2^40", low, high));
  }
  return record(graph::add(offset, graph::cast(graph::weak_scalar(low, offset.device()), dtype)));
}

Tensor to(const Tensor& x, DType dtype) {
  return x.dtype() == dtype ? x : record(graph::cast(x.value(), dtype));
}
Tensor to(const Tensor& x, Device device) {
  return x.device() == device ? x : Tensor(transfer(x.value(), device));
}

Tensor reshape(const Tensor& x, const Extents& extents) {
  return view_of(x, [&](const Value& v) { return graph::reshape(v, extents); });
}
Tensor permute(const Tensor& x, const Extents& axes) {
  return view_of(x, [&](const Value& v) { return graph::permute(v, axes); });
}
Tensor transpose(const Tensor& x, std::int64_t axis0, std::int64_t axis1) {
  return view_of(x, [&](const Value& v) { return graph::transpose(v, axis0, axis1); });
}
Tensor squeeze(const Tensor& x, std::optional<std::int64_t> axis) {
  if (axis) return view_of(x, [&](const Value& v) { return graph::squeeze(v, *axis); });
  Extents extents;
  for (const std::int64_t extent : x.extents()) {
    if (extent != 1) extents.push_back(extent);
  }
  return reshape(x, extents);
}
Tensor unsqueeze(const Tensor& x, std::int64_t axis) {
  return view_of(x, [&](const Value& v) { return graph::unsqueeze(v, axis); });
}
Tensor flatten(const Tensor& x, std::int64_t first, std::int64_t last) {
  if (x.rank() == 0) return reshape(x, {1});
  const int from = normalize_axis("flatten", first, x.rank());
  const int until = normalize_axis("flatten", last, x.rank());
  if (from > until) {
    throw ShapeError(
        fmt::format("[flatten] the first axis {} lies after the last {}", from, until));
  }
  Extents extents;
  std::int64_t merged = 1;
  for (int axis = 0; axis < x.rank(); ++axis) {
    const bool inside = axis >= from && axis <= until;
    if (inside) merged *= x.shape()[axis];
    if (!inside || axis == until) extents.push_back(inside ? merged : x.shape()[axis]);
  }
  return reshape(x, extents);
}
Tensor broadcast_to(const Tensor& x, const Extents& extents) {
  return view_of(x, [&](const Value& v) { return graph::broadcast_to(v, extents); });
}
Tensor slice(const Tensor& x, std::int64_t axis, std::optional<std::int64_t> start,
             std::optional<std::int64_t> stop, std::int64_t step) {
  return view_of(x, [&](const Value& v) { return graph::slice(v, axis, start, stop, step); });
}
Tensor contiguous(const Tensor& x) {
  return x.is_contiguous() ? x : record(graph::contiguous(x.value()));
}
Tensor to_copy(const Tensor& x) { return record(graph::copy(x.value())); }

Tensor concat(std::span<const Tensor> parts, std::int64_t axis) {
  return record(graph::concat(values_of(parts), axis));
}
Tensor stack(std::span<const Tensor> parts, std::int64_t axis) {
  std::vector<Value> values = values_of(parts);
  if (values.empty()) throw ArgumentError("[stack] needs at least one tensor");
  const int added = normalize_axis("stack", axis, values[0].rank() + 1);
  for (Value& value : values) {
    if (!value.shape().same_extents(parts[0].shape())) {
      throw ShapeError(fmt::format("[stack] shapes {} and {} differ", parts[0].shape().to_string(),
                                   value.shape().to_string()));
    }
    value = graph::unsqueeze(value, added);
  }
  return record(graph::concat(values, added));
}
std::vector<Tensor> split(const Tensor& x, std::int64_t size, std::int64_t axis) {
  const int along = normalize_axis("split", axis, x.rank());
  if (size <= 0) throw ArgumentError(fmt::format("[split] the size {} is not positive", size));
  std::vector<Tensor> parts;
  const std::int64_t extent = x.shape()[along];
  // Nothing is one part of no elements: what is split can be joined again.
  if (extent == 0) return {x};
  for (std::int64_t start = 0; start < extent;) {
    const std::int64_t count = std::min(size, extent - start);
    parts.push_back(slice(x, along, start, start + count));
    start += count;
  }
  return parts;
}
Tensor pad(const Tensor& x, const std::vector<std::array<std::int64_t, 2>>& amounts, Number value) {
  return record(graph::pad(x.value(), amounts, value));
}

#define VKML_REDUCTION(name)                                        \
  Tensor name(const Tensor& x, const Extents& axes, bool keepdim) { \
    return record(graph::name(x.value(), axes, keepdim));           \
  }
VKML_REDUCTION(mean)
VKML_REDUCTION(max)
VKML_REDUCTION(min)
VKML_REDUCTION(argmax)
VKML_REDUCTION(argmin)
VKML_REDUCTION(any)
VKML_REDUCTION(all)
VKML_REDUCTION(logsumexp)
#undef VKML_REDUCTION

Tensor sum(const Tensor& x, const Extents& axes, bool keepdim) {
  return record(graph::sum(graph::as_precise_operand(x.value()), axes, keepdim));
}
Tensor prod(const Tensor& x, const Extents& axes, bool keepdim) {
  return record(graph::prod(graph::as_precise_operand(x.value()), axes, keepdim));
}

Tensor var(const Tensor& x, const Extents& axes, bool keepdim, double correction) {
  return record(graph::variance(x.value(), axes, keepdim, correction));
}

Tensor softmax(const Tensor& x, std::int64_t axis) {
  return record(graph::softmax(graph::as_precise_operand(x.value()), axis));
}
Tensor log_softmax(const Tensor& x, std::int64_t axis) {
  return record(graph::log_softmax(graph::as_precise_operand(x.value()), axis));
}
Tensor matmul(const Tensor& a, const Tensor& b) {
  return record(graph::matmul(a.value(), b.value()));
}

namespace {
Value value_or_none(const Tensor& x) { return x.is_defined() ? x.value() : Value(); }
}  // namespace

Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                    const Tensor& mask, const graph::AttentionOptions& options) {
  return record(graph::scaled_dot_product_attention(query.value(), key.value(), value.value(),
                                                    value_or_none(mask), options));
}
Tensor attention_weights(const Tensor& query, const Tensor& key, const Tensor& mask,
                         const graph::AttentionOptions& options) {
  return record(graph::attention_weights(query.value(), key.value(), value_or_none(mask), options));
}

Tensor conv2d(const Tensor& input, const Tensor& weight, const Tensor& bias, Pair stride,
              Pair padding, Pair dilation, std::int64_t groups) {
  Value y = graph::conv2d(input.value(), weight.value(), {stride, padding, dilation, groups});
  if (bias.is_defined()) {
    const std::int64_t channels[] = {weight.shape()[0], 1, 1};
    y = y + graph::reshape(graph::as_product_operand(bias.value()), channels);
  }
  return record(y);
}

namespace {
graph::Pool2dParameters pool_parameters(Pair kernel, Pair stride, Pair padding) {
  graph::Pool2dParameters parameters;
  parameters.kernel = kernel;
  parameters.stride = stride;
  parameters.padding = padding;
  return parameters;
}
}  // namespace

Tensor max_pool2d(const Tensor& input, Pair kernel, Pair stride, Pair padding, Pair dilation,
                  bool ceil_mode) {
  graph::Pool2dParameters parameters = pool_parameters(kernel, stride, padding);
  parameters.ceil_mode = ceil_mode;
  parameters.dilation = dilation;
  return record(graph::max_pool2d(input.value(), parameters));
}
Tensor avg_pool2d(const Tensor& input, Pair kernel, Pair stride, Pair padding,
                  bool count_include_pad, bool ceil_mode) {
  graph::Pool2dParameters parameters = pool_parameters(kernel, stride, padding);
  parameters.ceil_mode = ceil_mode;
  parameters.count_include_pad = count_include_pad;
  return record(graph::avg_pool2d(input.value(), parameters));
}

Tensor gather(const Tensor& x, std::int64_t axis, const Tensor& index, std::string_view name) {
  return record(graph::gather(x.value(), axis, index.value(), name));
}
Tensor scatter_add(const Tensor& base, std::int64_t axis, const Tensor& index,
                   const Tensor& source) {
  return record(graph::scatter_add(base.value(), axis, index.value(), source.value()));
}
Tensor take(const Tensor& x, const Tensor& indices, std::int64_t axis) {
  return record(graph::take(x.value(), indices.value(), axis));
}
Tensor index_select(const Tensor& x, std::int64_t axis, const Tensor& indices) {
  return record(graph::take(x.value(), indices.value(), axis, graph::TakeName::kIndexSelect));
}
Tensor embedding(const Tensor& indices, const Tensor& weight, std::string_view name) {
  return record(graph::take(weight.value(), indices.value(), 0, graph::TakeName::kEmbedding, name));
}

Tensor dropout(const Tensor& x, double probability, bool training) {
  if (!training || probability == 0) return x;
  return record(graph::dropout(x.value(), probability, next_random_key()));
}

Tensor normalize(const Tensor& x, const Extents& axes, double epsilon) {
  return record(graph::normalize(x.value(), axes, epsilon));
}

Tensor layer_norm(const Tensor& x, const Extents& normalized, const Tensor& weight,
                  const Tensor& bias, double epsilon) {
  const int count = static_cast<int>(normalized.size());
  const int first = x.rank() - count;
  bool fits = count > 0 && first >= 0;
  Extents axes;
  for (int i = 0; fits && i < count; ++i) {
    fits = x.shape()[first + i] == normalized[static_cast<std::size_t>(i)];
    axes.push_back(first + i);
  }
  if (!fits) {
    throw ShapeError(fmt::format("[layer_norm] the last axes of {} are not {}",
                                 x.shape().to_string(), to_string(normalized)));
  }
  Value y = graph::normalize(graph::as_precise_operand(x.value()), axes, epsilon);
  if (weight.is_defined()) y = y * weight.value();
  if (bias.is_defined()) y = y + bias.value();
  return record(y);
}

Tensor add_to_product(const Tensor& product, const Tensor& addend) {
  return record(product.value() + graph::as_product_operand(addend.value()));
}

Tensor checked_probability(const Tensor& x) {
  return record(graph::checked_probability(x.value()));
}

Tensor cross_entropy(const Tensor& logits, const Tensor& target, Reduction reduction,
                     std::int64_t ignore_index, double label_smoothing) {
  if (!(label_smoothing >= 0 && label_smoothing <= 1)) {
    throw ArgumentError(
        fmt::format("[cross_entropy] label smoothing {} is outside [0, 1]", label_smoothing));
  }
  const Value labels = target.value();
  const Value rows = graph::cross_entropy_rows(graph::as_precise_operand(logits.value()), labels,
                                               ignore_index, label_smoothing);
  if (reduction == Reduction::kNone) return record(rows);
  const Value total = graph::sum(rows, {}, false);
  if (reduction == Reduction::kSum) return record(total);
  const Value counted = graph::ne(labels, graph::weak_scalar(ignore_index, labels.device()));
  const Value count = graph::sum(graph::cast(counted, DType::kI32), {}, false);
  return record(total / graph::cast(count, total.dtype()));
}

}  // namespace vkml
