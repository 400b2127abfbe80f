// Forward mode: tangents pushed through the graph, sources before users.
//
// There is one table of derivatives, that of gradient rules. An elementwise operator's rule for the
// gradient 1 is its derivative at each element, which multiplies the tangent. Any other rule is a
// linear function u -> J^T u of the arriving gradient; its own gradient, towards u and at the
// tangent, is J t. The u of this transposition is 1 everywhere: rules may write "0 where no
// gradient arrives", and must not do so here. Bound: two or three nodes for each node of the
// function.

#include "vkml/autograd/forward.h"

#include "flow.h"
#include "vkml/autograd/backward.h"
#include "vkml/ops/functions.h"

namespace vkml::autograd {
namespace {

using graph::Node;
using graph::NodeIndex;
using graph::NodePtr;
using graph::Value;

Value ones_like(const Node& node) {
  return graph::full(node.shape().extents(), 1, node.dtype(), node.device());
}

Value sum_of(const Value& sum, const Value& part) { return sum ? graph::add(sum, part) : part; }

bool is_pointwise(const Node& node) {
  if (node.family() != graph::Family::kElementwise) return false;
  for (const NodePtr& source : node.sources()) {
    if (!source->shape().same_extents(node.shape())) return false;
  }
  return true;
}

/// The derivative at each element times the tangent.
Value push_pointwise(const NodePtr& node, std::span<const Value> arriving, bool create_graph) {
  const graph::GradientMode mode(create_graph);
  std::vector<Value> derivatives(arriving.size());
  apply_rule(node, ones_like(*node), derivatives);
  Value tangent;
  for (std::size_t i = 0; i < arriving.size(); ++i) {
    if (arriving[i] && derivatives[i]) tangent = sum_of(tangent, derivatives[i] * arriving[i]);
  }
  return tangent;
}

/// The rule's transpose at the tangent.
Value push_transposed(const NodePtr& node, std::span<const Value> arriving, bool create_graph) {
  const Value arrived = graph::alias(ones_like(*node), graph::kFlagRequiresGrad);
  std::vector<Value> pulled(arriving.size());
  {
    const graph::GradientMode mode(true);
    apply_rule(node, arrived, pulled);
  }
  // The search for u ends at what the rule reads besides.
  std::vector<Value> ends{arrived, Value(node)};
  for (const NodePtr& source : node->sources()) ends.emplace_back(source);
  Value tangent;
  for (std::size_t i = 0; i < arriving.size(); ++i) {
    if (!arriving[i] || !pulled[i] || !pulled[i]->requires_grad()) continue;
    const Value part = gradients(pulled[i], arriving[i], ends, create_graph)[0];
    if (part) tangent = sum_of(tangent, part);
  }
  return tangent;
}

}  // namespace

std::vector<Value> tangents(std::span<const Value> outputs, std::span<const Value> inputs,
                            std::span<const Value> directions, bool create_graph) {
  NodeIndex wanted(inputs.size() + 1);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (wanted.find(inputs[i].node().get()) < 0)
      wanted.insert(inputs[i].node().get(), static_cast<int>(i));
  }
  const Flow flow = flow_to(outputs, wanted);
  std::vector<Value> found(flow.nodes.size());
  std::vector<Value> arriving;
  for (std::size_t i = 0; i < flow.nodes.size(); ++i) {
    const NodePtr& node = flow.nodes[i];
    const int input = wanted.find(node.get());
    if (input >= 0) {
      found[i] = directions[static_cast<std::size_t>(input)];
      continue;
    }
    if (node->is_gradient_stop() || !has_rule(*node)) continue;
    arriving.clear();
    bool any = false;
    for (const NodePtr& source : node->sources()) {
      const int position = flow.index.find(source.get());
      arriving.push_back(position < 0 ? Value() : found[static_cast<std::size_t>(position)]);
      any = any || arriving.back();
    }
    if (!any) continue;
    found[i] = is_pointwise(*node) ? push_pointwise(node, arriving, create_graph)
                                   : push_transposed(node, arriving, create_graph);
  }
  std::vector<Value> results;
  for (const Value& output : outputs) {
    const int position = flow.index.find(output.node().get());
    results.push_back(position < 0 ? Value() : found[static_cast<std::size_t>(position)]);
  }
  return results;
}

namespace {

NodeIndex index_of(std::span<const Value> values) {
  NodeIndex index(values.size() + 1);
  for (const Value& value : values) {
    if (index.find(value.node().get()) < 0) index.insert(value.node().get(), 0);
  }
  return index;
}

}  // namespace

std::vector<Value> other_leaves(std::span<const Value> outputs, std::span<const Value> inputs) {
  const NodeIndex known = index_of(inputs);
  std::vector<Value> leaves;
  for (const NodePtr& node : flow_to(outputs, known).nodes) {
    if (known.find(node.get()) >= 0) continue;
    if (node->is_gradient_stop() || node->sources().empty()) leaves.emplace_back(node);
  }
  return leaves;
}

bool has_other_leaves(std::span<const Value> outputs, std::span<const Value> inputs) {
  const NodeIndex known = index_of(inputs);
  for (const NodePtr& node : flow_to(outputs, known).nodes) {
    // An input that is no leaf stands for a value that somebody else watches.
    const bool is_input = known.find(node.get()) >= 0;
    const bool is_leaf = node->is_gradient_stop() || node->sources().empty();
    if (is_input ? !node->is_gradient_stop() : is_leaf) return true;
  }
  return false;
}

}  // namespace vkml::autograd
