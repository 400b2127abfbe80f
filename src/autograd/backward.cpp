// The backward pass: an iterative depth-first order from the output, then each rule once, users
// before their sources.

#include "vkml/autograd/backward.h"

#include <fmt/format.h>

#include "vkml/core/error.h"
#include "vkml/graph/node_index.h"
#include "vkml/ops/functions.h"

namespace vkml::autograd {
namespace {

using graph::Node;
using graph::NodeIndex;
using graph::NodePtr;
using graph::Value;

/// Nodes that gradients flow through, sources before users.
struct Flow {
  std::vector<NodePtr> nodes;
  NodeIndex index;
};

bool is_end(const Node& node, const NodeIndex& inputs) {
  return node.is_gradient_stop() || inputs.find(&node) >= 0;
}

Flow flow_to(const NodePtr& output, const NodeIndex& inputs) {
  Flow flow;
  NodeIndex seen;
  struct Frame {
    NodePtr node;
    std::size_t next = 0;
  };
  std::vector<Frame> stack;
  const auto visit = [&](const NodePtr& node) {
    const bool wanted = node->requires_grad() || inputs.find(node.get()) >= 0;
    if (!wanted || seen.find(node.get()) >= 0) return;
    seen.insert(node.get(), 0);
    stack.push_back({node});
  };
  visit(output);
  while (!stack.empty()) {
    const std::size_t top = stack.size() - 1;
    const NodePtr node = stack[top].node;
    const auto sources = node->sources();
    // The output itself is entered even when a gradient is asked for it.
    const bool enter = node == output ? !node->is_gradient_stop() : !is_end(*node, inputs);
    if (enter && stack[top].next < sources.size()) {
      visit(sources[stack[top].next++]);
      continue;
    }
    flow.index.insert(node.get(), static_cast<int>(flow.nodes.size()));
    flow.nodes.push_back(node);
    stack.pop_back();
  }
  return flow;
}

void check_recorded(const Node& node) {
  if (!node.is_released()) return;
  throw AutogradError(
      fmt::format("[backward] the graph below {} was released by an earlier backward pass. Pass "
                  "retain_graph=True to that one to run through it again",
                  node.op().name));
}

/// The gradient after the hooks on it: a leaf's stay with the leaf when it is assigned to.
Value hooked(const Node& node, const Value& gradient) {
  const auto sink = node.sink().lock();
  const auto hooks = sink ? sink->hooks() : node.hooks();
  return hooks ? hooks->run(gradient) : gradient;
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

/// Runs the rules of `flow`; `sums[i]` ends as the gradient of flow.nodes[i].
std::vector<Value> propagate(const Flow& flow, const Value& gradient, const NodeIndex& inputs,
                             std::vector<NodePtr>* visited) {
  std::vector<Value> sums(flow.nodes.size());
  sums.back() = gradient;
  std::vector<Value> rules;
  for (std::size_t i = flow.nodes.size(); i-- > 0;) {
    const NodePtr& node = flow.nodes[i];
    const bool is_output = i + 1 == flow.nodes.size();
    if (!sums[i]) continue;
    // Every user has added its part by now.
    sums[i] = hooked(*node, sums[i]);
    if (node->is_gradient_stop() || (!is_output && is_end(*node, inputs))) continue;
    check_recorded(*node);
    const auto sources = node->sources();
    if (sources.empty() || !has_rule(*node)) continue;
    rules.assign(sources.size(), Value());
    apply_rule(node, sums[i], rules);
    if (visited != nullptr) visited->push_back(node);
    for (std::size_t k = 0; k < sources.size(); ++k) {
      const int position = rules[k] ? flow.index.find(sources[k].get()) : -1;
      if (position < 0) continue;
      Value& sum = sums[static_cast<std::size_t>(position)];
      sum = sum ? graph::add(sum, rules[k]) : rules[k];
    }
  }
  return sums;
}

void check_output(const Value& output, const Value& gradient) {
  if (!output->requires_grad()) {
    throw AutogradError(
        "[backward] this tensor requires no gradient. Set requires_grad=True on a tensor it is "
        "computed from, outside no_grad");
  }
  if (!gradient.shape().same_extents(output.shape())) {
    throw ShapeError(fmt::format("[backward] the gradient has shape {}, the tensor {}",
                                 gradient.shape().to_string(), output.shape().to_string()));
  }
}

}  // namespace

Value seed_gradient(const Value& output, const Value& given) {
  if (!given) {
    if (output->numel() != 1) {
      throw AutogradError(
          fmt::format("[backward] a tensor of shape {} needs a gradient of that shape; only one "
                      "element has 1 for a default",
                      output.shape().to_string()));
    }
    return graph::full(output.shape().extents(), 1, output.dtype(), output.device());
  }
  if (given.device() != output.device()) {
    throw DeviceError(fmt::format(
        "[backward] the gradient is on {}, the tensor on {}. Use gradient.to(\"{}\")",
        to_string(given.device()), to_string(output.device()), to_string(output.device())));
  }
  return graph::cast(given, output.dtype());
}

BackwardPass backward(const Value& output, const Value& gradient, bool create_graph,
                      const GradientObserver& observe) {
  check_output(output, gradient);
  const graph::GradientMode mode(create_graph);
  const NodeIndex no_inputs;
  const Flow flow = flow_to(output.node(), no_inputs);
  BackwardPass pass;
  const std::vector<Value> sums = propagate(flow, gradient, no_inputs, &pass.visited);
  for (std::size_t i = 0; i < flow.nodes.size(); ++i) {
    if (!sums[i]) continue;
    if (flow.nodes[i]->is_gradient_stop()) pass.leaves.emplace_back(flow.nodes[i], sums[i]);
    if (observe) observe(flow.nodes[i], sums[i]);
  }
  return pass;
}

std::vector<Value> gradients(const Value& output, const Value& gradient,
                             std::span<const Value> inputs, bool create_graph) {
  check_output(output, gradient);
  const graph::GradientMode mode(create_graph);
  NodeIndex wanted(inputs.size() + 1);
  for (const Value& input : inputs) {
    if (wanted.find(input.node().get()) < 0) wanted.insert(input.node().get(), 0);
  }
  const Flow flow = flow_to(output.node(), wanted);
  const std::vector<Value> sums = propagate(flow, gradient, wanted, nullptr);
  std::vector<Value> results;
  for (const Value& input : inputs) {
    const int position = flow.index.find(input.node().get());
    results.push_back(position < 0 ? Value() : sums[static_cast<std::size_t>(position)]);
  }
  return results;
}

void release(const BackwardPass& pass) {
  for (const NodePtr& node : pass.visited) {
    node->mark_released();
    if (node->is_computed()) node->release_sources();
  }
}

}  // namespace vkml::autograd
