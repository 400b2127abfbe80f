// The side table of graph passes: positions of nodes in the order of a walk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "vkml/graph/node.h"

namespace vkml::graph {

/// Positions of nodes: an open-addressing table from node to index, the side table that pass
/// results are keyed by.
class NodeIndex {
 public:
  explicit NodeIndex(std::size_t expected = 64);
  /// The node's position, or -1.
  int find(const Node* node) const;
  /// Inserts a new node.
  void insert(const Node* node, int position);
  /// Moves a node that is there.
  void update(const Node* node, int position) { entries_[slot_of(node)].position = position; }
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

}  // namespace vkml::graph
