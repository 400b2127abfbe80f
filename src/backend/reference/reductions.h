// Reductions over any set of axes, from the definitions beside ops::ReduceKind.
#pragma once

#include "array.h"
#include "vkml/dispatch/execution_graph.h"

namespace vkml::reference {

Array evaluate_reduction(const dispatch::PlanNode& node, const Array& x);

}  // namespace vkml::reference
