// What realize() would do, as data: the graph below some values, the kernels and buffers of its
// plan, and whether that plan is in the cache. explain() prints it, vkml.graph draws it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "vkml/core/device.h"
#include "vkml/dispatch/execution_graph.h"
#include "vkml/graph/node.h"

namespace vkml::dispatch {

struct NodeDescription {
  std::string op;
  DType dtype = DType::kF32;
  std::vector<std::int64_t> extents;
  std::vector<int> sources;  // positions in PlanDescription::nodes
  bool is_root = false;
  bool is_computed = false;
  bool is_view = false;
  bool is_number = false;
  bool requires_grad = false;
  bool is_kept = false;  // the plan gives it memory that outlives the run
  int kernel = -1;       // that computes it; -1: none, or several that compute it on the way
};

struct PlanDescription {
  Device device;
  bool is_pending = false;  // false: all is computed, or a view of what is; no plan
  bool is_cached = false;
  std::vector<NodeDescription> nodes;  // sources before users
  ExecutionGraph plan;
};

/// Describes without effect: nothing is computed, bound, counted or put into the cache. All roots
/// must be on one device. Throws as realize() would before it runs.
PlanDescription describe(std::span<const graph::NodePtr> roots);

/// The plan that realize() would run, as text: kernels, bytes, arena, cache hit or miss.
std::string explain(std::span<const graph::NodePtr> roots);

}  // namespace vkml::dispatch
