// What joins is found by looking at the parts alone, so that it works for whatever rule gave them.
// Nodes that somebody holds, watches or has computed are added as they are.

#include "gradient_sum.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "vkml/ops/core_kind.h"
#include "vkml/ops/functions.h"
#include "vkml/ops/scalar_program.h"

namespace vkml::autograd {
namespace {

using graph::Family;
using graph::Node;
using graph::Value;

/// Elements up to which starting a kernel costs as much as copying them.
constexpr std::int64_t kFewElements = std::int64_t{1} << 16;

std::size_t at(int index) { return static_cast<std::size_t>(index); }

const Node& root_of(const Value& value) {
  return value->is_view() ? *value->view_src() : *value.node();
}

/// Whether nothing but the pass knows the node, which is not computed yet.
bool is_replaceable(const Node& node) {
  return !node.is_computed() && !node.is_released() && !node.has_slot() && !node.hooks();
}

bool is_zeros(const Value& value) {
  const Node& root = root_of(value);
  return root.family() == Family::kScalar &&
         graph::origin_of(root).source == graph::NumberSource::kConstant &&
         graph::scalar_number(root) == 0.0;
}

/// Whether the value is all of its root's elements, in their order.
bool shows_all_of_root(const Value& value) {
  if (!value->is_view()) return true;
  return value->view_offset() == 0 && value->numel() == root_of(value).numel() &&
         value.shape().is_contiguous(size_of(value.dtype()));
}

/// A gradient that is zero outside a run of indices of one axis.
struct Slab {
  int axis = 0;
  std::int64_t start = 0;
  std::int64_t count = 0;
  std::size_t part = 0;
  Value value;
};

std::optional<Slab> slab_of(const Value& part) {
  const Node& node = *part.node();
  if (node.family() != Family::kViewUpdate || !is_replaceable(node)) return std::nullopt;
  if (!is_zeros(Value(node.source(0)))) return std::nullopt;
  const Value value(node.source(1));
  if (value.rank() != part.rank() || value->numel() == 0) return std::nullopt;
  Slab slab{-1, 0, 0, 0, value};
  for (int axis = 0; axis < part.rank(); ++axis) {
    const std::int64_t unit =
        part.shape().stride(axis) / static_cast<std::int64_t>(size_of(part.dtype()));
    if (value.shape()[axis] != 1 && node.attributes()[axis + 1] != unit) return std::nullopt;
    if (value.shape()[axis] == part.shape()[axis]) continue;
    if (slab.axis >= 0 || node.attributes()[0] % unit != 0) return std::nullopt;
    slab.axis = axis;
    slab.start = node.attributes()[0] / unit;
    slab.count = value.shape()[axis];
  }
  const bool is_inside =
      slab.axis >= 0 && slab.start >= 0 && slab.start + slab.count <= part.shape()[slab.axis];
  return is_inside ? std::optional(slab) : std::nullopt;
}

/// Slabs of one axis, none of which overlaps another, in their order; zeros where there is none.
std::vector<Value> filled(std::span<const Slab> slabs, const Shape& whole) {
  std::vector<Value> pieces;
  std::vector<std::int64_t> extents(whole.extents().begin(), whole.extents().end());
  std::int64_t end = 0;
  const auto fill_to = [&](std::int64_t start) {
    if (start == end) return;
    extents[at(slabs[0].axis)] = start - end;
    pieces.push_back(graph::full(extents, 0, slabs[0].value.dtype(), slabs[0].value.device()));
  };
  for (const Slab& slab : slabs) {
    fill_to(slab.start);
    pieces.push_back(slab.value);
    end = slab.start + slab.count;
  }
  fill_to(whole[slabs[0].axis]);
  return pieces;
}

/// A product of two matrices that a gradient shows as it is, or transposed.
struct Product {
  Value a, b;
};

std::optional<Product> product_of(const Value& part, bool transposed,
                                  graph::MatmulPrecision precision) {
  const Node& root = root_of(part);
  if (ops::core_of(root.op()) != ops::CoreKind::kMatmul || root.shape().rank() != 2 ||
      part.rank() != 2 || !is_replaceable(root) || graph::precision_of_product(root) != precision) {
    return std::nullopt;
  }
  if (part->is_view() && part->view_offset() != 0) return std::nullopt;
  const Shape& shown = part.shape();
  for (int axis = 0; axis < 2; ++axis) {
    const int own = transposed ? 1 - axis : axis;
    if (shown[axis] != root.shape()[own] || shown.stride(axis) != root.shape().stride(own)) {
      return std::nullopt;
    }
  }
  // Putting the operands side by side has to cost less than adding to the result.
  const std::int64_t inner = root.source(0)->shape()[1];
  if (inner * (shown[0] + shown[1]) > shown[0] * shown[1]) return std::nullopt;
  return Product{Value(root.source(0)), Value(root.source(1))};
}

/// The rows that a gradient is the sum of.
std::optional<Value> summed_rows(const Value& part) {
  const Node& root = root_of(part);
  const bool is_sum =
      root.family() == Family::kReduce && root.op().id == static_cast<int>(ops::ReduceKind::kSum);
  if (!is_sum || !is_replaceable(root) || !shows_all_of_root(part)) return std::nullopt;
  const Value rows(root.source(0));
  if (rows.dtype() != part.dtype() || rows->numel() > kFewElements) return std::nullopt;
  return rows;
}

bool has_transposed_rows(const Value& matrix) {
  const auto element = static_cast<std::int64_t>(size_of(matrix.dtype()));
  return matrix.rank() == 2 && matrix.shape().stride(0) == element &&
         matrix.shape().stride(1) != element;
}

/// Replaces what `taken` marks by one part in front of the others.
void replace(std::vector<Value>& parts, const std::vector<bool>& taken, Value joined) {
  std::vector<Value> left{std::move(joined)};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (!taken[i]) left.push_back(std::move(parts[i]));
  }
  parts = std::move(left);
}

}  // namespace

