// The record of a computation: operators by name, one node for each call, and the orders in which a
// backward pass may read them.
//
// The graph of lazy values differentiates by itself (backward.h). The record is the part of it that
// somebody asked to see: which operator was called, on which values, what came out, and, after
// backward(), the gradient that arrived there. The values of a node are the lazy values themselves.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "vkml/graph/node_index.h"
#include "vkml/graph/value.h"

namespace vkml::autograd {

/// An operator in both directions. Built of vkML expressions it is fused, runs on every device and
/// can be differentiated again. An object may be called from several threads at once.
class Differentiable {
 public:
  virtual ~Differentiable() = default;
  /// The operator's value. Called with gradients off: backward() says what they are.
  virtual graph::Value forward(std::span<const graph::Value> inputs) const = 0;
  /// The gradient of each input, with its shape, from the gradient of the output; an undefined
  /// Value where an input has none.
  virtual std::vector<graph::Value> backward(const graph::Value& output_gradient,
                                             std::span<const graph::Value> inputs,
                                             const graph::Value& output) const = 0;
  /// Whether the nodes that forward() records carry their gradients already, so that backward()
  /// need not be attached to its result: true of built-in operators.
  virtual bool records_gradients() const { return false; }
};

using OperatorPtr = std::shared_ptr<const Differentiable>;
using Expression = std::function<graph::Value(std::span<const graph::Value> inputs)>;

inline constexpr int kAnyArity = -1;

/// An operator that is its expression: gradients of any order follow from it. `arity` is the number
/// of inputs, or kAnyArity.
OperatorPtr make_operator(std::string name, int arity, Expression expression);

/// Operators by name. Safe to share between threads.
class OpRegistry {
 public:
  /// Adds an operator, or replaces the one of that name; calls recorded before keep theirs. Throws
  /// ArgumentError for an empty name and for no operator.
  void register_op(const std::string& name, OperatorPtr op);
  /// The operator of that name. Throws UnregisteredOpError naming it and the nearest name there is;
  /// the registry is the same afterwards.
  OperatorPtr get(std::string_view name) const;
  bool contains(std::string_view name) const;
  /// Every name, in alphabetical order.
  std::vector<std::string> names() const;
  std::size_t size() const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, OperatorPtr, std::less<>> operators_;
};

/// The registry that holds vkML's own operators: each row of the elementwise table, and the
/// structural families.
const std::shared_ptr<OpRegistry>& default_registry();

/// Calls an operator. Its result has the operator's gradient when an input requires one.
graph::Value apply(const std::string& name, const OperatorPtr& op,
                   std::span<const graph::Value> inputs);

/// `output` with the operator's gradient: itself, where its own nodes carry that already.
graph::Value attach_gradient(const std::string& name, const OperatorPtr& op,
                             std::span<const graph::Value> inputs, const graph::Value& output);

/// The gradients of the inputs, one each, from the gradient of the output: Differentiable::backward
/// of a single call.
using Pullback = std::function<std::vector<graph::Value>(const graph::Value& output_gradient,
                                                         std::span<const graph::Value> inputs,
                                                         const graph::Value& output)>;

/// `value` as a node of its own named `name`, whose gradient goes to `inputs` by `pullback`;
/// `value` itself when none of them requires one.
graph::Value with_pullback(const std::string& name, const graph::Value& value,
                           std::span<const graph::Value> inputs, Pullback pullback);

/// One call of an operator.
struct GraphNode {
  GraphNode(std::string name, std::vector<graph::Value> operands, graph::Value result);

  std::string op_name;
  std::vector<graph::Value> inputs;
  graph::Value output;
  /// Zeros of the output's shape until a backward pass reaches this node.
  graph::Value grad;
  bool requires_grad = true;
};

/// The calls recorded so far, in order. Values belong to as many records as one likes.
class ComputationGraph {
 public:
  explicit ComputationGraph(std::shared_ptr<OpRegistry> registry = default_registry());
  ~ComputationGraph();
  ComputationGraph(const ComputationGraph&) = delete;
  ComputationGraph& operator=(const ComputationGraph&) = delete;

  /// Appends a node if gradients are on and some input requires one, and returns the output to go
  /// on with; otherwise returns `output` and records nothing. Throws UnregisteredOpError.
  graph::Value record(const std::string& op_name, std::span<const graph::Value> inputs,
                      const graph::Value& output);
  /// Runs the registered operator's forward and records it.
  graph::Value apply(const std::string& op_name, std::span<const graph::Value> inputs);

  /// A copy: nodes are handles.
  std::vector<GraphNode> nodes() const;
  std::size_t size() const;
  /// The position of the node that made a value, or -1.
  int grad_fn_index(const graph::Value& value) const;

  /// Gives every ancestor of `output` its gradient (the others zeros), and adds to the leaves'.
  /// `gradient` defaults to 1 for one element. Nothing is computed and nothing released. Threads
  /// that share values call vkml::backward (api/autograd.h), which holds their device. Throws
  /// AutogradError for an output that was not recorded here.
  void backward(const graph::Value& output, const graph::Value& gradient = {},
                bool create_graph = false);

  const OpRegistry& registry() const { return *registry_; }
  /// One line for each node.
  std::string to_string() const;

 private:
  graph::Value append(const std::string& op_name, std::span<const graph::Value> inputs,
                      graph::Value output);
  int find(const graph::Value& value) const { return index_.find(value.node().get()); }

  std::shared_ptr<OpRegistry> registry_;
  mutable std::mutex mutex_;
  std::vector<GraphNode> nodes_;
  graph::NodeIndex index_;
};

/// The position of the node that made a value, in the living record that recorded it last, or -1.
int grad_fn_index(const graph::Value& value);

/// Every node, last recorded first: users before their sources when calls were recorded as they
/// were made. Holds nodes that the output in question does not depend on.
std::vector<int> topological_backward_order(const ComputationGraph& graph);
/// The recorded ancestors of `output` only, by depth-first search, users before their sources; also
/// through values in between that were not recorded. Empty for an unrecorded leaf.
std::vector<int> topological_backward_order(const ComputationGraph& graph,
                                            const graph::Value& output);

}  // namespace vkml::autograd
