// The backward pass: an iterative depth-first order from the output, then each rule once, users
// before their sources.

#include "vkml/autograd/backward.h"

#include <fmt/format.h>

#include <atomic>

#include "flow.h"
#include "gradient_sum.h"
#include "vkml/core/error.h"
#include "vkml/ops/autocast.h"
#include "vkml/ops/functions.h"

namespace vkml::autograd {
namespace {

using graph::Node;
using graph::NodeIndex;
using graph::NodePtr;
using graph::Value;

std::atomic<RuleObserver> rule_observer{nullptr};

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

/// Runs the rules of `flow` from the gradients of outputs; `sums[i]` ends as the gradient of
/// flow.nodes[i].
std::vector<Value> propagate(const Flow& flow, std::span<const Value> outputs,
                             std::span<const Value> arriving, const NodeIndex& inputs,
                             std::vector<NodePtr>* visited) {
  const graph::AutocastPause pause;
  std::vector<Value> sums(flow.nodes.size());
  std::vector<ArrivingGradients> arrived(flow.nodes.size());
  std::vector<bool> starts(flow.nodes.size());
  GradientSum sum;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const int position = flow.index.find(outputs[i].node().get());
    if (position < 0) continue;
    arrived[static_cast<std::size_t>(position)].add(arriving[i]);
    starts[static_cast<std::size_t>(position)] = true;
  }
  const RuleObserver observe = rule_observer.load(std::memory_order_relaxed);
  std::vector<Value> rules;
  for (std::size_t i = flow.nodes.size(); i-- > 0;) {
    const NodePtr& node = flow.nodes[i];
    const bool is_output = starts[i];
    if (!arrived[i]) continue;
    // Every user has added its part by now.
    sums[i] = arrived[i].take_single();
    if (!sums[i]) sums[i] = sum.of(arrived[i].take());
    sums[i] = hooked(*node, sums[i]);
    if (node->is_gradient_stop() || (!is_output && is_end(*node, inputs))) continue;
    check_recorded(*node);
    const auto sources = node->sources();
    if (sources.empty() || !has_rule(*node)) continue;
    rules.assign(sources.size(), Value());
    apply_rule(node, sums[i], rules);
    if (observe != nullptr) observe(node, rules);
    if (visited != nullptr) visited->push_back(node);
    for (std::size_t k = 0; k < sources.size(); ++k) {
      const int position = rules[k] ? flow.index.find(sources[k].get()) : -1;
      if (position >= 0) arrived[static_cast<std::size_t>(position)].add(rules[k]);
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

void set_rule_observer(RuleObserver observer) { rule_observer.store(observer); }

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
  const Flow flow = flow_to(std::span(&output, 1), no_inputs);
  BackwardPass pass;
  const std::vector<Value> sums =
      propagate(flow, std::span(&output, 1), std::span(&gradient, 1), no_inputs, &pass.visited);
  for (std::size_t i = flow.nodes.size(); i-- > 0;) {
    if (!sums[i]) continue;
    if (flow.nodes[i]->is_gradient_stop()) pass.leaves.emplace_back(flow.nodes[i], sums[i]);
    if (observe) observe(flow.nodes[i], sums[i]);
  }
  return pass;
}

std::vector<Value> gradients(const Value& output, const Value& gradient,
                             std::span<const Value> inputs, bool create_graph,
                             std::vector<NodePtr>* visited) {
  return gradients(std::span(&output, 1), std::span(&gradient, 1), inputs, create_graph, visited);
}

std::vector<Value> gradients(std::span<const Value> outputs, std::span<const Value> arriving,
                             std::span<const Value> inputs, bool create_graph,
                             std::vector<NodePtr>* visited) {
  for (std::size_t i = 0; i < outputs.size(); ++i) check_output(outputs[i], arriving[i]);
  const graph::GradientMode mode(create_graph);
  NodeIndex wanted(inputs.size() + 1);
  for (const Value& input : inputs) {
    if (wanted.find(input.node().get()) < 0) wanted.insert(input.node().get(), 0);
  }
  const Flow flow = flow_to(outputs, wanted);
  const std::vector<Value> sums = propagate(flow, outputs, arriving, wanted, visited);
  std::vector<Value> results;
  for (const Value& input : inputs) {
    const int position = flow.index.find(input.node().get());
    results.push_back(position < 0 ? Value() : sums[static_cast<std::size_t>(position)]);
  }
  return results;
}

void release(std::span<const NodePtr> visited) {
  for (const NodePtr& node : visited) {
    node->mark_released();
    if (node->is_computed()) node->release_sources();
  }
}

}  // namespace vkml::autograd
