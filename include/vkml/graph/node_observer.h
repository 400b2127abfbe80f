// Who is told of nodes as they are made.
#pragma once

#include "vkml/graph/node.h"

namespace vkml::graph {

/// Told of every node that requires a gradient, when it is made; null for nobody. For debugging: it
/// runs wherever nodes are made, in backward passes too.
using NodeObserver = void (*)(const NodePtr& node);
void set_node_observer(NodeObserver observer);

}  // namespace vkml::graph
