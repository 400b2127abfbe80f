// Values put together from parts: concat, padding, windows replaced, assignment.

#include <algorithm>
#include <vector>

#include "record.h"
#include "vkml/ops/functions.h"

namespace vkml::graph {
namespace {

void concat_gradient(const Value& output, const Value& gradient, std::span<Value> gradients) {
  const std::int64_t axis = output->attributes()[0];
  std::int64_t start = 0;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const std::int64_t extent =
        output->source(static_cast<int>(i))->shape()[static_cast<int>(axis)];
    gradients[i] = slice(gradient, axis, start, start + extent, 1);
    start += extent;
  }
}
constexpr OpInfo kConcatOp{"concat", Family::kConcat, 0, &concat_gradient};

void view_update_gradient(const Value& output, const Value& gradient, std::span<Value> gradients) {
  const Window window = window_of(output->attributes());
  const Value value(output->source(1));
  const auto extents = value.shape().extents();
  gradients[0] = view_update(gradient, full(extents, 0, value.dtype(), value.device()), window);
  gradients[1] = view_window(gradient, extents, window);
}
constexpr OpInfo kViewUpdateOp{"view_update", Family::kViewUpdate, 0, &view_update_gradient};

void assign_gradient(const Value&, const Value& gradient, std::span<Value> gradients) {
  gradients[1] = gradient;
}
constexpr OpInfo kAssignOp{"assign", Family::kAssign, 0, &assign_gradient};

void unseen_assign_gradient(const Value&, const Value& gradient, std::span<Value> gradients) {
  gradients[0] = gradient;
}
constexpr OpInfo kUnseenAssignOp{"assign", Family::kAssign, 0, &unseen_assign_gradient};

}  // namespace

Value concat(std::span<const Value> parts, std::int64_t axis) {
  if (parts.empty()) throw ArgumentError("[concat] needs at least one tensor");
  const Value& head = parts[0];
  if (head.rank() == 0) throw ShapeError("[concat] tensors of rank 0 have no axis to join");
  const int joined = normalize_axis("concat", axis, head.rank());
  DType dtype = head.dtype();
  ExtentList extents(head.shape().extents());
  extents[joined] = 0;
  for (const Value& part : parts) {
    check_same_device("concat", head, part);
    dtype = promote(dtype, part.dtype());
    bool fits = part.rank() == head.rank();
    for (int i = 0; fits && i < head.rank(); ++i) {
      fits = i == joined || part.shape()[i] == head.shape()[i];
    }
    if (!fits) {
      throw ShapeError(fmt::format("[concat] shapes {} and {} differ outside axis {}",
                                   head.shape().to_string(), part.shape().to_string(), joined));
    }
    // Views without memory of their own may be larger together than any tensor.
    if (__builtin_add_overflow(extents[joined], part.shape()[joined], &extents[joined]))
      throw ShapeError(fmt::format("[concat] axis {} would exceed 2^63 elements", joined));
  }
  if (parts.size() == 1) return cast(head, dtype);
  SourceList sources;
  for (const Value& part : parts) sources.push_back(cast(part, dtype).node());
  return record(kConcatOp, std::move(sources), extents.span(), dtype, head.device(), {joined});
}

Value pad(const Value& x, std::span<const std::array<std::int64_t, 2>> amounts, Number value) {
  if (static_cast<int>(amounts.size()) != x.rank()) {
    throw ShapeError(
        fmt::format("[pad] {} pairs of amounts for rank {}", amounts.size(), x.rank()));
  }
  ExtentList padded;
  Value inner = x;
  std::array<std::int64_t, kMaxDims> starts{};
  for (int axis = 0; axis < x.rank(); ++axis) {
    const auto [before, after] = amounts[static_cast<std::size_t>(axis)];
    std::int64_t extent = 0;
    const bool too_large = __builtin_add_overflow(x.shape()[axis], before, &extent) ||
                           __builtin_add_overflow(extent, after, &extent);
    // Negative amounts crop, each by no more than there is.
    const std::int64_t first = before < 0 ? -std::max(before, -x.shape()[axis]) : 0;
    const std::int64_t last = x.shape()[axis] + (after < 0 ? std::max(after, -x.shape()[axis]) : 0);
    if (too_large || extent < 0) {
      throw ShapeError(fmt::format("[pad] amounts ({}, {}) do not fit axis {} of extent {}", before,
                                   after, axis, x.shape()[axis]));
    }
    padded.push_back(extent);
    inner = slice(inner, axis, first, last, 1);
    starts[static_cast<std::size_t>(axis)] = before > 0 ? before : 0;
  }
  const Value base = full(padded.span(), value, x.dtype(), x.device());
  const Shape dense(padded.span(), x.dtype());
  Window window;
  for (int axis = 0; axis < x.rank(); ++axis) {
    const std::int64_t stride = dense.stride(axis) / static_cast<std::int64_t>(size_of(x.dtype()));
    window.strides[static_cast<std::size_t>(axis)] = stride;
    window.offset += stride * starts[static_cast<std::size_t>(axis)];
  }
  return view_update(base, inner, window);
}

Value view_update(const Value& base, const Value& value, const Window& window) {
  check_same_device("view_update", base, value);
  Attributes attributes{window.offset};
  for (int axis = 0; axis < value.rank(); ++axis) {
    attributes.push_back(window.strides[static_cast<std::size_t>(axis)]);
  }
  return record(kViewUpdateOp, {base.node(), cast(value, base.dtype()).node()},
                base.shape().extents(), base.dtype(), base.device(), attributes);
}

Window window_between(const Value& dense, const Value& view) {
  const auto element = static_cast<std::int64_t>(size_of(dense.dtype()));
  const auto start = [](const Value& v) { return v->is_view() ? v->view_offset() : 0; };
  Window window;
  window.offset = (start(view) - start(dense)) / element;
  for (int axis = 0; axis < view.rank(); ++axis) {
    window.strides[static_cast<std::size_t>(axis)] = view.shape().stride(axis) / element;
  }
  return window;
}

void check_assignable(const Value& old, const Value& value) {
  if (old.device() != value.device()) {
    throw DeviceError(
        fmt::format("[assign_] destination is on {}, value on {}. Use copy_(value), "
                    "or value.to(\"{}\")",
                    to_string(old.device()), to_string(value.device()), to_string(old.device())));
  }
  if (!old.shape().same_extents(value.shape())) {
    throw ShapeError(
        fmt::format("[assign_] destination has shape {}, value {}. Use copy_(value), "
                    "which broadcasts",
                    old.shape().to_string(), value.shape().to_string()));
  }
  if (old.dtype() != value.dtype()) {
    throw DTypeError(fmt::format("[assign_] destination is {}, value {}. Use value.to(vkml.{})",
                                 name_of(old.dtype()), name_of(value.dtype()),
                                 name_of(old.dtype())));
  }
  if (!old.shape().is_contiguous(size_of(old.dtype()))) {
    throw ShapeError(
        fmt::format("[assign_] destination of shape {} is not contiguous. Use "
                    "copy_(value), which writes views of any strides",
                    old.shape().to_string()));
  }
}

Value assign(const Value& old, const Value& value, std::uint32_t flags) {
  check_assignable(old, value);
  return record(kAssignOp, {old.node(), value.node()}, old.shape().extents(), old.dtype(),
                old.device(), {}, flags);
}

Value assign_unseen(const Value& old, const Value& value) {
  check_assignable(old, value);
  return record(kUnseenAssignOp, {old.node(), value.node()}, old.shape().extents(), old.dtype(),
                old.device(), {}, kFlagRequiresGrad);
}

}  // namespace vkml::graph
