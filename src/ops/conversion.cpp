// Numbers as nodes, casts, and values that need no memory: full and iota.

#include <bit>
#include <cmath>
#include <limits>

#include "record.h"
#include "vkml/core/half.h"
#include "vkml/ops/functions.h"
#include "vkml/ops/scalar_program.h"

namespace vkml::graph {
namespace {

constexpr OpInfo kScalarOp{"scalar", Family::kScalar, 0, nullptr};
constexpr OpInfo kIotaOp{"iota", Family::kIota, 0, nullptr};

void cast_gradient(const Value& output, const Value& gradient, std::span<Value> gradients) {
  const DType source = output->source(0)->dtype();
  if (is_floating(source)) gradients[0] = cast(gradient, source);
}
constexpr OpInfo kCastOp{"cast", Family::kCast, 0, &cast_gradient};

/// Attributes: the payload, and where it comes from. No part of a plan's key.
Value make_scalar(std::int64_t payload, DType dtype, Device device, bool weak,
                  NumberOrigin origin = {}) {
  NodeSpec spec;
  spec.op = &kScalarOp;
  spec.attributes = {payload, static_cast<std::int64_t>(origin.source), origin.index};
  spec.dtype = dtype;
  spec.device = device;
  spec.shape = Shape({}, dtype);
  if (weak) spec.flags |= kFlagWeak;
  return Value(make_node(std::move(spec), {}));
}

template <typename Integer>
std::int64_t saturated(double value) {
  using Limits = std::numeric_limits<Integer>;
  if (std::isnan(value)) return 0;
  if (value <= static_cast<double>(Limits::min())) return Limits::min();
  // The greatest i64 has no double of its own: the comparison is with 2^63.
  if (value >= static_cast<double>(Limits::max())) return Limits::max();
  return static_cast<std::int64_t>(value);
}

/// A scalar's payload is an i64, or a double's bits when its dtype is floating.
std::int64_t payload_of(double value, DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return value != 0;
    case DType::kU8:
      return saturated<std::uint8_t>(value);
    case DType::kI32:
      return saturated<std::int32_t>(value);
    case DType::kI64:
      return saturated<std::int64_t>(value);
    default:
      return std::bit_cast<std::int64_t>(value);
  }
}

/// The f32 that a scalar of a floating dtype is computed with: one of the dtype's own values.
float rounded(double value, DType dtype) {
  const auto single = static_cast<float>(value);
  if (dtype == DType::kF16) return f16_to_f32(f32_to_f16(single));
  if (dtype == DType::kBF16) return bf16_to_f32(f32_to_bf16(single));
  return single;
}

Value cast_scalar(const Value& x, DType dtype) {
  const std::int64_t payload = x->attributes()[0];
  NumberOrigin origin = origin_of(*x.node());
  if (origin.source != NumberSource::kConstant && !is_floating(dtype)) {
    origin.source = NumberSource::kConverted;
  }
  if (is_floating(x.dtype())) {
    return make_scalar(payload_of(std::bit_cast<double>(payload), dtype), dtype, x.device(),
                       x->is_weak(), origin);
  }
  const std::int64_t converted = is_floating(dtype) || dtype == DType::kBool
                                     ? payload_of(static_cast<double>(payload), dtype)
                                     : payload;
  return make_scalar(converted, dtype, x.device(), x->is_weak(), origin);
}

}  // namespace

Value weak_scalar(double value, Device device) {
  return make_scalar(std::bit_cast<std::int64_t>(value), kDefaultFloat, device, true);
}
Value weak_scalar(std::int64_t value, Device device) {
  const bool fits = value == static_cast<std::int32_t>(value);
  return make_scalar(value, fits ? kDefaultInteger : DType::kI64, device, true);
}
Value weak_scalar(bool value, Device device) {
  return make_scalar(value ? 1 : 0, DType::kBool, device, true);
}
Value scalar(Number value, DType dtype, Device device) {
  if (!value.is_integer() || !is_integer(dtype)) {
    return make_scalar(payload_of(value.floating(), dtype), dtype, device, false);
  }
  check_fits("full", value.integer(), dtype);
  return make_scalar(value.integer(), dtype, device, false);
}

bool number_fits(const Value& x, DType dtype) {
  const bool is_number = x->family() == Family::kScalar && x->is_weak() && is_integer(x.dtype());
  return !is_number || vkml::fits(x->attributes()[0], dtype);
}

Value cast_operand(const char* op, const Value& x, DType dtype) {
  if (!number_fits(x, dtype)) check_fits(op, x->attributes()[0], dtype);
  return cast(x, dtype);
}

Value scalar_on(const Value& number, Device device) {
  return make_scalar(number->attributes()[0], number.dtype(), device, number->is_weak(),
                     origin_of(*number.node()));
}

NumberOrigin origin_of(const Node& node) {
  return {static_cast<NumberSource>(node.attributes()[1]), node.attributes()[2]};
}

Value with_origin(const Value& number, NumberOrigin origin) {
  return make_scalar(number->attributes()[0], number.dtype(), number.device(), number->is_weak(),
                     origin);
}

Value cast(const Value& x, DType dtype) {
  if (x.dtype() == dtype) return x;
  if (x->family() == Family::kScalar) return cast_scalar(x, dtype);
  return record(kCastOp, {x.node()}, x.shape().extents(), dtype, x.device());
}

Value full(Axes extents, Number value, DType dtype, Device device) {
  return broadcast_to(scalar(value, dtype, device), extents);
}

Value zeros_like(const Value& x) { return full(x.shape().extents(), 0, x.dtype(), x.device()); }

Value iota(Axes extents, int axis, Device device) {
  const bool small =
      extents[static_cast<std::size_t>(axis)] <= std::numeric_limits<std::int32_t>::max();
  return record(kIotaOp, {}, extents, small ? DType::kI32 : DType::kI64, device, {axis});
}

double scalar_number(const Node& node) {
  const std::int64_t payload = node.attributes()[0];
  return is_floating(node.dtype()) ? std::bit_cast<double>(payload) : static_cast<double>(payload);
}

namespace {

std::uint64_t bits_of(std::int64_t payload, DType dtype) {
  switch (ops::compute_type(dtype)) {
    case ops::ScalarType::kF32:
      return std::bit_cast<std::uint32_t>(rounded(std::bit_cast<double>(payload), dtype));
    case ops::ScalarType::kI32:
      return static_cast<std::uint32_t>(dtype == DType::kU8 ? payload & 0xff : payload);
    default:
      return static_cast<std::uint64_t>(payload);
  }
}

}  // namespace

std::uint64_t scalar_bits(const Node& node) { return bits_of(node.attributes()[0], node.dtype()); }

std::uint64_t scalar_bits(const Node& node, Number number) {
  const DType dtype = node.dtype();
  if (!number.is_integer() || is_floating(dtype)) {
    return bits_of(payload_of(number.floating(), dtype), dtype);
  }
  check_fits("jit", number.integer(), dtype);
  return bits_of(number.integer(), dtype);
}

}  // namespace vkml::graph
