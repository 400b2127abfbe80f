// The lock of one device. A thread that must wait for it may hold a lock of its language, such as
// Python's, that the owner's callbacks need: whoever binds vkML says how to wait then.
#pragma once

#include <functional>
#include <mutex>

namespace vkml::dispatch {

/// Calls `wait`, which blocks until another thread is done with a device.
using BlockingWait = void (*)(const std::function<void()>& wait);

/// Sets how threads wait from now on, for the process. The default just waits.
void set_blocking_wait(BlockingWait wait);

/// A recursive mutex that waits in that way.
class DeviceMutex {
 public:
  void lock();
  bool try_lock() { return mutex_.try_lock(); }
  void unlock() { mutex_.unlock(); }

 private:
  std::recursive_mutex mutex_;
};

}  // namespace vkml::dispatch
