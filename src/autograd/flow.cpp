// An iterative depth-first search along the sources that require a gradient.

#include "flow.h"

namespace vkml::autograd {

using graph::Node;
using graph::NodeIndex;
using graph::NodePtr;
using graph::Value;

bool is_end(const Node& node, const NodeIndex& inputs) {
  return node.is_gradient_stop() || inputs.find(&node) >= 0;
}

Flow flow_to(std::span<const Value> outputs, const NodeIndex& inputs) {
  Flow flow;
  NodeIndex seen;
  struct Frame {
    NodePtr node;
    std::size_t next = 0;
    bool is_output = false;
  };
  std::vector<Frame> stack;
  const auto visit = [&](const NodePtr& node, bool is_output) {
    const bool wanted = node->requires_grad() || inputs.find(node.get()) >= 0;
    if (!wanted || seen.find(node.get()) >= 0) return;
    seen.insert(node.get(), 0);
    stack.push_back({node, 0, is_output});
  };
  for (const Value& output : outputs) {
    visit(output.node(), true);
    while (!stack.empty()) {
      const std::size_t top = stack.size() - 1;
      const NodePtr node = stack[top].node;
      const auto sources = node->sources();
      const bool enter = stack[top].is_output ? !node->is_gradient_stop() : !is_end(*node, inputs);
      if (enter && stack[top].next < sources.size()) {
        visit(sources[stack[top].next++], false);
        continue;
      }
      flow.index.insert(node.get(), static_cast<int>(flow.nodes.size()));
      flow.nodes.push_back(node);
      stack.pop_back();
    }
  }
  return flow;
}

bool has_rule(const Node& node) {
  return node.gradient_function() != nullptr || node.op().gradient != nullptr;
}

void apply_rule(const NodePtr& node, const Value& gradient, std::span<Value> gradients) {
  if (node->gradient_function()) {
    (*node->gradient_function())(Value(node), gradient, gradients);
  } else {
    node->op().gradient(Value(node), gradient, gradients);
  }
}

}  // namespace vkml::autograd
