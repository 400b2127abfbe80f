#include "run_plan.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "block_writers.h"
#include "vkml/core/error.h"
#include "vkml/dispatch/checked_submission.h"

namespace vkml::dispatch {
namespace {

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

}  // namespace

void bind_input(const Plan& plan, Binding input, Bound& bound) {
  input.is_read = plan.reads[bound.bindings.inputs.size()];
  bound.bindings.inputs.push_back(input);
  if (!input.is_read || input.storage == nullptr) return;
  const std::shared_ptr<Submission> writer = input.storage->writer();
  if (!writer) return;
  if (writer->is_done() || (plan.has_fresh_assignment && writer->may_fail())) {
    writer->wait();
    input.storage->set_writer(nullptr);
  } else {
    bound.inputs_may_fail = bound.inputs_may_fail || writer->may_fail();
  }
}

StoragePtr allocate(Backend& backend, std::size_t bytes) {
  return with_one_retry(backend, [&] { return backend.allocator().allocate(bytes); });
}

void set_writers(const Plan& plan, const Bound& bound,
                 const std::shared_ptr<Submission>& submission) {
  std::shared_ptr<Submission> donated;
  std::shared_ptr<Submission> unchecked;
  if (submission) {
    donated = std::make_shared<DonatedBlockWriter>(submission);
    unchecked = std::make_shared<UncheckedBlockWriter>(submission);
  }
  const auto checked = std::dynamic_pointer_cast<CheckedSubmission>(submission);
  for (std::size_t i = 0; i < bound.results.size(); ++i) {
    const std::uint32_t checks = plan.checks_at[i];
    std::shared_ptr<Submission> writer = submission;
    if (plan.donors[i] >= 0) {
      writer = donated;
    } else if (!bound.inputs_may_fail && checks == 0) {
      writer = unchecked;
    } else if (!bound.inputs_may_fail && checks != plan.checks && checked) {
      writer = std::make_shared<CheckedBlockWriter>(checked, checks);
    }
    bound.results[i].storage->set_writer(std::move(writer));
  }
}

std::shared_ptr<Submission> run_plan(const Plan& plan, Bound& bound, Backend& backend) {
  bound.bindings.timer = make_kernel_timer(plan.costs, backend.allocator().device());
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
    std::shared_ptr<Submission> submission = with_one_retry(backend, attempt);
    if (prints_runs()) backend.synchronize();  // so that it is told of before what comes next
    return submission;
  } catch (const PartialRun& failure) {
    const auto poison = std::make_shared<FailedWriter>(failure.cause);
    for (std::size_t i = 0; i < bound.results.size(); ++i) {
      if (plan.donors[i] >= 0) bound.results[i].storage->set_writer(poison);
    }
    std::rethrow_exception(failure.cause);
  }
}

}  // namespace vkml::dispatch
