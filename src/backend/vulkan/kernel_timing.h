// When the kernels of a run began and ended: timestamps that the device writes round each, or,
// where its queue has none, the host's clock round submissions of one kernel each.
#pragma once

#include <vulkan/vulkan_core.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "device_context.h"
#include "vkml/dispatch/kernel_timer.h"

namespace vkml::vulkan {

class FramePool;

/// Timestamps of the device as times of the host's clock.
class DeviceClock {
 public:
  explicit DeviceClock(DeviceContext& context) : context_(context) {}

  /// Whether the queue writes timestamps.
  bool has_timestamps() const { return context_.profile().timestamp_bits > 0; }
  /// Compares the clocks, for which the device must come to rest: at first use, and again when
  /// they may have drifted apart and the device rests anyway.
  void calibrate(FramePool& frames);
  /// The host's time of a timestamp. Timestamps wrap: of the times that it may mean, the nearest to
  /// now is the one.
  std::int64_t host_time(std::uint64_t ticks, std::int64_t now) const;

 private:
  DeviceContext& context_;
  bool is_calibrated_ = false;
  std::uint64_t ticks_ = 0;     // at
  std::int64_t host_time_ = 0;  // this time
};

/// The same without a device: `bits` is how many of a timestamp's bits count, `period` the
/// nanoseconds between two.
std::int64_t host_time_of(std::uint64_t ticks, std::uint64_t known_ticks, std::int64_t known_time,
                          std::int64_t now, std::uint32_t bits, double period);

/// The times of one run. Used under the device's lock.
class KernelTiming {
 public:
  /// `queries`: two for each kernel; null: the host's clock.
  KernelTiming(std::shared_ptr<const DeviceClock> clock, VkQueryPool queries,
               std::shared_ptr<dispatch::KernelTimer> timer, std::size_t kernels);

  /// Whether each kernel has to be submitted by itself, in run_alone().
  bool uses_host_clock() const { return queries_ == VK_NULL_HANDLE; }
  /// Into the first command buffer.
  void begin(const DeviceFunctions& vk, VkCommandBuffer commands);
  /// Round all dispatches of a kernel, which runs alone.
  void begin_kernel(const DeviceFunctions& vk, VkCommandBuffer commands, int kernel);
  void end_kernel(const DeviceFunctions& vk, VkCommandBuffer commands);
  /// Runs `work`, which hands over commands of the kernel begun last and waits for them.
  template <typename Work>
  void run_alone(Work work) {
    const std::int64_t begin = dispatch::steady_now();
    work();
    add_host_time(begin, dispatch::steady_now());
  }
  /// Tells the timer; the run is done.
  void report(const DeviceContext& context) noexcept;

 private:
  void add_host_time(std::int64_t begin, std::int64_t end);
  void read_timestamps(const DeviceContext& context);

  std::shared_ptr<const DeviceClock> clock_;
  VkQueryPool queries_;
  std::shared_ptr<dispatch::KernelTimer> timer_;
  std::vector<dispatch::KernelTime> times_;  // by kernel of the plan
  std::vector<int> begun_;                   // kernels with dispatches, in order
};

}  // namespace vkml::vulkan
