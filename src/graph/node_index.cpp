#include "vkml/graph/node_index.h"

#include <bit>
#include <utility>

namespace vkml::graph {

NodeIndex::NodeIndex(std::size_t expected) : entries_(std::bit_ceil(expected * 2)) {}

std::size_t NodeIndex::slot_of(const Node* node) const {
  const std::size_t mask = entries_.size() - 1;
  // Fibonacci hashing: node addresses share their low bits.
  std::size_t slot = static_cast<std::size_t>(
                         (reinterpret_cast<std::uintptr_t>(node) * 0x9e3779b97f4a7c15u) >> 32) &
                     mask;
  while (entries_[slot].node != nullptr && entries_[slot].node != node) slot = (slot + 1) & mask;
  return slot;
}

int NodeIndex::find(const Node* node) const { return entries_[slot_of(node)].position; }

void NodeIndex::insert(const Node* node, int position) {
  if (size_ * 2 >= entries_.size()) grow();
  entries_[slot_of(node)] = {node, position};
  ++size_;
}

void NodeIndex::grow() {
  std::vector<Entry> old = std::exchange(entries_, std::vector<Entry>(entries_.size() * 2));
  for (const Entry& entry : old) {
    if (entry.node != nullptr) entries_[slot_of(entry.node)] = entry;
  }
}

}  // namespace vkml::graph
