#include "submission.h"

#include <fmt/format.h>

#include "process_state.h"
#include "vkml/core/error.h"

namespace vkml::vulkan {

namespace {

/// The failure that a status word tells of; empty when there is none.
std::string read_failure(const StatusReport& report) {
  const std::uint32_t site_number = report.words[0];
  if (site_number == 0) return {};
  const std::uint64_t high = report.words[2];
  const auto index = static_cast<std::int64_t>(high << 32 | report.words[1]);
  if (site_number > report.sites->size()) {
    return fmt::format("[vulkan] index {} is out of bounds", index);
  }
  const dispatch::Site& site = (*report.sites)[site_number - 1];
  return fmt::format("[{}] index {} is out of bounds for an axis of extent {}", site.op, index,
                     site.extent);
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
  throw IndexError(failure->message);
}

void VulkanSubmission::wait_reporting_once() {
  const std::shared_ptr<Failure> failure = settle();
  if (failure && !failure->is_reported.exchange(true)) throw IndexError(failure->message);
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
  if (!failure_ && reports_itself()) {
    std::string message = read_failure(report_);
    if (!message.empty()) {
      failure_ = std::make_shared<Failure>();
      failure_->message = std::move(message);
    }
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
