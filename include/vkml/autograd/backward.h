// Reverse-mode differentiation over the graph that operators recorded.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "vkml/graph/value.h"

namespace vkml::autograd {

/// What a backward pass produced, all of it still lazy.
struct BackwardPass {
  /// Nodes whose gradient rules ran, users before their sources.
  std::vector<graph::NodePtr> visited;
  /// Leaves (gradient stops) reached, each with the sum of its gradients; those next to the output
  /// first. Computed in this order, a layer's values are read for the last time before those of the
  /// layer below.
  std::vector<std::pair<graph::NodePtr, graph::Value>> leaves;
};

/// Told of every ancestor that a gradient arrived at, with that gradient, after the pass.
using GradientObserver =
    std::function<void(const graph::NodePtr& node, const graph::Value& gradient)>;

/// Told of every gradient rule that has run, with what it gave each source; null for nobody. For
/// debugging: it may compute the gradients, and throw.
using RuleObserver = void (*)(const graph::NodePtr& node, std::span<const graph::Value> gradients);
void set_rule_observer(RuleObserver observer);

/// What a pass starts with: `given` in output's dtype, or 1 for one element where it is undefined.
/// Throws AutogradError when there is no default, DeviceError when it lies elsewhere.
graph::Value seed_gradient(const graph::Value& output, const graph::Value& given);

/// Walks from `output`, over its ancestors only, each once, and applies hooks and gradient rules.
/// `gradient` has output's shape and dtype. With `create_graph` the gradients record gradients of
/// their own. Throws AutogradError when output requires no gradient or a visited node's sources
/// were released.
BackwardPass backward(const graph::Value& output, const graph::Value& gradient, bool create_graph,
                      const GradientObserver& observe = {});

/// Gradients with respect to `inputs`, which may be any nodes of the graph; undefined where output
/// does not depend on the input. `visited` receives the nodes whose rules ran.
std::vector<graph::Value> gradients(const graph::Value& output, const graph::Value& gradient,
                                    std::span<const graph::Value> inputs, bool create_graph,
                                    std::vector<graph::NodePtr>* visited = nullptr);
/// The same of several outputs, each with a gradient: the sums over them, in one pass.
std::vector<graph::Value> gradients(std::span<const graph::Value> outputs,
                                    std::span<const graph::Value> arriving,
                                    std::span<const graph::Value> inputs, bool create_graph,
                                    std::vector<graph::NodePtr>* visited = nullptr);

/// A second backward pass through the visited nodes raises. Those that hold their value give up
/// their sources, and the memory returns; those without one keep theirs, since somebody else's
/// pending value may need them, and go with their last user.
void release(std::span<const graph::NodePtr> visited);

}  // namespace vkml::autograd
