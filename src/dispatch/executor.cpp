// The steps of realize(): linearise, check, look up or lower, bind, run, mark.

#include "vkml/dispatch/executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>

#include "block_writers.h"
#include "check_schedule.h"
#include "coverage.h"
#include "device_state.h"
#include "fuse.h"
#include "lower.h"
#include "plan_cache.h"
#include "plan_key.h"
#include "realized_nodes.h"
#include "run_plan.h"
#include "schedule.h"
#include "vkml/core/error.h"
#include "vkml/dispatch/backend.h"
#include "vkml/dispatch/profile_log.h"
#include "vkml/dispatch/recording.h"
#include "vkml/ops/functions.h"

namespace vkml::dispatch {
namespace {

using graph::Family;
using graph::Node;
using graph::NodePtr;

std::shared_ptr<Plan> plan_of(const Schedule& schedule, PlanKey key, Backend& backend) {
  const HostTimer timer(HostWork::kPlan);
  Lowered lowered = lower(schedule, fuse(schedule, fusion_options(backend)));
  std::shared_ptr<Plan> plan = make_plan(std::move(lowered.graph), backend);
  plan->key = std::move(key);
  plan->inputs = std::move(lowered.inputs);
  plan->results = std::move(lowered.results);
  plan->scalars = std::move(lowered.scalars);
  return plan;
}

/// The assertion of a kept value's layout: its block is read as a dense one from now on.
void check_is_dense(const Node& node) {
  if (node.shape().is_contiguous(size_of(node.dtype()))) return;
  throw InternalError(fmt::format("[{}] a result of shape {} is to be kept, but is not contiguous",
                                  node.op().name, node.shape().to_string()));
}

Bound bind(const Schedule& schedule, const Plan& plan, Backend& backend) {
  Bound bound;
  for (const int position : plan.inputs) {
    const Node& node = *schedule[position].node;
    bind_input(plan, {storage_owner(node).storage().get(), offset_of(node)}, bound);
  }
  for (std::size_t i = 0; i < plan.results.size(); ++i) {
    const Node& node = *schedule[plan.results[i]].node;
    check_is_dense(node);
    if (plan.donors[i] >= 0) {
      const int donor = plan.inputs[static_cast<std::size_t>(plan.donors[i])];
      const Node& old = *schedule[donor].node;
      bound.results.push_back({old.storage(), old.storage_offset()});
      bound.bindings.results.push_back({old.storage().get(), old.storage_offset()});
      continue;
    }
    const std::size_t bytes = static_cast<std::size_t>(node.numel()) * size_of(node.dtype());
    bound.results.push_back({allocate(backend, bytes), 0});
    bound.bindings.results.push_back({bound.results.back().storage.get(), 0});
  }
  for (const int position : plan.scalars) {
    bound.bindings.scalars.push_back(graph::scalar_bits(*schedule[position].node));
  }
  return bound;
}

/// Whether a check of indices or values has failed: what was computed is as it was before.
bool is_failed_check(const Error& error) {
  return dynamic_cast<const IndexError*>(&error) != nullptr ||
         dynamic_cast<const ArgumentError*>(&error) != nullptr;
}

/// Lets an assignment that failed show the value before it; where that failed too, or is not
/// computed and fails now, the one before. Without any it stays uncomputed, and can be assigned to.
void restore(const NodePtr& assigned) {
  std::vector<NodePtr> failed{assigned};
  NodePtr value = assigned->source(0);
  while (!value->is_computed()) {
    try {
      realize(std::span(&value, 1), {.restore_after_failure = false});
      value->storage()->wait();
    } catch (const Error& error) {
      if (!is_failed_check(error)) throw;
      if (value->is_computed()) break;
      if (value->family() != Family::kAssign) return;
      failed.push_back(value);
      value = value->source(0);
    }
  }
  for (const NodePtr& node : failed) finish_node(*node, value->storage(), value->storage_offset());
}

/// After a failed index check every assignment of the graph shows its old value. One whose old
/// value cannot be computed (memory ran out, say) stays uncomputed, and says why when it is read.
void restore_assigned(const Schedule& schedule) {
  std::vector<NodePtr> assigned;
  for (const Step& step : schedule.steps) {
    if (step.role == Role::kCompute && step.node->family() == Family::kAssign) {
      assigned.push_back(step.node->shared_from_this());
    }
  }
  for (const NodePtr& node : assigned) {
    if (node->is_computed()) continue;
    try {
      restore(node);
    } catch (const Error&) {  // NOLINT(bugprone-empty-catch)
      // The plan's own error is the one to tell.
    }
  }
}

}  // namespace

void realize(std::span<const NodePtr> roots, const RealizeOptions& options) {
  if (roots.empty()) return;
  if (Recording* recording = Recording::current()) return recording->defer(roots, options);
  const HostTimer timer(HostWork::kRealize);
  const Device device = common_device(roots);
  DeviceState& state = state_of(device);
  const std::scoped_lock lock(state.mutex);
  const std::vector<NodePtr> pending = bind_ready_views(roots);
  if (pending.empty()) return;

  Backend& backend = backend_for(device);
  const Schedule schedule = make_schedule(pending, options.keep_for_backward);
  PlanKey key = make_key(schedule);
  std::shared_ptr<Plan> plan = state.cache.find(key);
  if (plan) {
    ++state.statistics.hits;
  } else {
    ++state.statistics.misses;
    // Of a hit this is known: plans are kept by device, and operators compare their operands'.
    check_schedule(schedule, device, backend);
    plan = plan_of(schedule, std::move(key), backend);
    state.cache.insert(plan);
  }
  record_coverage(schedule, device);
  Bound bound;
  std::shared_ptr<Submission> submission;
  try {
    bound = bind(schedule, *plan, backend);
    submission = run_plan(*plan, bound, backend);
    if (submission && plan->may_fail && plan->has_fresh_assignment) submission->wait();
  } catch (const Error& error) {
    if (is_failed_check(error) && options.restore_after_failure) restore_assigned(schedule);
    throw;
  }
  state.statistics.kernels += plan->kernel_count;
  set_writers(*plan, bound, submission);
  finish_results(schedule, plan->results, bound.results);
}

}  // namespace vkml::dispatch
