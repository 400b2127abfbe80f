// The lock of one slot: held for a few loads and stores, almost never contended, taken by every
// operator for every operand. So a spin lock, which costs one atomic exchange and a store;
// recursive, since a view's slot locks its base's.
#pragma once

#include <atomic>
#include <thread>

namespace vkml {

class SlotLock {
 public:
  void lock() {
    const void* const self = this_thread();
    if (owner_.load(std::memory_order_relaxed) == self) {
      ++depth_;
      return;
    }
    const void* nobody = nullptr;
    while (!owner_.compare_exchange_weak(nobody, self, std::memory_order_acquire,
                                         std::memory_order_relaxed)) {
      if (nobody != nullptr) std::this_thread::yield();
      nobody = nullptr;
    }
    depth_ = 1;
  }
  void unlock() {
    if (--depth_ == 0) owner_.store(nullptr, std::memory_order_release);
  }

 private:
  /// An address that no other living thread has.
  static const void* this_thread() {
    static thread_local const char here = 0;
    return &here;
  }

  std::atomic<const void*> owner_{nullptr};
  int depth_ = 0;  // of the owner
};

}  // namespace vkml
