// How many objects of a kind are alive, counted without atomic read-modify-writes: each thread
// counts for itself what it makes and drops.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

namespace vkml::graph {

/// The count of one kind, whose `Tag` tells it apart.
template <typename Tag>
class LiveCount {
 public:
  static void add(std::int64_t change) {
    if (Own* own = this_thread()) {
      // Only this thread writes it.
      own->count.store(own->count.load(std::memory_order_relaxed) + change,
                       std::memory_order_relaxed);
    } else {
      all().ended.fetch_add(change, std::memory_order_relaxed);
    }
  }
  /// Exact when no other thread makes or drops any meanwhile.
  static std::int64_t total() {
    const std::scoped_lock lock(all().mutex);
    std::int64_t sum = all().ended.load(std::memory_order_relaxed);
    for (const Own* own : all().threads) sum += own->count.load(std::memory_order_relaxed);
    return sum;
  }

 private:
  struct Own {
    std::atomic<std::int64_t> count{0};
    bool* gone;

    explicit Own(bool* flag) : gone(flag) {
      const std::scoped_lock lock(all().mutex);
      all().threads.push_back(this);
    }
    ~Own() {
      const std::scoped_lock lock(all().mutex);
      std::erase(all().threads, this);
      all().ended.fetch_add(count.load(std::memory_order_relaxed), std::memory_order_relaxed);
      *gone = true;
    }
    Own(const Own&) = delete;
    Own& operator=(const Own&) = delete;
  };
  struct All {
    std::mutex mutex;
    std::vector<Own*> threads;
    std::atomic<std::int64_t> ended{0};  // by threads that are gone
  };
  static All& all() {
    static auto* instance = new All;
    return *instance;
  }
  /// Null once the thread is being torn down: objects may outlive its count.
  static Own* this_thread() {
    thread_local bool gone = false;
    if (gone) return nullptr;
    thread_local Own own(&gone);
    return &own;
  }
};

}  // namespace vkml::graph
