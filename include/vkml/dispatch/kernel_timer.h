// The hook of profilers: a backend that is handed a KernelTimer tells it when the kernels of the
// run ran. Without one a run costs a test of a pointer more.
#pragma once

#include <cstdint>
#include <span>

namespace vkml::dispatch {

/// Whose clock timed a kernel.
enum class TimeSource : std::uint8_t {
  kDevice,  // the device's own, at the kernel's begin and end
  kHost     // the host's, round the kernel: what it takes to hand the kernel over is in it
};

/// Nanoseconds of std::chrono::steady_clock.
struct KernelTime {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

class KernelTimer {
 public:
  virtual ~KernelTimer() = default;
  /// Called once for a run that came to its end or failed on an index, with the times of the
  /// plan's kernels in order, the last of which are missing where they did not run. From any
  /// thread, under the backend's locks, when Backend::synchronize() returns at the latest.
  virtual void finished(std::span<const KernelTime> kernels, TimeSource source) noexcept = 0;
};

/// Now, as in KernelTime.
std::int64_t steady_now();

}  // namespace vkml::dispatch
