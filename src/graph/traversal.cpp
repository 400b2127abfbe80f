#include "vkml/graph/traversal.h"

#include <bit>
#include <utility>

namespace vkml::graph {

NodeIndex::NodeIndex(std::size_t expected) : entries_(std::bit_ceil(expected * 2)) {}

std::size_t NodeIndex::slot_of(const Node* node) const {
  const std::size_t mask = entries_.size() - 1;
  // Fibonacci hashing: node addresses share their low bits.
  std::size_t slot =
      static_cast<std::size_t>((reinterpret_cast<std::uintptr_t>(node) * 0x9e3779b97f4a7c15u) >> 32) &
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

Order topological_order(std::span<const NodePtr> roots, bool (*enter)(const Node&)) {
  constexpr int kOpen = -2;  // on the stack, not yet listed
  Order order;
  struct Frame {
    Node* node;
    std::size_t next;
  };
  std::vector<Frame> stack;
  NodeIndex seen;
  const auto visit = [&](Node* node) {
    if (seen.find(node) != -1) return;
    seen.insert(node, kOpen);
    stack.push_back({node, 0});
  };
  for (const NodePtr& root : roots) {
    visit(root.get());
    while (!stack.empty()) {
      Frame& frame = stack.back();
      const auto sources = frame.node->sources();
      if (frame.next < sources.size() && enter(*frame.node)) {
        visit(sources[frame.next++].get());
        continue;
      }
      order.index.insert(frame.node, static_cast<int>(order.nodes.size()));
      order.nodes.push_back(frame.node);
      stack.pop_back();
    }
  }
  return order;
}

}  // namespace vkml::graph
