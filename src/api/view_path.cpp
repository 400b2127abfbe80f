#include "view_path.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "vkml/core/error.h"
#include "vkml/ops/overlap.h"

namespace vkml {
namespace {

using graph::Family;
using graph::Node;
using graph::NodePtr;
using graph::Value;

std::size_t at(int axis) { return static_cast<std::size_t>(axis); }

std::span<const std::int64_t> extents_of(const ViewPath& path) {
  return {path.extents.data(), at(path.rank)};
}

/// The shape of what the path shows of a dense value.
Shape shape_of(const ViewPath& path, DType dtype) {
  std::array<std::int64_t, kMaxDims> strides{};
  for (int axis = 0; axis < path.rank; ++axis) {
    strides[at(axis)] = path.window.strides[at(axis)] * static_cast<std::int64_t>(size_of(dtype));
  }
  return {extents_of(path), std::span<const std::int64_t>(strides.data(), at(path.rank))};
}

ViewPath path_of(const Shape& shape, const graph::Window& window, bool is_detached) {
  ViewPath path;
  path.rank = shape.rank();
  std::ranges::copy(shape.extents(), path.extents.begin());
  path.window = window;
  path.is_detached = is_detached;
  return path;
}

/// Whether elements lie at the same distances: those of an axis of extent 1 say nothing.
bool same_layout(const Shape& a, const Shape& b) {
  for (int axis = 0; axis < a.rank(); ++axis) {
    if (a[axis] > 1 && a.stride(axis) != b.stride(axis)) return false;
  }
  return true;
}

/// The nodes from `base`, which is not among them, to `view`; none where they do not reach it.
std::vector<const Node*> views_between(const Node* view, const Node* base) {
  std::vector<const Node*> views;
  for (; view != base; view = view->source(0).get()) {
    if (view->family() != Family::kView) return {};
    views.push_back(view);
    if (view->sources().empty()) return {};
  }
  std::ranges::reverse(views);
  return views;
}

}  // namespace

Value ViewPath::taken_of(const Value& whole) const {
  // A repeated element gets the sum of its gradients: that is what broadcasting does.
  std::array<std::int64_t, kMaxDims> once = extents;
  for (int axis = 0; axis < rank; ++axis) {
    if (window.strides[at(axis)] == 0 && extents[at(axis)] > 1) once[at(axis)] = 1;
  }
  const Value shown =
      shows_all(whole.shape())
          ? whole
          : graph::broadcast_to(graph::view_window(whole, std::span(once).first(at(rank)), window),
                                extents_of(*this));
  return is_detached ? graph::detach(shown) : shown;
}

Value ViewPath::replaced_in(const Value& whole, const Value& value) const {
  const Shape shape = shape_of(*this, whole.dtype());
  for (int axis = 0; axis < rank; ++axis) {
    if (shape.stride(axis) != 0 || shape[axis] < 2) continue;
    throw ArgumentError(
        fmt::format("[assign_] a broadcast view of shape {} shows one element {} times along axis "
                    "{}. Write to what it was broadcast from, or to a copy: x.clone()",
                    shape.to_string(), shape[axis], axis));
  }
  if (graph::may_overlap(shape)) {
    throw ArgumentError(
        fmt::format("[assign_] windows of shape {} show some elements several times. Write to what "
                    "they were taken of, or to a copy: x.clone()",
                    shape.to_string()));
  }
  // What replaces all of a value does not read it: assigning cures one that cannot be computed.
  if (shape.is_contiguous(size_of(whole.dtype())) && shape.numel() == whole->numel()) {
    return graph::reshape(value, whole.shape().extents());
  }
  return graph::view_update(graph::contiguous(whole), value, window);
}

bool ViewPath::shows_all(const Shape& whole) const {
  return std::ranges::equal(extents_of(*this), whole.extents()) &&
         shape_of(*this, DType::kU8).is_contiguous(1);
}

std::optional<ViewPath> path_to(const Value& view, const NodePtr& base, const ViewPath* base_path,
                                const Shape& root) {
  const std::vector<const Node*> views = views_between(view.node().get(), base.get());
  if (views.empty()) return std::nullopt;
  const bool is_detached =
      (base_path != nullptr && base_path->is_detached) ||
      std::ranges::any_of(views, [](const Node* node) { return graph::is_detach(node->op()); });
  const DType dtype = view.dtype();
  const auto element = static_cast<std::int64_t>(size_of(dtype));
  const Shape dense =
      base_path != nullptr ? shape_of(*base_path, dtype) : Shape(base->shape().extents(), dtype);
  if (same_layout(base->shape(), dense)) {
    const std::int64_t start = view->view_src() == base ? 0 : base->view_offset();
    graph::Window window;
    window.offset = (view->view_offset() - start) / element;
    if (base_path != nullptr) window.offset += base_path->window.offset;
    for (int axis = 0; axis < view.rank(); ++axis) {
      window.strides[at(axis)] = view.shape().stride(axis) / element;
    }
    return path_of(view.shape(), window, is_detached);
  }
  // The tensor does not lie densely, so the views are taken of one that does.
  const graph::GradientMode mode(false);
  const Value whole = graph::full(root.extents(), 0, dtype, view.device());
  const Value copy = graph::copy(whole);
  Value taken = base_path != nullptr ? base_path->taken_of(copy) : copy;
  for (const Node* node : views) {
    taken = graph::replay_view(node->op(), node->attributes(), node->shape().extents(), taken);
  }
  if (taken->view_src() != copy.node()) return std::nullopt;
  return path_of(view.shape(), graph::window_between(copy, taken), is_detached);
}

}  // namespace vkml
