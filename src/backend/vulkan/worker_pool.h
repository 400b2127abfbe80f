// Threads that compile pipelines and copy large blocks. Started at first use.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace vkml::vulkan {

class WorkerPool {
 public:
  WorkerPool() = default;
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  /// Calls task(0) .. task(count - 1) on at most `threads` threads, the caller among them, and
  /// returns when all are done. Throws the first exception of a task.
  void for_each(std::size_t count, std::size_t threads,
                const std::function<void(std::size_t)>& task);

  /// Threads that this machine can run at once.
  static std::size_t hardware_threads();

 private:
  void start(std::size_t threads);
  void work();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> jobs_;
  std::vector<std::thread> threads_;
  bool stopping_ = false;
};

/// Copies between host blocks, on at most `threads` threads, when that pays.
void copy_bytes(WorkerPool& workers, std::byte* target, const std::byte* source, std::size_t bytes,
                std::size_t threads);

}  // namespace vkml::vulkan
