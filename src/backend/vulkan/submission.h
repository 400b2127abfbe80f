// Work on the queue as those see it who wait for its results.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "device_context.h"
#include "vkml/core/storage.h"
#include "vkml/dispatch/checked_submission.h"
#include "vkml/dispatch/execution_graph.h"

namespace vkml::vulkan {

/// Where a submission reports bad indices: its status in mapped memory, and what it means.
struct StatusReport {
  VkBuffer buffer = VK_NULL_HANDLE;
  std::uint64_t offset = 0;
  const volatile std::uint32_t* words = nullptr;
  std::shared_ptr<const std::vector<dispatch::Site>> sites;
};

class VulkanSubmission : public dispatch::CheckedSubmission {
 public:
  using Pointer = std::shared_ptr<VulkanSubmission>;

  /// `dependencies` are earlier submissions whose results this one reads and that may yet turn out
  /// to have failed: then this one has failed too.
  VulkanSubmission(std::shared_ptr<DeviceContext> context, StatusReport report,
                   std::vector<Pointer> dependencies);

  void wait() override;
  void wait_for_checks(std::uint32_t checks) override;
  void wait_reporting_once() override;
  void wait_for_completion() override;
  bool may_fail() const override { return outlook() != Outlook::kSucceeded; }
  bool is_done() const override;

  /// The queue has it; nobody waits before.
  void set_value(std::uint64_t value) {
    value_ = value;
    keep_until(value);
  }
  /// Its command buffers and status word are in use until this timeline value has passed: a later
  /// submission may start from its status.
  std::uint64_t busy_until() const { return busy_until_; }
  void keep_until(std::uint64_t value) { busy_until_ = value; }
  /// Reads the status word, which may then be used again. The value has passed.
  void resolve();
  enum class Outlook : std::uint8_t { kSucceeded, kMayFail, kFailed };
  Outlook outlook() const;
  /// Where its status is, while it is pending.
  StatusReport report() const;

 private:
  /// The first check that failed, shared by the submissions that failed because of it.
  struct Failure {
    std::exception_ptr error;
    std::atomic<bool> is_reported{false};
  };
  /// What it failed with, or null, once its work is done.
  std::shared_ptr<Failure> settle();
  bool reports_itself() const { return !report_.sites->empty(); }
  enum class State : std::uint8_t { kPending, kDone, kFailed };

  std::shared_ptr<DeviceContext> context_;
  std::uint64_t value_ = 0;
  std::uint64_t busy_until_ = 0;  // under the device's lock
  mutable std::mutex mutex_;
  State state_ = State::kPending;
  StatusReport report_;
  std::vector<Pointer> dependencies_;
  std::shared_ptr<Failure> failure_;
  // Of a failure that is its own: every check that failed, the first of them failure_.
  struct FailedCheck {
    std::uint32_t bit;
    std::exception_ptr error;
  };
  std::vector<FailedCheck> failed_checks_;
};

}  // namespace vkml::vulkan
