// backward() and gradients() on tensors: the graph's backward pass, then one submission.

#include <algorithm>
#include <utility>

#include "pending_assignments.h"
#include "realize.h"
#include "record_tensor.h"
#include "runtime.h"
#include "slot.h"
#include "vkml/api/tensor.h"
#include "vkml/autograd/backward.h"
#include "vkml/dispatch/executor.h"
#include "vkml/ops/functions.h"

namespace vkml {
namespace {

using graph::NodePtr;
using graph::Value;

Value seed_gradient(const Value& output, const Tensor& gradient) {
  const bool is_given = gradient.is_defined();
  return autograd::seed_gradient(output,
                                 is_given ? on_device(gradient.value(), output.device()) : Value());
}

/// Gradients that a failed submission did not deliver are taken back.
class GradientRollback {
 public:
  void remember(const std::shared_ptr<LeafGradient>& leaf) {
    before_.emplace_back(leaf, leaf->current());
  }
  void undo() {
    for (auto entry = before_.rbegin(); entry != before_.rend(); ++entry)
      entry->first->set(entry->second);
  }

 private:
  std::vector<std::pair<std::shared_ptr<LeafGradient>, std::shared_ptr<Slot>>> before_;
};

}  // namespace

void Tensor::backward(const Tensor& gradient, bool retain_graph, bool create_graph) const {
  register_backends();
  const Value output = value();
  const dispatch::GraphLock lock(output.device());
  const autograd::BackwardPass pass =
      autograd::backward(output, seed_gradient(output, gradient), create_graph);
  const bool retain = retain_graph || create_graph;
  GradientRollback rollback;
  std::vector<NodePtr> roots{output.node()};
  const PendingAssignments assigned = take_pending_assignments(output.node());
  try {
    for (const auto& [leaf, leaf_gradient] : pass.leaves) {
      const auto sink = std::dynamic_pointer_cast<LeafGradient>(leaf->sink().lock());
      if (!sink) continue;
      rollback.remember(sink);
      sink->accumulate(leaf_gradient);
      roots.push_back(node_of(sink->current()));
    }
    roots.insert(roots.end(), assigned.sharing.begin(), assigned.sharing.end());
    realize_by_device(roots, {.keep_for_backward = retain});
  } catch (...) {
    rollback.undo();
    for (const auto* list : {&assigned.sharing, &assigned.others}) {
      for (const NodePtr& node : *list) add_pending_assignment(node);
    }
    throw;
  }
  if (!retain) autograd::release(pass.visited);
  realize_quietly(assigned.others);
}

std::vector<Tensor> gradients(const Tensor& output, std::span<const Tensor> inputs,
                              const Tensor& gradient, bool retain_graph, bool create_graph) {
  register_backends();
  const Value value = output.value();
  const dispatch::GraphLock lock(value.device());
  std::vector<Value> wanted;
  for (const Tensor& input : inputs) wanted.push_back(input.value());
  std::vector<NodePtr> visited;
  const std::vector<Value> found =
      autograd::gradients(value, seed_gradient(value, gradient), wanted, create_graph, &visited);
  std::vector<Tensor> results;
  std::vector<NodePtr> roots{value.node()};
  for (const Value& each : found) {
    results.push_back(each ? Tensor(each) : Tensor());
    if (each) roots.push_back(each.node());
  }
  if (create_graph) return results;
  realize_by_device(roots, {.keep_for_backward = retain_graph});
  if (!retain_graph) autograd::release(visited);
  return results;
}

}  // namespace vkml
