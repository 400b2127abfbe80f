// The record of calls, its backward pass, and the two orders.

#include "vkml/autograd/tape.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "vkml/autograd/backward.h"
#include "vkml/core/error.h"
#include "vkml/ops/functions.h"

namespace vkml::autograd {
namespace {

using graph::Node;
using graph::NodePtr;
using graph::Value;

/// Which living record holds a value, and where. A side table, since nodes do not change.
class Positions {
 public:
  void insert(const Node* node, const ComputationGraph* graph, int position) {
    const std::scoped_lock lock(mutex_);
    entries_[node] = {graph, position};
  }
  void remove(const Node* node, const ComputationGraph* graph) {
    const std::scoped_lock lock(mutex_);
    const auto found = entries_.find(node);
    if (found != entries_.end() && found->second.first == graph) entries_.erase(found);
  }
  int find(const Node* node) const {
    const std::scoped_lock lock(mutex_);
    const auto found = entries_.find(node);
    return found == entries_.end() ? -1 : found->second.second;
  }

 private:
  mutable std::mutex mutex_;
  std::unordered_map<const Node*, std::pair<const ComputationGraph*, int>> entries_;
};

Positions& positions() {
  static auto* all = new Positions;
  return *all;
}

/// A node of its own over the same memory, for an operator that returned its input.
Value another_node(const Value& value) {
  static constexpr graph::OpInfo kIdentity{
      "identity", graph::Family::kCustom, 0,
      [](const Value&, const Value& gradient, std::span<Value> gradients) {
        gradients[1] = gradient;
      }};
  return graph::with_gradient(kIdentity, value, std::span(&value, 1));
}

std::string describe(const Value& value, int position) {
  const std::string shown = fmt::format("{}{}", name_of(value.dtype()), value.shape().to_string());
  return position < 0 ? shown : fmt::format("#{}: {}", position, shown);
}

}  // namespace

GraphNode::GraphNode(std::string name, std::vector<Value> operands, Value result)
    : op_name(std::move(name)),
      inputs(std::move(operands)),
      output(std::move(result)),
      grad(graph::zeros_like(output)) {}

ComputationGraph::ComputationGraph(std::shared_ptr<OpRegistry> registry)
    : registry_(std::move(registry)) {
  if (!registry_) throw ArgumentError("[ComputationGraph] needs a registry");
}

ComputationGraph::~ComputationGraph() {
  for (const GraphNode& node : nodes_) positions().remove(node.output.node().get(), this);
}

Value ComputationGraph::record(const std::string& op_name, std::span<const Value> inputs,
                               const Value& output) {
  const OperatorPtr op = registry_->get(op_name);
  return append(op_name, inputs, attach_gradient(op_name, op, inputs, output));
}

Value ComputationGraph::apply(const std::string& op_name, std::span<const Value> inputs) {
  const OperatorPtr op = registry_->get(op_name);
  return append(op_name, inputs, autograd::apply(op_name, op, inputs));
}

Value ComputationGraph::append(const std::string& op_name, std::span<const Value> inputs,
                               Value output) {
  const auto is_trained = [](const Value& input) { return input->requires_grad(); };
  if (!graph::grad_enabled() || std::ranges::none_of(inputs, is_trained)) return output;
  const auto is_output = [&](const Value& input) { return input.node() == output.node(); };
  if (std::ranges::any_of(inputs, is_output)) output = another_node(output);
  for (;;) {
    {
      const std::scoped_lock lock(mutex_);
      if (find(output) < 0) {
        const int position = static_cast<int>(nodes_.size());
        nodes_.emplace_back(op_name, std::vector<Value>(inputs.begin(), inputs.end()), output);
        index_.insert(output.node().get(), position);
        positions().insert(output.node().get(), this, position);
        return output;
      }
    }
    // Without the lock: whoever observes recording may wait for a thread that wants it.
    output = another_node(output);
  }
}

std::vector<GraphNode> ComputationGraph::nodes() const {
  const std::scoped_lock lock(mutex_);
  return nodes_;
}

std::size_t ComputationGraph::size() const {
  const std::scoped_lock lock(mutex_);
  return nodes_.size();
}

int ComputationGraph::grad_fn_index(const Value& value) const {
  const std::scoped_lock lock(mutex_);
  return find(value);
}

void ComputationGraph::backward(const Value& output, const Value& gradient, bool create_graph) {
  if (grad_fn_index(output) < 0) {
    throw AutogradError(
        "[backward] this value was not recorded in this graph: no input required a gradient, or "
        "another graph recorded it");
  }
  std::vector<std::pair<NodePtr, Value>> arrived;
  const BackwardPass pass = autograd::backward(
      output, seed_gradient(output, gradient), create_graph,
      [&](const NodePtr& node, const Value& sum) { arrived.emplace_back(node, sum); });
  std::vector<Value> given_up;  // destroyed after the lock is
  {
    const std::scoped_lock lock(mutex_);
    for (GraphNode& node : nodes_) {
      given_up.push_back(std::exchange(node.grad, graph::zeros_like(node.output)));
    }
    for (const auto& [node, sum] : arrived) {
      const int position = index_.find(node.get());
      if (position >= 0) nodes_[static_cast<std::size_t>(position)].grad = sum;
    }
  }
  for (const auto& [leaf, sum] : pass.leaves) {
    if (const auto sink = leaf->sink().lock()) sink->accumulate(sum);
  }
}

std::string ComputationGraph::to_string() const {
  const std::scoped_lock lock(mutex_);
  std::string text;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const GraphNode& node = nodes_[i];
    std::vector<std::string> inputs;
    for (const Value& input : node.inputs) inputs.push_back(describe(input, find(input)));
    text += fmt::format("#{} {}({}) -> {}\n", i, node.op_name, fmt::join(inputs, ", "),
                        describe(node.output, -1));
  }
  return text;
}

