// Which values an operator's gradient rule reads: what a run before the backward pass should keep.
#pragma once

#include "vkml/graph/node.h"
#include "vkml/graph/op_info.h"

namespace vkml::ops {

/// What the operator's rule reads: for a row of the elementwise table found by recording the rule
/// once, for any other as declared beside it.
graph::GradientReads gradient_reads(const graph::OpInfo& op);

/// What the rule reads of this node: found by recording it. The node has its sources and a rule.
graph::GradientReads record_gradient_reads(const graph::NodePtr& node);

}  // namespace vkml::ops
