// How the files of this folder record a node: one place fills in requires_grad and checks devices.
#pragma once

#include <fmt/format.h>

#include <array>
#include <initializer_list>
#include <limits>
#include <span>
#include <string>
#include <utility>

#include "vkml/core/checked.h"
#include "vkml/core/error.h"
#include "vkml/graph/value.h"
#include "vkml/ops/core_kind.h"
#include "vkml/ops/functions.h"

namespace vkml::graph {

inline std::span<const std::int64_t> as_span(std::initializer_list<std::int64_t> values) {
  return {values.begin(), values.size()};
}

/// Throws DeviceError in the name of `op` unless all operands are on one device.
inline void check_same_device(const char* op, std::span<const Value> operands) {
  for (const Value& operand : operands) {
    if (operand.device() == operands[0].device()) continue;
    throw DeviceError(fmt::format("[{}] operands are on {} and {}. Move one: x.to(\"{}\")", op,
                                  to_string(operands[0].device()), to_string(operand.device()),
                                  to_string(operands[0].device())));
  }
}
inline void check_same_device(const char* op, const Value& a, const Value& b) {
  check_same_device(op, std::array<Value, 2>{a, b});
}

/// Throws ShapeError in the name of `op` where positions among `count` elements are too large for
/// the i32 that the operator gives.
inline void check_positions(const char* op, std::int64_t count) {
  if (count - 1 <= std::numeric_limits<std::int32_t>::max()) return;
  throw ShapeError(
      fmt::format("[{}] positions among {} elements do not fit int32. Split the axis", op, count));
}

/// A node that computes: dense result, gradient recorded when some source asks for one.
inline Value record(const OpInfo& op, SourceList sources, std::span<const std::int64_t> extents,
                    DType dtype, Device device, const Attributes& attributes = {},
                    std::uint32_t flags = 0) {
  NodeSpec spec;
  spec.flags = flags | (ops::checks_indices(op) ? kFlagMayFail : 0u);
  spec.op = &op;
  spec.attributes = attributes;
  spec.dtype = dtype;
  spec.device = device;
  spec.shape = Shape(extents, dtype, op.name);
  if (op.gradient != nullptr && is_floating(dtype) && any_requires_grad(sources)) {
    spec.flags |= kFlagRequiresGrad;
  }
  return Value(make_node(std::move(spec), std::move(sources)));
}

/// A bit for each axis; no axes means all. Throws ShapeError in the name of `op` for an axis that
/// is repeated or not there.
inline std::int64_t mask_of(const char* op, std::span<const std::int64_t> axes, int rank) {
  if (axes.empty()) return (std::int64_t{1} << rank) - 1;
  std::int64_t mask = 0;
  for (const std::int64_t axis : axes) {
    const std::int64_t bit = std::int64_t{1} << normalize_axis(op, axis, rank);
    if ((mask & bit) != 0) {
      throw ShapeError(fmt::format("[{}] axis {} is repeated in {}", op, axis, to_string(axes)));
    }
    mask |= bit;
  }
  return mask;
}

/// Extents under construction.
struct ExtentList {
  std::array<std::int64_t, kMaxDims> values{};
  int rank = 0;

  ExtentList() = default;
  explicit ExtentList(std::span<const std::int64_t> extents) {
    for (const std::int64_t extent : extents) push_back(extent);
  }
  void push_back(std::int64_t extent) { values[static_cast<std::size_t>(rank++)] = extent; }
  std::int64_t& operator[](int axis) { return values[static_cast<std::size_t>(axis)]; }
  std::span<const std::int64_t> span() const {
    return {values.data(), static_cast<std::size_t>(rank)};
  }
};

/// The window of a slice or of a view's update. attributes: its offset, then a stride for each of
/// its axes, in elements of the dense base.
inline Window window_of(const Attributes& attributes) {
  Window window;
  window.offset = attributes[0];
  for (int axis = 1; axis < attributes.size(); ++axis) {
    window.strides[static_cast<std::size_t>(axis - 1)] = attributes[axis];
  }
  return window;
}

}  // namespace vkml::graph
