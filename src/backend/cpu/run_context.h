// What kernels see of a run: addresses, run-time scalars, and the status word.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

namespace vkml::cpu {

/// The first data-dependent index that was out of bounds, first in the order of elements.
class Status {
 public:
  struct Failure {
    std::int64_t site = 0;
    std::int64_t index = 0;
    std::int64_t ordinal = 0;
  };

  bool failed() const { return failed_.load(std::memory_order_acquire); }
  void report(const Failure& failure) {
    const std::lock_guard lock(mutex_);
    if (!failed() || failure.ordinal < first_.ordinal) first_ = failure;
    failed_.store(true, std::memory_order_release);
  }
  const Failure& first() const { return first_; }

 private:
  std::atomic<bool> failed_{false};
  std::mutex mutex_;
  Failure first_;
};

struct RunContext {
  std::byte* const* buffers = nullptr;  // by ExecutionGraph::buffers; bindings' offsets included
  const std::uint64_t* scalars = nullptr;
  Status* status = nullptr;
};

}  // namespace vkml::cpu