std::vector<Value> ArrivingGradients::take() {
  std::vector<Value> parts = std::exchange(others_, {});
  parts.insert(parts.begin(), std::exchange(first_, Value()));
  return parts;
}

Value ArrivingGradients::take_single() {
  return others_.empty() ? std::exchange(first_, Value()) : Value();
}

Value GradientSum::of(std::vector<Value> parts) {
  if (parts.size() > 1) join_windows(parts);
  // Derivatives of these gradients would have to pass through the views that are looked through.
  if (!graph::grad_enabled()) {
    for (const bool transposed : {false, true}) {
      if (parts.size() > 1) join_products(parts, transposed);
    }
    if (parts.size() > 1) join_row_sums(parts);
  }
  Value total = parts[0];
  for (std::size_t i = 1; i < parts.size(); ++i) total = graph::add(total, parts[i]);
  return total;
}

void GradientSum::join_windows(std::vector<Value>& parts) {
  std::vector<Slab> slabs;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    std::optional<Slab> slab = slab_of(parts[i]);
    if (!slab || (!slabs.empty() && slab->axis != slabs[0].axis)) continue;
    slab->part = i;
    slabs.push_back(std::move(*slab));
  }
  std::ranges::stable_sort(slabs, {}, &Slab::start);
  // Of windows that overlap, those that begin first.
  std::vector<Slab> apart;
  std::vector<bool> taken(parts.size());
  for (Slab& slab : slabs) {
    if (!apart.empty() && slab.start < apart.back().start + apart.back().count) continue;
    taken[slab.part] = true;
    apart.push_back(std::move(slab));
  }
  if (apart.size() < 2) return;
  const std::vector<Value> pieces = filled(apart, parts[0].shape());
  replace(parts, taken, join(pieces, apart[0].axis));
}

void GradientSum::join_products(std::vector<Value>& parts, bool transposed) {
  std::vector<Value> left, right;
  std::vector<bool> taken(parts.size());
  std::optional<graph::MatmulPrecision> precision;
  // The first to arrive is of the last use: from behind, the order is that of the uses.
  for (std::size_t i = parts.size(); i-- > 0;) {
    const Node& root = root_of(parts[i]);
    if (ops::core_of(root.op()) != ops::CoreKind::kMatmul) continue;
    if (!precision) precision = graph::precision_of_product(root);
    std::optional<Product> product = product_of(parts[i], transposed, *precision);
    if (!product) continue;
    taken[i] = true;
    left.push_back(std::move(product->a));
    right.push_back(std::move(product->b));
  }
  if (left.size() < 2) return;
  const Value product = graph::matmul(join(left, 1), join(right, 0), *precision);
  replace(parts, taken, transposed ? graph::transpose(product, 0, 1) : product);
}

void GradientSum::join_row_sums(std::vector<Value>& parts) {
  std::vector<Value> rows;
  std::vector<bool> taken(parts.size());
  const Node* pattern = nullptr;
  for (std::size_t i = parts.size(); i-- > 0;) {
    std::optional<Value> summed = summed_rows(parts[i]);
    if (!summed) continue;
    const Node& root = root_of(parts[i]);
    if (pattern == nullptr) pattern = &root;
    const bool fits = root.attributes()[0] == pattern->attributes()[0] &&
                      summed->shape().same_extents(pattern->source(0)->shape());
    if (!fits) continue;
    taken[i] = true;
    rows.push_back(std::move(*summed));
  }
  if (rows.size() < 2) return;
  std::vector<std::int64_t> axes;
  for (int axis = 0; axis < rows[0].rank(); ++axis) {
    if (((pattern->attributes()[0] >> axis) & 1) != 0) axes.push_back(axis);
  }
  if (axes.empty()) return;
  const Shape shape = parts[0].shape();
  const Value total = graph::sum(join(rows, static_cast<int>(axes[0])), axes, false);
  replace(parts, taken, graph::reshape(total, shape.extents()));
}

Value GradientSum::join(std::span<const Value> parts, int axis) {
  if (graph::grad_enabled()) return graph::concat(parts, axis);
  if (std::ranges::all_of(parts, has_transposed_rows)) {
    std::vector<Value> dense;
    for (const Value& part : parts) dense.push_back(graph::transpose(part, 0, 1));
    return graph::transpose(join(dense, 1 - axis), 0, 1);
  }
  std::int64_t outer = 1;
  for (int i = 0; i < axis; ++i) outer *= parts[0].shape()[i];
  if (outer != 1 || !std::ranges::all_of(parts, shows_all_of_root)) {
    return graph::concat(parts, axis);
  }
  std::vector<const Node*> key;
  std::vector<std::int64_t> extents(parts[0].shape().extents().begin(),
                                    parts[0].shape().extents().end());
  extents[at(axis)] = 0;
  for (const Value& part : parts) {
    key.push_back(&root_of(part));
    extents[at(axis)] += part.shape()[axis];
  }
  Value& flat = side_by_side_[key];
  if (!flat) {
    std::vector<Value> lines;
    for (const Value& part : parts) {
      const std::int64_t count[] = {part->numel()};
      lines.push_back(graph::reshape(part, count));
    }
    flat = graph::concat(lines, 0);
  }
  return graph::reshape(flat, extents);
}

}  // namespace vkml::autograd
