// The order in which the groups of a plan run, and which assignments overwrite the old block.
#pragma once

#include <vector>

#include "group_graph.h"
#include "kernel_form.h"

namespace vkml::dispatch {

/// Numbers of the groups that have members, in an order that respects data and overwritten blocks.
/// Overwriting comes as late as it can: what fails before it leaves the old value. `donated`, by
/// position, says which assignments want to overwrite; those that cannot are cleared.
std::vector<int> order_groups(const Schedule& schedule, const std::vector<Group>& groups,
                              GroupGraph& graph, std::vector<bool>& donated);

}  // namespace vkml::dispatch
