// Whether a computed value may be overwritten where it lies: the one rule for assignments, recorded
// steps and their replays.
#pragma once

#include "vkml/graph/node.h"

namespace vkml::dispatch {

/// Whether a computed node's block belongs to it alone: no other node lies there, and nobody
/// outside the graph reads it.
inline bool owns_block(const graph::Node& node) {
  return node.storage().use_count() == 1 && !node.storage()->is_exported();
}

/// Whether a computed value is nobody else's either: its node has no more references than the
/// `known` ones, which the caller's own is among.
inline bool is_exclusive(const graph::NodePtr& node, long known) {
  return node.use_count() <= known && owns_block(*node);
}

}  // namespace vkml::dispatch
