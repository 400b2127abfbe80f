// The steps of realize(): linearise, check, look up or lower, bind, run, mark.

#include "vkml/dispatch/executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>

#include "block_writers.h"
#include "coverage.h"
#include "device_state.h"
#include "fuse.h"
#include "lower.h"
#include "memory_plan.h"
#include "plan_cache.h"
#include "plan_key.h"
#include "schedule.h"
#include "vkml/core/environment.h"
#include "vkml/core/error.h"
#include "vkml/dispatch/backend.h"
#include "vkml/dispatch/verify.h"
#include "vkml/ops/batching.h"
#include "vkml/ops/functions.h"

namespace vkml::dispatch {
namespace {

using graph::Family;
using graph::Node;
using graph::NodePtr;

bool fusion_enabled() {
  static const bool enabled = environment_switch("VKML_FUSE", true);
  return enabled;
}

bool verification_enabled() {
  static const bool enabled = environment_switch("VKML_VERIFY", false);
  return enabled;
}

Device common_device(std::span<const NodePtr> roots) {
  for (const NodePtr& root : roots) {
    if (root->device() == roots[0]->device()) continue;
    throw DeviceError(fmt::format("[realize] tensors on {} and {} cannot be computed in one graph",
                                  to_string(roots[0]->device()), to_string(root->device())));
  }
  return roots[0]->device();
}

void check_schedule(const Schedule& schedule, Device device, const Backend& backend) {
  std::string reason;
  for (const Step& step : schedule.steps) {
    const Node& node = *step.node;
    if (node.device() != device) {
      throw DeviceError(fmt::format("[{}] is on {} in a graph on {}", node.op().name,
                                    to_string(node.device()), to_string(device)));
    }
    if (step.role != Role::kCompute) continue;
    if (graph::is_placeholder(node)) {
      throw UnsupportedError(
          "[vmap] the function reads the value of its argument, which stands for every example of "
          "the batch. Use tensor operators (vkml.where for a condition), or call the function once "
          "for each example");
    }
    if (backend.supports(node, reason)) continue;
    throw UnsupportedError(fmt::format(
        "[{}] is not available on {}{}{}. Compute it on the CPU: vkml.tensor(t.numpy(), "
        "device=vkml.cpu)",
        node.op().name, to_string(device), reason.empty() ? "" : ": ", reason));
  }
}

/// Asks for scratch, then plans memory: the last two steps of lowering.
ExecutionGraph finish_plan(ExecutionGraph graph, const Backend& backend) {
  for (Kernel& kernel : graph.kernels) {
    kernel.scratch_bytes = backend.scratch_bytes(kernel);
    if (kernel.scratch_bytes == 0) continue;
    kernel.scratch = static_cast<int>(graph.buffers.size());
    Buffer scratch;
    scratch.bytes = kernel.scratch_bytes;
    graph.buffers.push_back(scratch);
  }
  plan_memory(graph);
  if (verification_enabled()) verify_plan(graph);
  return graph;
}

std::shared_ptr<Plan> make_plan(const Schedule& schedule, PlanKey key, Backend& backend) {
  Lowered lowered = lower(schedule, fuse(schedule, fusion_enabled()));
  auto plan = std::make_shared<Plan>();
  plan->key = std::move(key);
  plan->inputs = std::move(lowered.inputs);
  plan->results = std::move(lowered.results);
  plan->scalars = std::move(lowered.scalars);
  plan->donors.assign(plan->results.size(), -1);
  for (const Buffer& buffer : lowered.graph.buffers) {
    if (buffer.kind == BufferKind::kResult) {
      plan->donors[static_cast<std::size_t>(buffer.binding)] = buffer.donor;
    }
  }
  plan->kernel_count = static_cast<std::int64_t>(lowered.graph.kernels.size());
  for (std::size_t i = 0; i < plan->results.size(); ++i) {
    const bool assigns = schedule[plan->results[i]].node->family() == Family::kAssign;
    if (assigns && plan->donors[i] < 0) plan->has_fresh_assignment = true;
  }
  plan->may_fail = !lowered.graph.sites.empty();
  ExecutionGraph graph = finish_plan(std::move(lowered.graph), backend);
  plan->executable = backend.compile(std::move(graph));
  return plan;
}

/// Out of memory: wait for what is running, give cached blocks back, try once more.
template <typename Action>
auto with_one_retry(Backend& backend, Action action) {
  try {
    return action();
  } catch (const OutOfMemoryError&) {
    backend.synchronize();
    backend.trim();
  }
  return action();
}

const Node& storage_owner(const Node& node) { return node.is_computed() ? node : *node.view_src(); }

std::int64_t offset_of(const Node& node) {
  return node.is_computed() ? node.storage_offset()
                            : node.view_src()->storage_offset() + node.view_offset();
}

struct Bound {
  Bindings bindings;
  std::vector<StoragePtr> results;
};

Bound bind(const Schedule& schedule, const Plan& plan, Backend& backend) {
  Bound bound;
  for (const int position : plan.inputs) {
    const Node& node = *schedule[position].node;
    Storage* storage = storage_owner(node).storage().get();
    // A value whose writer failed is an error here, not a source of wrong numbers.
    const std::shared_ptr<Submission> writer = storage->writer();
    if (writer && (plan.has_fresh_assignment || writer->is_done())) {
      writer->wait();
      storage->set_writer(nullptr);
    }
    bound.bindings.inputs.push_back({storage, offset_of(node)});
  }
  for (std::size_t i = 0; i < plan.results.size(); ++i) {
    const Node& node = *schedule[plan.results[i]].node;
    if (plan.donors[i] >= 0) {
      const int donor = plan.inputs[static_cast<std::size_t>(plan.donors[i])];
      const Node& old = *schedule[donor].node;
      bound.results.push_back(old.storage());
      bound.bindings.results.push_back({old.storage().get(), old.storage_offset()});
      continue;
    }
    const std::size_t bytes = static_cast<std::size_t>(node.numel()) * size_of(node.dtype());
    bound.results.push_back(
        with_one_retry(backend, [&] { return backend.allocator().allocate(bytes); }));
    bound.bindings.results.push_back({bound.results.back().get(), 0});
  }
  for (const int position : plan.scalars) {
    bound.bindings.scalars.push_back(graph::scalar_bits(*schedule[position].node));
  }
  return bound;
}

void finish_node(Node& node, StoragePtr storage, std::int64_t offset) {
  node.bind(std::move(storage), offset);
  node.mark_computed();
  if (!node.requires_grad() || node.is_gradient_stop() || node.is_released())
    node.release_sources();
}

/// Finishing a node may drop the last reference to others of the schedule: what is finished later
/// is held until then.
void mark_results(const Schedule& schedule, const Plan& plan, Bound& bound,
                  const std::shared_ptr<Submission>& submission) {
  std::vector<NodePtr> results;
  std::vector<NodePtr> views;
  for (const int position : plan.results)
    results.push_back(schedule[position].node->shared_from_this());
  for (const Step& step : schedule.steps) {
    if (step.role == Role::kAlias && step.kept) views.push_back(step.node->shared_from_this());
  }
  const std::shared_ptr<Submission> donated_writer =
      submission ? std::make_shared<DonatedBlockWriter>(submission) : nullptr;
  for (std::size_t i = 0; i < results.size(); ++i) {
    bound.results[i]->set_writer(plan.donors[i] >= 0 ? donated_writer : submission);
  }
  for (std::size_t i = 0; i < results.size(); ++i) {
    finish_node(*results[i], bound.results[i], bound.bindings.results[i].offset);
  }
  for (const NodePtr& view : views) {
    const NodePtr root = view->view_src();
    finish_node(*view, root->storage(), root->storage_offset() + view->view_offset());
  }
}

/// Runs the plan. What cannot be run twice, because it overwrites its inputs, is not.
std::shared_ptr<Submission> run(const Plan& plan, const Bound& bound, Backend& backend) {
  const bool overwrites = std::ranges::any_of(plan.donors, [](int donor) { return donor >= 0; });
  const auto attempt = [&] {
    try {
      return backend.run(*plan.executable, bound.bindings);
    } catch (const PartialRun& failure) {
      if (overwrites) throw;
      std::rethrow_exception(failure.cause);
    }
  };
  with_one_retry(backend, [&] { backend.reserve(*plan.executable); });
  try {
    return with_one_retry(backend, attempt);
  } catch (const PartialRun& failure) {
    const auto poison = std::make_shared<FailedWriter>(failure.cause);
    for (std::size_t i = 0; i < bound.results.size(); ++i) {
      if (plan.donors[i] >= 0) bound.results[i]->set_writer(poison);
    }
    std::rethrow_exception(failure.cause);
  }
}

/// After a failed index check every assignment of the graph shows its old value.
void restore_assigned(const Schedule& schedule) {
  std::vector<NodePtr> assigned;
  for (const Step& step : schedule.steps) {
    if (step.role == Role::kCompute && step.node->family() == Family::kAssign) {
      assigned.push_back(step.node->shared_from_this());
    }
  }
  for (const NodePtr& node : assigned) {
    const NodePtr old = node->source(0);
    if (old->is_computed()) finish_node(*node, old->storage(), old->storage_offset());
  }
}

/// Roots that only show something computed need no run.
std::vector<NodePtr> bind_ready_views(std::span<const NodePtr> roots) {
  std::vector<NodePtr> pending;
  for (const NodePtr& root : roots) {
    if (root->is_computed()) continue;
    if (root->is_view() && root->view_src()->is_computed()) {
      const NodePtr owner = root->view_src();
      finish_node(*root, owner->storage(), owner->storage_offset() + root->view_offset());
    } else {
      pending.push_back(root);
    }
  }
  return pending;
}

}  // namespace

void realize(std::span<const NodePtr> roots, const RealizeOptions& options) {
  if (roots.empty()) return;
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
    check_schedule(schedule, device, backend);
    plan = make_plan(schedule, std::move(key), backend);
    state.cache.insert(plan);
  }
  record_coverage(schedule, device);
  Bound bound;
  std::shared_ptr<Submission> submission;
  try {
    bound = bind(schedule, *plan, backend);
    submission = run(*plan, bound, backend);
    if (submission && plan->may_fail && plan->has_fresh_assignment) submission->wait();
  } catch (const IndexError&) {
    if (options.restore_after_failure) restore_assigned(schedule);
    throw;
  }
  state.statistics.kernels += plan->kernel_count;
  mark_results(schedule, *plan, bound, submission);
}

std::string explain(std::span<const NodePtr> roots) {
  if (roots.empty()) return "nothing to compute\n";
  const Device device = common_device(roots);
  DeviceState& state = state_of(device);
  const std::scoped_lock lock(state.mutex);
  const std::vector<NodePtr> pending = bind_ready_views(roots);
  if (pending.empty()) return "already computed\n";
  Backend& backend = backend_for(device);
  const Schedule schedule = make_schedule(pending, true);
  const bool hit = state.cache.find(make_key(schedule)) != nullptr;
  Lowered lowered = lower(schedule, fuse(schedule, fusion_enabled()));
  const ExecutionGraph graph = finish_plan(std::move(lowered.graph), backend);
  return fmt::format("{} on {}, cache {}\n{}", "plan", to_string(device), hit ? "hit" : "miss",
                     to_string(graph));
}

}  // namespace vkml::dispatch
