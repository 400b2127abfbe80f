// The part of a graph that derivatives flow through.
#pragma once

#include <span>
#include <vector>

#include "vkml/graph/node_index.h"
#include "vkml/graph/value.h"

namespace vkml::autograd {

/// Nodes that derivatives flow through, sources before users.
struct Flow {
  std::vector<graph::NodePtr> nodes;
  graph::NodeIndex index;
};

/// Whether derivatives go no further than this node: a leaf, or one of `inputs`.
bool is_end(const graph::Node& node, const graph::NodeIndex& inputs);

/// The ancestors of `outputs` that require a gradient or are among `inputs`. An output itself is
/// entered even when it is an input.
Flow flow_to(std::span<const graph::Value> outputs, const graph::NodeIndex& inputs);

/// Runs the gradient rule of one node, if it has any.
bool has_rule(const graph::Node& node);
void apply_rule(const graph::NodePtr& node, const graph::Value& gradient,
                std::span<graph::Value> gradients);

}  // namespace vkml::autograd
