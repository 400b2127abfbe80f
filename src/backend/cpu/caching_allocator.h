// CPU memory: aligned blocks, kept for reuse when freed.
//
// Fresh pages cost a factor of 2 to 4 on large tensors, so freed blocks wait in lists by size class
// (eight classes for each power of two), and large ones are aligned to huge pages and ask for them.
// The cache holds at most a quarter of the machine's memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "vkml/core/allocator.h"

namespace vkml::cpu {

class CachingAllocator final : public Allocator {
 public:
  /// One for the process, never destroyed: storages may outlive the backend.
  static CachingAllocator& instance();

  StoragePtr allocate(std::size_t bytes) override;
  std::string_view name() const override { return "cpu"; }
  Device device() const override { return kCpu; }

  /// Gives every cached block back to the system.
  void trim();
  /// Bytes taken from the system: live and cached.
  std::int64_t allocated_bytes() const;

  /// Around fork(): the child must not inherit a lock that a thread which it lacks holds.
  void lock_for_fork() { mutex_.lock(); }
  void unlock_after_fork() { mutex_.unlock(); }

 private:
  CachingAllocator() = default;
  void* take_cached(std::size_t block_bytes);
  void release(void* block, std::size_t block_bytes);

  mutable std::mutex mutex_;
  std::map<std::size_t, std::vector<void*>> free_;  // by block size
  std::int64_t cached_bytes_ = 0;
  std::int64_t system_bytes_ = 0;
};

}  // namespace vkml::cpu
