// Walks over graphs. All are iterative: a graph may be a chain of a million nodes.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "vkml/graph/node.h"

namespace vkml::graph {

/// Positions of nodes: an open-addressing table from node to index, the side table that pass results
/// are keyed by.
class NodeIndex {
 public:
  explicit NodeIndex(std::size_t expected = 64);
  /// The node's position, or -1.
  int find(const Node* node) const;
  /// Inserts a new node.
  void insert(const Node* node, int position);
  std::size_t size() const { return size_; }

 private:
  struct Entry {
    const Node* node = nullptr;
    int position = -1;
  };
  std::size_t slot_of(const Node* node) const;
  void grow();
  std::vector<Entry> entries_;
  std::size_t size_ = 0;
};

/// Nodes reachable from the roots, sources before users, each once. `enter` decides whether the walk
/// continues below a node (a node that is not entered is still listed).
struct Order {
  std::vector<Node*> nodes;
  NodeIndex index;
};
Order topological_order(std::span<const NodePtr> roots, bool (*enter)(const Node&));

}  // namespace vkml::graph
