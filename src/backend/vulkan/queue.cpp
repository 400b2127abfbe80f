#include "queue.h"

#include <fmt/format.h>

#include <chrono>

#include "check.h"
#include "vk_struct.h"
#include "vkml/core/error.h"
#include "vkml/dispatch/profile_log.h"

namespace vkml::vulkan {

namespace {

using Clock = std::chrono::steady_clock;

// Work is submitted in pieces of well under a second on a GPU, so half a minute without progress
// means that it hangs; not every driver says so by itself. A software driver may honestly need long
// for one dispatch.
constexpr std::chrono::seconds kStuckAfter{30};
constexpr std::chrono::seconds kStuckAfterSoftware{3600};

// Waking a sleeping thread takes longer than most small submissions.
constexpr std::chrono::microseconds kSpin{40};

}  // namespace

Queue::Queue(const DeviceFunctions& vk, VkDevice device, std::uint32_t family, bool is_software)
    : vk_(vk), device_(device), is_software_(is_software) {
  vk_.GetDeviceQueue(device_, family, 0, &queue_);
  auto type = vk_struct<VkSemaphoreTypeCreateInfo>(VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO);
  type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
  auto info = vk_struct<VkSemaphoreCreateInfo>(VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO);
  info.pNext = &type;
  check(vk_.CreateSemaphore(device_, &info, nullptr, &timeline_), "vkCreateSemaphore");
}

Queue::~Queue() { vk_.DestroySemaphore(device_, timeline_, nullptr); }

void Queue::lose(const char* call, VkResult result) {
  if (result == VK_ERROR_DEVICE_LOST) lost_ = true;
  check(result, call);
}

std::uint64_t Queue::submit(std::span<const VkCommandBuffer> commands) {
  const dispatch::HostTimer timer(dispatch::HostWork::kSubmit);
  const std::lock_guard lock(mutex_);
  if (is_lost()) lose("vkQueueSubmit", VK_ERROR_DEVICE_LOST);
  const std::uint64_t value = submitted_.load(std::memory_order_relaxed) + 1;
  auto timeline =
      vk_struct<VkTimelineSemaphoreSubmitInfo>(VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO);
  timeline.signalSemaphoreValueCount = 1;
  timeline.pSignalSemaphoreValues = &value;
  auto info = vk_struct<VkSubmitInfo>(VK_STRUCTURE_TYPE_SUBMIT_INFO);
  info.pNext = &timeline;
  info.commandBufferCount = static_cast<std::uint32_t>(commands.size());
  info.pCommandBuffers = commands.data();
  info.signalSemaphoreCount = 1;
  info.pSignalSemaphores = &timeline_;
  lose("vkQueueSubmit", vk_.QueueSubmit(queue_, 1, &info, VK_NULL_HANDLE));
  submitted_.store(value, std::memory_order_release);
  return value;
}

std::uint64_t Queue::completed() {
  std::uint64_t value = 0;
  const VkResult result = vk_.GetSemaphoreCounterValue(device_, timeline_, &value);
  if (result == VK_ERROR_DEVICE_LOST) lost_ = true;
  std::uint64_t known = completed_.load(std::memory_order_relaxed);
  if (result != VK_SUCCESS) return known;
  while (known < value && !completed_.compare_exchange_weak(known, value)) {
  }
  return std::max(known, value);
}

void Queue::probe() {
  const std::lock_guard lock(mutex_);
  lose("vkQueueSubmit", vk_.QueueSubmit(queue_, 0, nullptr, VK_NULL_HANDLE));
}

VkResult Queue::wait_for(std::uint64_t value, std::uint64_t nanoseconds) {
  auto info = vk_struct<VkSemaphoreWaitInfo>(VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO);
  info.semaphoreCount = 1;
  info.pSemaphores = &timeline_;
  info.pValues = &value;
  return vk_.WaitSemaphores(device_, &info, nanoseconds);
}

void Queue::wait(std::uint64_t value) {
  if (completed_.load(std::memory_order_acquire) >= value || completed() >= value) return;
  const dispatch::HostTimer timer(dispatch::HostWork::kWait);
  if (!is_software_) {
    const auto until = Clock::now() + kSpin;
    while (Clock::now() < until) {
      if (completed() >= value) return;
    }
  }
  const auto patience = is_software_ ? kStuckAfterSoftware : kStuckAfter;
  std::uint64_t before = completed();
  auto deadline = Clock::now() + patience;
  while (completed() < value) {
    if (is_lost()) lose("vkWaitSemaphores", VK_ERROR_DEVICE_LOST);
    const VkResult result = wait_for(value, 1'000'000'000);
    lose("vkWaitSemaphores", result);
    if (result == VK_TIMEOUT) probe();
    if (const std::uint64_t now = completed(); now != before) {
      before = now;
      deadline = Clock::now() + patience;
    }
    if (Clock::now() > deadline) {
      lost_ = true;
      throw DeviceError(fmt::format(
          "[vulkan] the device has finished nothing for {} s and is given up. Use smaller "
          "batches, or vkml.cpu",
          patience.count()));
    }
  }
}

void Queue::drain(double seconds) noexcept {
  if (is_lost()) return;
  wait_for(submitted(), static_cast<std::uint64_t>(seconds * 1e9));
}

}  // namespace vkml::vulkan
