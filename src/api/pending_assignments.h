// Assignments that are recorded and not computed yet. backward() computes them: statistics that a
// model keeps (batch norm's) would otherwise hold every step's values until somebody reads them.
#pragma once

#include <vector>

#include "vkml/graph/node.h"

namespace vkml {

void add_pending_assignment(const graph::NodePtr& node);

struct PendingAssignments {
  std::vector<graph::NodePtr> sharing;  // they need a value that the output needs too
  std::vector<graph::NodePtr> others;
};
/// All of them, off the list.
std::vector<graph::NodePtr> take_all_pending_assignments();
/// Takes the assignments on the output's device off the list.
PendingAssignments take_pending_assignments(const graph::NodePtr& output);

}  // namespace vkml
