// A compiled plan, and what realize() and replays need to know of it. Bindings are numbered as in
// the ExecutionGraph that it was compiled from.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "fuse.h"
#include "plan_key.h"
#include "vkml/dispatch/backend.h"
#include "vkml/dispatch/profile_log.h"

namespace vkml::dispatch {

struct Plan {
  std::shared_ptr<Executable> executable;
  std::vector<int> donors;  // by result: the input binding whose block it overwrites, or -1
  std::vector<bool> reads;  // by input: false where only its block is used
  std::vector<std::uint32_t> checks_at;  // by result: the checks that it depends on (check_of())
  std::uint32_t checks = 0;              // all of them
  std::int64_t kernel_count = 0;
  std::shared_ptr<const KernelCosts> costs;  // for profiles
  /// Whether it assigns to fresh blocks, which hold no old value when an index fails: then what may
  /// fail is waited for, so that the assigned tensors can be given their old blocks back.
  bool has_fresh_assignment = false;
  bool may_fail = false;

  // Of plans in a cache:
  PlanKey key;
  std::vector<int> inputs;  // positions in the schedule, by binding
  std::vector<int> results;
  std::vector<int> scalars;
};

/// Whether operators may share kernels (VKML_FUSE), and how large those may be on the device.
FusionOptions fusion_options(const Backend& backend);

/// Asks for scratch, then plans memory: the last two steps of lowering.
ExecutionGraph finish_plan(ExecutionGraph graph, const Backend& backend);

/// Finishes a graph and compiles it.
std::shared_ptr<Plan> make_plan(ExecutionGraph lowered, Backend& backend);

}  // namespace vkml::dispatch
