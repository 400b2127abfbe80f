// The lock of one device, and how threads spend time on one. A thread that waits or computes for
// long may hold a lock of its language, such as Python's, that other threads and their callbacks
// need: whoever binds vkML says what to do about it.
#pragma once

#include <functional>
#include <mutex>
#include <vector>

#include "vkml/core/device.h"

namespace vkml::dispatch {

/// Calls `work`, which computes or waits for other threads.
using LongWorkRunner = void (*)(const std::function<void()>& work);

/// Sets what run_long() does from now on, for the process. The default just calls.
void set_long_work_runner(LongWorkRunner runner);

/// Calls `work` so that other threads go on meanwhile.
void run_long(const std::function<void()>& work);

/// A recursive mutex that is waited for in that way.
class DeviceMutex {
 public:
  void lock();
  bool try_lock() { return mutex_.try_lock(); }
  void unlock() { mutex_.unlock(); }

 private:
  std::recursive_mutex mutex_;
};

/// While it lives, no other thread realises anything or releases sources: a walk over a graph that
/// threads share sees it whole. Taken by backward passes.
class GraphLock {
 public:
  /// `device`: that of the graph. The other devices in use are locked too, since a graph may reach
  /// over to them.
  explicit GraphLock(Device device);

 private:
  std::vector<std::unique_lock<DeviceMutex>> locks_;
};

}  // namespace vkml::dispatch