int grad_fn_index(const Value& value) { return positions().find(value.node().get()); }

std::vector<int> topological_backward_order(const ComputationGraph& graph) {
  std::vector<int> order;
  for (int i = static_cast<int>(graph.size()); i-- > 0;) order.push_back(i);
  return order;
}

std::vector<int> topological_backward_order(const ComputationGraph& graph, const Value& output) {
  const std::vector<GraphNode> recorded = graph.nodes();
  struct Frame {
    NodePtr node;
    int position = -1;
    std::vector<NodePtr> inputs;
    std::size_t next = 0;
  };
  graph::NodeIndex seen;
  std::vector<Frame> stack;
  const auto visit = [&](const NodePtr& node) {
    if (!node->requires_grad() || seen.find(node.get()) >= 0) return;
    seen.insert(node.get(), 0);
    Frame frame{node, graph.grad_fn_index(Value(node)), {}, 0};
    // What another thread has recorded since is not in the copy.
    if (frame.position >= static_cast<int>(recorded.size())) frame.position = -1;
    if (frame.position >= 0) {
      for (const Value& input : recorded[static_cast<std::size_t>(frame.position)].inputs) {
        frame.inputs.push_back(input.node());
      }
    } else if (!node->is_gradient_stop()) {
      const auto sources = node->sources();
      frame.inputs.assign(sources.begin(), sources.end());
    }
    stack.push_back(std::move(frame));
  };
  std::vector<int> order;  // sources before users
  visit(output.node());
  while (!stack.empty()) {
    Frame& top = stack.back();
    if (top.next < top.inputs.size()) {
      const NodePtr input = top.inputs[top.next++];
      visit(input);
      continue;
    }
    if (top.position >= 0) order.push_back(top.position);
    stack.pop_back();
  }
  std::ranges::reverse(order);
  return order;
}

}  // namespace vkml::autograd
