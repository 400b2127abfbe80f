#include "submission.h"

#include <fmt/format.h>

#include "dispatch_list.h"
#include "process_state.h"
#include "vkml/core/error.h"

namespace vkml::vulkan {

namespace {

/// What a check that failed has met.
std::exception_ptr read_failure(const StatusReport& report, std::uint32_t check) {
  const volatile std::uint32_t* words = report.words + 1 + std::size_t{check} * kWordsPerCheck;
  const std::uint32_t site_number = words[0];
  const std::uint64_t high = words[2];
  const auto index = static_cast<std::int64_t>(high << 32 | words[1]);
  if (site_number == 0 || site_number > report.sites->size()) {
    return std::make_exception_ptr(
        IndexError(fmt::format("[vulkan] index {} is out of bounds", index)));
  }
  return dispatch::failure_at((*report.sites)[site_number - 1], index);
}

}  // namespace

VulkanSubmission::VulkanSubmission(std::shared_ptr<DeviceContext> context, StatusReport report,
                                   std::vector<Pointer> dependencies)
    : context_(std::move(context)),
      report_(std::move(report)),
      dependencies_(std::move(dependencies)) {}

std::shared_ptr<VulkanSubmission::Failure> VulkanSubmission::settle() {
  require_usable();
  {
    const std::lock_guard lock(mutex_);
    if (state_ != State::kPending) return failure_;
  }
  context_->queue().wait(value_);
  resolve();
  const std::lock_guard lock(mutex_);
  return failure_;
}

void VulkanSubmission::wait() {
  const std::shared_ptr<Failure> failure = settle();
  if (!failure) return;
  failure->is_reported = true;
  std::rethrow_exception(failure->error);
}

void VulkanSubmission::wait_for_checks(std::uint32_t checks) {
  const std::shared_ptr<Failure> failure = settle();
  if (!failure) return;
  // What was read was in doubt as a whole, and so is what came of it.
  if (failed_checks_.empty() || (failed_checks_[0].bit & checks) != 0) return wait();
  for (const FailedCheck& failed : failed_checks_) {
    if ((failed.bit & checks) != 0) std::rethrow_exception(failed.error);
  }
}

void VulkanSubmission::wait_reporting_once() {
  const std::shared_ptr<Failure> failure = settle();
  if (failure && !failure->is_reported.exchange(true)) std::rethrow_exception(failure->error);
}

void VulkanSubmission::wait_for_completion() { settle(); }

bool VulkanSubmission::is_done() const {
  if (!vulkan_is_usable()) return true;
  {
    const std::lock_guard lock(mutex_);
    if (state_ != State::kPending) return true;
  }
  return context_->queue().is_lost() || context_->queue().completed() >= value_;
}

void VulkanSubmission::resolve() {
  std::vector<Pointer> released;  // destroyed after the lock is
  const std::lock_guard lock(mutex_);
  if (state_ != State::kPending) return;
  // Dependencies precede this submission on the queue, so they are done as well.
  for (const Pointer& dependency : dependencies_) {
    dependency->resolve();
    const std::lock_guard dependency_lock(dependency->mutex_);
    if (dependency->state_ == State::kFailed && !failure_) failure_ = dependency->failure_;
  }
  if (!failure_ && reports_itself() && report_.words[0] != 0) {
    for (std::uint32_t check = 0; check < kStatusChecks; ++check) {
      const std::uint32_t bit = 1u << check;
      if ((report_.words[0] & bit) != 0)
        failed_checks_.push_back({bit, read_failure(report_, check)});
    }
    failure_ = std::make_shared<Failure>();
    failure_->error = failed_checks_[0].error;
  }
  state_ = failure_ ? State::kFailed : State::kDone;
  report_ = {};
  released.swap(dependencies_);
}

VulkanSubmission::Outlook VulkanSubmission::outlook() const {
  const std::lock_guard lock(mutex_);
  switch (state_) {
    case State::kDone:
      return Outlook::kSucceeded;
    case State::kFailed:
      return Outlook::kFailed;
    case State::kPending:
      break;
  }
  return reports_itself() || !dependencies_.empty() ? Outlook::kMayFail : Outlook::kSucceeded;
}

StatusReport VulkanSubmission::report() const {
  const std::lock_guard lock(mutex_);
  return report_;
}

}  // namespace vkml::vulkan
