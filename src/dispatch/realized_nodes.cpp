#include "realized_nodes.h"

#include <utility>

namespace vkml::dispatch {

using graph::Node;
using graph::NodePtr;

const Node& storage_owner(const Node& node) { return node.is_computed() ? node : *node.view_src(); }

std::int64_t offset_of(const Node& node) {
  return node.is_computed() ? node.storage_offset()
                            : node.view_src()->storage_offset() + node.view_offset();
}

void finish_node(Node& node, StoragePtr storage, std::int64_t offset) {
  const std::shared_ptr<Submission> writer = storage->writer();
  const bool may_fail = writer && writer->may_fail();
  node.bind(std::move(storage), offset);
  node.mark_computed(may_fail);
  if (!node.requires_grad() || node.is_gradient_stop() || node.is_released())
    node.release_sources();
}

std::vector<NodePtr> bind_ready_views(std::span<const NodePtr> roots) {
  std::vector<NodePtr> pending;
  for (const NodePtr& root : roots) {
    if (root->is_computed()) continue;
    if (root->is_view() && root->view_src()->is_computed()) {
      const NodePtr owner = root->view_src();
      finish_node(*root, owner->storage(), owner->storage_offset() + root->view_offset());
    } else {
      pending.push_back(root);
    }
  }
  return pending;
}

void finish_results(const Schedule& schedule, std::span<const int> results,
                    std::span<const ResultPlace> places) {
  std::vector<NodePtr> nodes;
  std::vector<NodePtr> views;
  for (const int position : results) nodes.push_back(schedule[position].node->shared_from_this());
  for (const Step& step : schedule.steps) {
    if (step.role == Role::kAlias && step.kept) views.push_back(step.node->shared_from_this());
  }
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    finish_node(*nodes[i], places[i].storage, places[i].offset);
  }
  for (const NodePtr& view : views) {
    const NodePtr root = view->view_src();
    finish_node(*view, root->storage(), root->storage_offset() + view->view_offset());
  }
}

}  // namespace vkml::dispatch
