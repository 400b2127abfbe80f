// Views: other extents and strides over the same storage. A view node keeps two edges: its root
// storage owner (collapsed through chains, so that binding is one hop) and its immediate base
// (never collapsed: gradient rules need the base's own shape).

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "record.h"
#include "vkml/ops/batching.h"
#include "vkml/ops/functions.h"
#include "vkml/ops/overlap.h"

namespace vkml::graph {
namespace {

using Extents = std::array<std::int64_t, kMaxDims>;
std::span<const std::int64_t> first(const Extents& values, int count) {
  return {values.data(), static_cast<std::size_t>(count)};
}
std::size_t at(int axis) { return static_cast<std::size_t>(axis); }

void reshape_gradient(const Value& output, const Value& gradient, std::span<Value> gradients) {
  gradients[0] = reshape(gradient, output->source(0)->shape().extents());
}
void permute_gradient(const Value& output, const Value& gradient, std::span<Value> gradients) {
  Extents inverse{};
  const Attributes& axes = output->attributes();
  for (int i = 0; i < axes.size(); ++i) inverse[at(static_cast<int>(axes[i]))] = i;
  gradients[0] = permute(gradient, first(inverse, axes.size()));
}
void broadcast_gradient(const Value& output, const Value& gradient, std::span<Value> gradients) {
  gradients[0] = sum_to(gradient, output->source(0)->shape());
}
void window_gradient(const Value& output, const Value& gradient, std::span<Value> gradients) {
  const Node& base = *output->source(0);
  const Value zeros = full(base.shape().extents(), 0, base.dtype(), base.device());
  const Window window = window_of(output->attributes());
  if (!may_overlap(output.shape())) {
    gradients[0] = view_update(zeros, gradient, window);
    return;
  }
  // An element that several windows show gets the sum of its gradients: each finds its place by
  // the number that the same window shows of the base's elements.
  const std::int64_t every[] = {base.numel()};
  const bool is_small = base.numel() <= std::numeric_limits<std::int32_t>::max();
  const Value number = cast(iota(every, 0, base.device()), is_small ? DType::kI32 : DType::kI64);
  const Value shown =
      view_window(reshape(number, base.shape().extents()), output.shape().extents(), window);
  const std::int64_t count[] = {output->numel()};
  gradients[0] = reshape(
      scatter_add(reshape(zeros, every), 0, reshape(shown, count), reshape(gradient, count)),
      base.shape().extents());
}
void copy_gradient(const Value&, const Value& gradient, std::span<Value> gradients) {
  gradients[0] = gradient;
}

constexpr OpInfo kReshape{"reshape", Family::kView, 0, &reshape_gradient};
constexpr OpInfo kPermute{"permute", Family::kView, 1, &permute_gradient};
constexpr OpInfo kBroadcast{"broadcast_to", Family::kView, 2, &broadcast_gradient};
constexpr OpInfo kSlice{"slice", Family::kView, 3, &window_gradient};
constexpr OpInfo kDetach{"detach", Family::kView, 4, nullptr};
constexpr OpInfo kCopy{"contiguous", Family::kCopy, 0, &copy_gradient};

/// `byte_offset` is from x's first element.
Value make_view(const OpInfo& op, const Value& x, const Shape& shape, std::int64_t byte_offset,
                const Attributes& attributes = {}, std::uint32_t flags = 0) {
  NodeSpec spec;
  spec.flags = flags;
  spec.op = &op;
  spec.attributes = attributes;
  spec.dtype = x.dtype();
  spec.device = x.device();
  spec.shape = shape;
  const NodePtr& base = x.node();
  spec.view_src = base->share_view_src();
  spec.offset = byte_offset + (spec.view_src ? base->view_offset() : 0);
  if (!spec.view_src) spec.view_src = base;
  if (base->is_weak()) spec.flags |= kFlagWeak;
  SourceList sources{base};
  if (op.gradient != nullptr && is_floating(x.dtype()) && any_requires_grad(sources)) {
    spec.flags |= kFlagRequiresGrad;
  }
  return Value(make_node(std::move(spec), std::move(sources)));
}

/// Strides of x's elements under other extents, where that needs no copy. Axes of extent 1 are
/// dropped, runs of axes that lie densely are merged, and each run is split into the new extents.
std::optional<Shape> reshape_in_place(const Shape& x, Axes extents, DType dtype) {
  if (x.numel() == 0 || x.is_contiguous(size_of(dtype))) return Shape(extents, dtype);
  Extents old_extents{};
  Extents old_strides{};
  int old_rank = 0;
  for (int axis = 0; axis < x.rank(); ++axis) {
    if (x[axis] == 1) continue;
    old_extents[at(old_rank)] = x[axis];
    old_strides[at(old_rank++)] = x.stride(axis);
  }
  Extents strides{};
  const int rank = static_cast<int>(extents.size());
  int old_axis = 0;
  int axis = 0;
  while (old_axis < old_rank && axis < rank) {
    std::int64_t count = extents[at(axis)];
    std::int64_t old_count = old_extents[at(old_axis)];
    int end = axis + 1;
    int old_end = old_axis + 1;
    while (count != old_count) {
      if (count < old_count) {
        count *= extents[at(end++)];
      } else {
        old_count *= old_extents[at(old_end++)];
      }
    }
    for (int k = old_axis; k + 1 < old_end; ++k) {
      if (old_strides[at(k)] != old_extents[at(k + 1)] * old_strides[at(k + 1)])
        return std::nullopt;
    }
    strides[at(end - 1)] = old_strides[at(old_end - 1)];
    for (int k = end - 1; k > axis; --k) strides[at(k - 1)] = strides[at(k)] * extents[at(k)];
    axis = end;
    old_axis = old_end;
  }
  for (; axis < rank; ++axis) strides[at(axis)] = static_cast<std::int64_t>(size_of(dtype));
  return Shape(extents, first(strides, rank));
}

}  // namespace

Value reshape(const Value& x, Axes extents) {
  if (extents.size() > kMaxDims) {
    throw ShapeError(
        fmt::format("[reshape] rank {} exceeds kMaxDims={}", extents.size(), kMaxDims));
  }
  Extents resolved{};
  std::int64_t known = 1;
  int unknown = -1;
  for (std::size_t axis = 0; axis < extents.size(); ++axis) {
    resolved[axis] = extents[axis];
    if (extents[axis] == -1 && unknown < 0) {
      unknown = static_cast<int>(axis);
    } else if (extents[axis] < 0 || __builtin_mul_overflow(known, extents[axis], &known)) {
      throw ShapeError(fmt::format("[reshape] impossible shape {}", to_string(extents)));
    }
  }
  const std::int64_t total = x->numel();
  if (unknown >= 0 && known > 0 && total % known == 0) resolved[at(unknown)] = total / known;
  const bool fits = unknown < 0 ? known == total : known > 0 && total % known == 0;
  if (!fits) {
    throw ShapeError(
        fmt::format("[reshape] {} elements of shape {} do not fill shape {}. Use extents whose "
                    "product is {}; -1 stands for what is left",
                    total, x.shape().to_string(), to_string(extents), total));
  }
  const auto wanted = first(resolved, static_cast<int>(extents.size()));
  if (std::ranges::equal(wanted, x.shape().extents())) return x;
  const auto shape = reshape_in_place(x.shape(), wanted, x.dtype());
  return shape ? make_view(kReshape, x, *shape, 0) : reshape(contiguous(x), wanted);
}

Value permute(const Value& x, Axes axes) {
  const int rank = x.rank();
  if (static_cast<int>(axes.size()) != rank) {
    throw ShapeError(fmt::format("[permute] {} axes given for rank {}", axes.size(), rank));
  }
  Extents extents{};
  Extents strides{};
  Attributes order;
  unsigned seen = 0;
  for (int i = 0; i < rank; ++i) {
    const int axis = normalize_axis("permute", axes[at(i)], rank);
    if ((seen & (1u << axis)) != 0) {
      throw ShapeError(fmt::format("[permute] axis {} is repeated in {}", axis, to_string(axes)));
    }
    seen |= 1u << axis;
    order.push_back(axis);
    extents[at(i)] = x.shape()[axis];
    strides[at(i)] = x.shape().stride(axis);
  }
  return make_view(kPermute, x, Shape(first(extents, rank), first(strides, rank)), 0, order);
}

Value transpose(const Value& x, std::int64_t axis0, std::int64_t axis1) {
  const int rank = x.rank();
  Extents axes{0, 1, 2, 3};
  std::swap(axes[at(normalize_axis("transpose", axis0, rank))],
            axes[at(normalize_axis("transpose", axis1, rank))]);
  return permute(x, first(axes, rank));
}

Value squeeze(const Value& x, std::int64_t axis) {
  const int removed = normalize_axis("squeeze", axis, x.rank());
  if (x.shape()[removed] != 1) return x;
  Extents extents{};
  int rank = 0;
  for (int i = 0; i < x.rank(); ++i) {
    if (i != removed) extents[at(rank++)] = x.shape()[i];
  }
  return reshape(x, first(extents, rank));
}

Value unsqueeze(const Value& x, std::int64_t axis) {
  if (x.rank() == kMaxDims) {
    throw ShapeError(
        fmt::format("[unsqueeze] rank {} exceeds kMaxDims={}", kMaxDims + 1, kMaxDims));
  }
  const int added = normalize_axis("unsqueeze", axis, x.rank() + 1);
  Extents extents{};
  for (int i = 0, from = 0; i <= x.rank(); ++i) extents[at(i)] = i == added ? 1 : x.shape()[from++];
  return reshape(x, first(extents, x.rank() + 1));
}

Value broadcast_to(const Value& x, Axes extents, const char* op) {
  const int rank = static_cast<int>(extents.size());
  if (rank > kMaxDims) {
    throw ShapeError(fmt::format("[{}] rank {} exceeds kMaxDims={}", op, rank, kMaxDims));
  }
  if (std::ranges::equal(extents, x.shape().extents())) return x;
  Extents strides{};
  const int added = rank - x.rank();
  bool fits = added >= 0;
  for (int axis = std::max(added, 0); fits && axis < rank; ++axis) {
    const std::int64_t extent = x.shape()[axis - added];
    fits = extent == extents[at(axis)] || extent == 1;
    strides[at(axis)] = extent == extents[at(axis)] ? x.shape().stride(axis - added) : 0;
  }
  if (!fits) {
    throw ShapeError(
        fmt::format("[{}] shape {} does not broadcast to {}. Extents must be equal, or 1 in the "
                    "shape that is broadcast",
                    op, x.shape().to_string(), to_string(extents)));
  }
  // The dense shape checks that the extents are possible.
  const Shape dense(extents, x.dtype(), op);
  return make_view(kBroadcast, x, Shape(extents, first(strides, rank)), 0);
}

Value slice(const Value& x, std::int64_t axis, std::optional<std::int64_t> start,
            std::optional<std::int64_t> stop, std::int64_t step) {
  const int sliced = normalize_axis("slice", axis, x.rank());
  if (step == 0) throw ArgumentError("[slice] the step is 0");
  const std::int64_t extent = x.shape()[sliced];
  const auto resolve = [&](std::int64_t bound) {
    if (bound < 0) bound += extent;
    return std::clamp<std::int64_t>(bound, step > 0 ? 0 : -1, step > 0 ? extent : extent - 1);
  };
  const std::int64_t begin = start ? resolve(*start) : (step > 0 ? 0 : extent - 1);
  const std::int64_t end = stop ? resolve(*stop) : (step > 0 ? extent : -1);
  const std::int64_t span = step > 0 ? end - begin : begin - end;
  // A step of -2^63 has no negative: counted by its quotient.
  const std::int64_t count = span <= 0 ? 0 : std::abs((span - 1) / step) + 1;
  if (begin == 0 && step == 1 && count == extent) return x;

  Extents extents{};
  Extents strides{};
  const Shape dense(x.shape().extents(), x.dtype());
  const auto element = static_cast<std::int64_t>(size_of(x.dtype()));
  const std::int64_t first_index = count == 0 ? 0 : begin;
  Attributes window{first_index * dense.stride(sliced) / element};
  for (int i = 0; i < x.rank(); ++i) {
    const bool here = i == sliced;
    extents[at(i)] = here ? count : x.shape()[i];
    strides[at(i)] = x.shape().stride(i) * (here && count > 1 ? step : 1);
    window.push_back(dense.stride(i) / element * (here && count > 1 ? step : 1));
  }
  return make_view(kSlice, x, Shape(first(extents, x.rank()), first(strides, x.rank())),
                   first_index * x.shape().stride(sliced), window);
}

Value select_index(const char* op, const Value& x, std::int64_t axis, std::int64_t index) {
  const int selected = normalize_axis(op, axis, x.rank());
  const std::int64_t extent = x.shape()[selected];
  const std::int64_t resolved = index < 0 ? index + extent : index;
  if (resolved < 0 || resolved >= extent) {
    throw IndexError(fmt::format("[{}] index {} is out of bounds for axis {} of extent {}", op,
                                 index, selected, extent));
  }
  return squeeze(slice(x, selected, resolved, resolved + 1, 1), selected);
}

bool is_detach(const OpInfo& op) { return &op == &kDetach; }
Value detach(const Value& x) { return make_view(kDetach, x, x.shape(), 0); }

Value alias(const Value& x, std::uint32_t flags) {
  return make_view(kDetach, x, x.shape(), 0, {}, flags);
}

namespace {

/// The elements that a window shows of a dense base, shown of a base with any strides: a distance
/// in the dense base is so many steps along each of its axes.
Value replay_slice(const Value& base, Axes extents, const Window& window) {
  const Shape dense(base.shape().extents(), base.dtype());
  const auto element = static_cast<std::int64_t>(size_of(base.dtype()));
  const auto bytes_of = [&](std::int64_t distance) {
    std::int64_t bytes = 0;
    for (int axis = 0; axis < base.rank(); ++axis) {
      const std::int64_t unit = std::max<std::int64_t>(dense.stride(axis) / element, 1);
      bytes += base.shape().stride(axis) * (distance / unit);
      distance %= unit;
    }
    return bytes;
  };
  Attributes attributes{window.offset};
  Extents strides{};
  for (std::size_t axis = 0; axis < extents.size(); ++axis) {
    strides[axis] = bytes_of(window.strides[axis]);
    attributes.push_back(window.strides[axis]);
  }
  const Shape shape(extents, first(strides, static_cast<int>(extents.size())));
  return make_view(kSlice, base, shape, bytes_of(window.offset), attributes);
}

}  // namespace

Value replay_view(const OpInfo& op, const Attributes& attributes, Axes extents, const Value& base) {
  if (&op == &kReshape) return reshape(base, extents);
  if (&op == &kPermute) return permute(base, attributes.span());
  if (&op == &kBroadcast) return broadcast_to(base, extents);
  if (&op == &kSlice) return replay_slice(base, extents, window_of(attributes));
  return detach(base);
}

Value batch_view(const Node& view, const Value& base) {
  Extents extents{};
  extents[0] = base.shape()[0];
  const int rank = view.shape().rank() + 1;
  for (int axis = 1; axis < rank; ++axis) extents[at(axis)] = view.shape()[axis - 1];
  const auto wanted = first(extents, rank);
  const OpInfo& op = view.op();
  if (&op == &kReshape) return reshape(base, wanted);
  if (&op == &kPermute) {
    Extents axes{};
    for (int axis = 1; axis < rank; ++axis) axes[at(axis)] = view.attributes()[axis - 1] + 1;
    return permute(base, first(axes, rank));
  }
  if (&op == &kBroadcast) {
    // The axes that broadcasting adds come behind the batch.
    Extents old{};
    for (int axis = 0; axis < rank; ++axis) old[at(axis)] = 1;
    old[0] = extents[0];
    const int added = rank - base.rank();
    for (int axis = 1; axis < base.rank(); ++axis) old[at(axis + added)] = base.shape()[axis];
    return broadcast_to(reshape(base, first(old, rank)), wanted);
  }
  if (&op == &kSlice) {
    Window window = window_of(view.attributes());
    std::ranges::copy_backward(window.strides.begin(), window.strides.end() - 1,
                               window.strides.end());
    window.strides[0] = view.source(0)->numel();
    return view_window(base, wanted, window);
  }
  return detach(base);
}

Value contiguous(const Value& x) {
  const bool dense = x.shape().is_contiguous(size_of(x.dtype()));
  return dense ? x : copy(x);
}

Value copy(const Value& x) {
  return record(kCopy, {x.node()}, x.shape().extents(), x.dtype(), x.device());
}

Value view_window(const Value& base, Axes extents, const Window& window) {
  const Value dense = contiguous(base);
  const auto element = static_cast<std::int64_t>(size_of(base.dtype()));
  Attributes attributes{window.offset};
  Extents strides{};
  for (std::size_t axis = 0; axis < extents.size(); ++axis) {
    attributes.push_back(window.strides[axis]);
    strides[axis] = window.strides[axis] * element;
  }
  return make_view(kSlice, dense, Shape(extents, first(strides, static_cast<int>(extents.size()))),
                   window.offset * element, attributes);
}

Value with_gradient(const OpInfo& op, const Value& value, std::span<const Value> inputs,
                    const Attributes& attributes,
                    std::shared_ptr<const GradientFunction> function) {
  SourceList sources{value.node()};
  for (const Value& input : inputs) sources.push_back(input.node());
  NodeSpec spec;
  spec.op = &op;
  spec.attributes = attributes;
  spec.gradient_function = std::move(function);
  spec.dtype = value.dtype();
  spec.device = value.device();
  spec.shape = value.shape();
  const NodePtr& base = value.node();
  spec.view_src = base->share_view_src();
  spec.offset = spec.view_src ? base->view_offset() : 0;
  if (!spec.view_src) spec.view_src = base;
  if (is_floating(value.dtype()) && any_requires_grad(sources)) spec.flags |= kFlagRequiresGrad;
  return Value(make_node(std::move(spec), std::move(sources)));
}

}  // namespace vkml::graph
