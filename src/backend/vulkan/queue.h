// The compute queue and its timeline: every submission gets the next value, and a value passes when
// that submission and all before it are done.
#pragma once

#include <vulkan/vulkan_core.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <span>

#include "loader.h"

namespace vkml::vulkan {

class Queue {
 public:
  Queue(const DeviceFunctions& vk, VkDevice device, std::uint32_t family, bool is_software);
  ~Queue();
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  /// Hands over command buffers, to run one after the other, and returns their value. Throws
  /// DeviceError when the device is lost.
  std::uint64_t submit(std::span<const VkCommandBuffer> commands);
  std::uint64_t submit(VkCommandBuffer commands) { return submit(std::span(&commands, 1)); }
  /// The last value given out.
  std::uint64_t submitted() const { return submitted_.load(std::memory_order_acquire); }
  /// The last value that has passed.
  std::uint64_t completed();
  /// Returns when the value has passed. Throws DeviceError when the device is lost, or when nothing
  /// has passed for so long that it must be stuck.
  void wait(std::uint64_t value);
  /// For exit handlers: waits for at most `seconds`, throws nothing.
  void drain(double seconds) noexcept;
  bool is_lost() const { return lost_.load(std::memory_order_relaxed); }

 private:
  void lose(const char* call, VkResult result);
  /// Some drivers tell of a lost device only when work is handed to it.
  void probe();
  VkResult wait_for(std::uint64_t value, std::uint64_t nanoseconds);

  const DeviceFunctions& vk_;
  VkDevice device_;
  bool is_software_;
  VkQueue queue_ = VK_NULL_HANDLE;
  VkSemaphore timeline_ = VK_NULL_HANDLE;
  std::mutex mutex_;  // the queue is used by one thread at a time
  std::atomic<std::uint64_t> submitted_{0};
  std::atomic<std::uint64_t> completed_{0};
  std::atomic<bool> lost_{false};
};

}  // namespace vkml::vulkan
