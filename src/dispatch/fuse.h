// Grouping of a schedule's steps into kernels.
//
// Greedy and deterministic: steps are visited in topological order, and each joins the groups of
// its sources where the union still is one kernel (kernel_form.h) and no cycle between groups
// arises (group_graph.h). What does not fit starts a group of its own, so a limit splits a kernel
// and never fails.
// A small group that others can have early is left alone where it would have to wait for large
// ones.
#pragma once

#include <vector>

#include "kernel_form.h"

namespace vkml::dispatch {

struct Fusion {
  std::vector<Group> groups;  // in the order they run
  std::vector<int> group_of;  // by position; -1: an input, a scalar, an alias
  std::vector<bool> stored;   // by position: needs memory
  std::vector<bool> donated;  // by position: an assignment that overwrites the old block
};

struct FusionOptions {
  bool is_enabled = true;
  int max_operands = kMaxOperands;  // of a kernel with several operators
};

Fusion fuse(const Schedule& schedule, const FusionOptions& options);

}  // namespace vkml::dispatch
