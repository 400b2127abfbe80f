#include "submission.h"

#include <fmt/format.h>

#include "process_state.h"
#include "vkml/core/error.h"

namespace vkml::vulkan {

namespace {

/// The failure that a status word tells of.
std::string read_failure(const StatusReport& report) {
  const std::uint32_t site_number = report.words[0];
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

void VulkanSubmission::wait_for_checks(std::uint32_t checks) {
  const std::shared_ptr<Failure> failure = settle();
  if (!failure) return;
  // What was read was in doubt as a whole, and so is what came of it.
  if (!sites_ || (dispatch::check_of(first_site_) & checks) != 0) return wait();
  if ((failed_checks_ & checks) == 0) return;
  int site = 0;
  while ((dispatch::check_of(site) & failed_checks_ & checks) == 0) ++site;
  const dispatch::Site& own = (*sites_)[static_cast<std::size_t>(site)];
  throw IndexError(
      fmt::format("[{}] an index is out of bounds for an axis of extent {}", own.op, own.extent));
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
  if (!failure_ && reports_itself() && report_.words[0] != 0) {
    failure_ = std::make_shared<Failure>();
    failure_->message = read_failure(report_);
    sites_ = report_.sites;
    first_site_ = static_cast<int>(report_.words[0]) - 1;
    failed_checks_ = report_.words[3];
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
