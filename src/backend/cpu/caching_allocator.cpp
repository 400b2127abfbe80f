#include "caching_allocator.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sys/mman.h>

#include <bit>
#include <cstdlib>

#include "machine.h"
#include "vkml/core/error.h"

namespace vkml::cpu {
namespace {

constexpr std::size_t kAlignment = 64;
constexpr std::size_t kHugePage = std::size_t{2} << 20;

// Sizes are rounded up to one of eight steps for each power of two: at most 1/8 is wasted.
std::size_t size_class(std::size_t bytes) {
  if (bytes <= kAlignment) return kAlignment;
  const std::size_t step = std::max(kAlignment, std::bit_floor(bytes - 1) / 8);
  return (bytes + step - 1) / step * step;
}

void* take_from_system(std::size_t bytes) {
  if (bytes < kHugePage) return std::aligned_alloc(kAlignment, bytes);
  void* block = std::aligned_alloc(kHugePage, (bytes + kHugePage - 1) / kHugePage * kHugePage);
  if (block != nullptr) madvise(block, bytes, MADV_HUGEPAGE);  // advice: failure costs only speed
  return block;
}

// Registered when the library is loaded, so before the locks of devices, and therefore taken after
// them: in the order in which everybody takes both.
[[maybe_unused]] const int kForkHandler =
    pthread_atfork([] { CachingAllocator::instance().lock_for_fork(); },
                   [] { CachingAllocator::instance().unlock_after_fork(); },
                   [] { CachingAllocator::instance().unlock_after_fork(); });

}  // namespace

CachingAllocator& CachingAllocator::instance() {
  static CachingAllocator* allocator = new CachingAllocator;
  return *allocator;
}

void* CachingAllocator::take_cached(std::size_t block_bytes) {
  const auto found = free_.find(block_bytes);
  if (found == free_.end() || found->second.empty()) return nullptr;
  void* block = found->second.back();
  found->second.pop_back();
  cached_bytes_ -= static_cast<std::int64_t>(block_bytes);
  return block;
}

StoragePtr CachingAllocator::allocate(std::size_t bytes) {
  const auto limit = static_cast<std::size_t>(memory_bytes());
  const auto fail = [&]() -> OutOfMemoryError {
    return OutOfMemoryError(
        fmt::format("[cpu] cannot allocate {} bytes: {} of {} bytes of memory are in use by vkML. "
                    "Free tensors, "
                    "or work in smaller pieces",
                    bytes, allocated_bytes(), limit));
  };
  if (bytes > limit) throw fail();
  const std::size_t block_bytes = size_class(bytes);
  void* block = nullptr;
  {
    const std::lock_guard lock(mutex_);
    block = take_cached(block_bytes);
  }
  if (block == nullptr) {
    // Linux overcommits: a request past physical memory must fail here, not when pages are touched.
    if (static_cast<std::size_t>(allocated_bytes()) + block_bytes > limit) trim();
    if (static_cast<std::size_t>(allocated_bytes()) + block_bytes > limit) throw fail();
    block = take_from_system(block_bytes);
    if (block == nullptr) {
      trim();
      block = take_from_system(block_bytes);
    }
    if (block == nullptr) throw fail();
    const std::lock_guard lock(mutex_);
    system_bytes_ += static_cast<std::int64_t>(block_bytes);
  }
  return std::make_shared<Storage>(
      kCpu, bytes, block, reinterpret_cast<std::uintptr_t>(block),
      [block_bytes](Storage& storage) { instance().release(storage.host(), block_bytes); });
}

void CachingAllocator::release(void* block, std::size_t block_bytes) {
  const auto size = static_cast<std::int64_t>(block_bytes);
  {
    const std::lock_guard lock(mutex_);
    if (cached_bytes_ + size <= memory_bytes() / 4) {
      free_[block_bytes].push_back(block);
      cached_bytes_ += size;
      return;
    }
    system_bytes_ -= size;
  }
  std::free(block);
}

void CachingAllocator::trim() {
  std::map<std::size_t, std::vector<void*>> blocks;
  {
    const std::lock_guard lock(mutex_);
    blocks.swap(free_);
    system_bytes_ -= cached_bytes_;
    cached_bytes_ = 0;
  }
  for (const auto& [bytes, list] : blocks) {
    for (void* block : list) std::free(block);
  }
}

std::int64_t CachingAllocator::allocated_bytes() const {
  const std::lock_guard lock(mutex_);
  return system_bytes_;
}

}  // namespace vkml::cpu
