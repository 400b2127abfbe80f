#include "pending_assignments.h"

#include <mutex>
#include <optional>
#include <utility>

#include "vkml/graph/node_index.h"

namespace vkml {
namespace {

using graph::Node;
using graph::NodeIndex;
using graph::NodePtr;

struct List {
  std::mutex mutex;
  std::vector<std::weak_ptr<Node>> nodes;
};
List& list() {
  static auto* instance = new List;
  return *instance;
}

bool is_pending(const NodePtr& node) { return node && node->has_slot() && !node->is_computed(); }

std::vector<NodePtr> take(std::optional<Device> device) {
  List& pending = list();
  std::vector<NodePtr> held;  // perhaps by nobody else any more: destroyed after the lock is
  std::vector<NodePtr> taken;
  const std::scoped_lock lock(pending.mutex);
  std::erase_if(pending.nodes, [&](const auto& weak) {
    const NodePtr& node = held.emplace_back(weak.lock());
    if (!is_pending(node)) return true;
    if (device && node->device() != *device) return false;
    taken.push_back(node);
    return true;
  });
  return taken;
}

/// Walks the values below `root` that are not computed. Stops, and says so, at one in `wanted`.
bool meets(const Node* root, const NodeIndex& wanted, NodeIndex& seen) {
  std::vector<const Node*> stack{root};
  while (!stack.empty()) {
    const Node* node = stack.back();
    stack.pop_back();
    if (node->is_computed() || seen.find(node) >= 0) continue;
    if (wanted.find(node) >= 0) return true;
    seen.insert(node, 0);
    for (const NodePtr& source : node->sources()) stack.push_back(source.get());
  }
  return false;
}

}  // namespace

void add_pending_assignment(const NodePtr& node) {
  List& pending = list();
  std::vector<NodePtr> held;
  const std::scoped_lock lock(pending.mutex);
  constexpr std::size_t kTidyAbove = 1024;
  if (pending.nodes.size() > kTidyAbove) {
    std::erase_if(pending.nodes,
                  [&](const auto& weak) { return !is_pending(held.emplace_back(weak.lock())); });
  }
  pending.nodes.push_back(node);
}

std::vector<NodePtr> take_all_pending_assignments() { return take({}); }

PendingAssignments take_pending_assignments(const NodePtr& output) {
  PendingAssignments found;
  std::vector<NodePtr> taken = take(output->device());
  if (taken.empty()) return found;
  NodeIndex needed;
  meets(output.get(), NodeIndex(), needed);
  for (NodePtr& node : taken) {
    NodeIndex seen;
    (meets(node.get(), needed, seen) ? found.sharing : found.others).push_back(std::move(node));
  }
  return found;
}

}  // namespace vkml
