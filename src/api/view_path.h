// From a tensor to a view of it, in one step however many views lie between: what the view shows of
// the tensor's elements in row-major order. It is taken again when the tensor has a new value.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "vkml/ops/functions.h"

namespace vkml {

struct ViewPath {
  std::array<std::int64_t, kMaxDims> extents{};
  int rank = 0;
  graph::Window window;
  bool is_detached = false;  // no gradient goes back to the tensor

  /// What it shows of this value; dense memory is made of a value that has none.
  graph::Value taken_of(const graph::Value& whole) const;
  /// `whole` with what it shows replaced. Throws ArgumentError where it shows an element twice.
  graph::Value replaced_in(const graph::Value& whole, const graph::Value& value) const;
  /// Whether it shows all of a tensor of these extents, as it is.
  bool shows_all(const Shape& whole) const;
};

/// The path to `view`, which was just recorded as one view or more of the node that `base` shows;
/// `base_path` leads to that one, null for a tensor that is no view. None where `view` has memory
/// of its own, or would have if the tensor lay densely.
std::optional<ViewPath> path_to(const graph::Value& view, const graph::NodePtr& base,
                                const ViewPath* base_path, const Shape& root);

}  // namespace vkml
