#include "vkml/api/plan.h"

#include <utility>

#include "runtime.h"
#include "vkml/graph/node_index.h"
#include "vkml/graph/value.h"
#include "vkml/ops/gradient_reads.h"

namespace vkml {
namespace {

std::vector<graph::NodePtr> nodes_of(std::span<const Tensor> tensors) {
  register_backends();
  std::vector<graph::NodePtr> nodes;
  for (const Tensor& tensor : tensors) nodes.push_back(tensor.value().node());
  return nodes;
}

}  // namespace

PlanDescription describe(std::span<const Tensor> tensors) {
  return dispatch::describe(nodes_of(tensors));
}

std::string explain(const Tensor& tensor) {
  return dispatch::explain(nodes_of(std::span(&tensor, 1)));
}

std::vector<RuleReads> gradient_reads(std::span<const Tensor> tensors) {
  std::vector<RuleReads> found;
  graph::NodeIndex seen;
  std::vector<graph::NodePtr> waiting = nodes_of(tensors);
  while (!waiting.empty()) {
    const graph::NodePtr node = std::move(waiting.back());
    waiting.pop_back();
    if (seen.find(node.get()) >= 0) continue;
    seen.insert(node.get(), 0);
    const auto sources = node->sources();
    waiting.insert(waiting.end(), sources.begin(), sources.end());
    const bool has_rule = node->op().gradient != nullptr && node->gradient_function() == nullptr;
    if (!has_rule || sources.empty() || !node->requires_grad()) continue;
    found.push_back({node->op().name, sources.size(), ops::gradient_reads(node->op()),
                     ops::record_gradient_reads(node)});
  }
  return found;
}

}  // namespace vkml
