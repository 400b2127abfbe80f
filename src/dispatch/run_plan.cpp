#include "run_plan.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "block_writers.h"
#include "vkml/core/error.h"

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

StoragePtr allocate(Backend& backend, std::size_t bytes) {
  return with_one_retry(backend, [&] { return backend.allocator().allocate(bytes); });
}

void set_writers(const Plan& plan, const Bound& bound,
                 const std::shared_ptr<Submission>& submission) {
  const std::shared_ptr<Submission> donated_writer =
      submission ? std::make_shared<DonatedBlockWriter>(submission) : nullptr;
  for (std::size_t i = 0; i < bound.results.size(); ++i) {
    bound.results[i].storage->set_writer(plan.donors[i] >= 0 ? donated_writer : submission);
  }
}

std::shared_ptr<Submission> run_plan(const Plan& plan, const Bound& bound, Backend& backend) {
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
      if (plan.donors[i] >= 0) bound.results[i].storage->set_writer(poison);
    }
    std::rethrow_exception(failure.cause);
  }
}

}  // namespace vkml::dispatch
