// Running a plan on what it is bound to: one retry after memory ran out, and what a failure means
// for the blocks that it overwrites.
#pragma once

#include <memory>
#include <vector>

#include "plan.h"
#include "realized_nodes.h"
#include "vkml/dispatch/backend.h"

namespace vkml::dispatch {

/// A plan's bindings, and the places of its results.
struct Bound {
  Bindings bindings;
  std::vector<ResultPlace> results;
  bool inputs_may_fail = false;  // some input may turn out to have no value
};

/// Binds the next input, which has no storage yet where a result's block takes its place. Throws
/// the failure of what wrote it, where that is known or has to be: a value that was never written
/// is no source of numbers.
void bind_input(const Plan& plan, Binding input, Bound& bound);

/// A block of the device. Out of memory: waits, gives cached blocks back, tries once more.
StoragePtr allocate(Backend& backend, std::size_t bytes);

/// Runs the plan. What cannot be run twice, because it overwrites its inputs, is not. Profiles see
/// it.
std::shared_ptr<Submission> run_plan(const Plan& plan, Bound& bound, Backend& backend);

/// Names the submission that writes the results.
void set_writers(const Plan& plan, const Bound& bound,
                 const std::shared_ptr<Submission>& submission);

}  // namespace vkml::dispatch
