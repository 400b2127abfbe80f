// The lock of one slot: held for a few loads and stores, almost never contended, taken by every
// operator for every operand. So a spin lock, which costs one atomic exchange and a store.
#pragma once

#include <atomic>
#include <mutex>
#include <thread>

namespace vkml {

class SlotLock {
 public:
  void lock() {
    while (is_held_.exchange(true, std::memory_order_acquire)) std::this_thread::yield();
  }
  void unlock() { is_held_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> is_held_{false};
};

}  // namespace vkml
