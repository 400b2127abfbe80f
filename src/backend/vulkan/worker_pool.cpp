#include "worker_pool.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>

#include "process_state.h"

namespace vkml::vulkan {

WorkerPool::~WorkerPool() {
  if (!vulkan_is_usable()) {
    // A forked child has no such threads, and at exit they may be inside the driver.
    for (std::thread& thread : threads_) thread.detach();
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

std::size_t WorkerPool::hardware_threads() {
  return std::max<std::size_t>(std::thread::hardware_concurrency(), 1);
}

void WorkerPool::start(std::size_t threads) {
  const std::lock_guard lock(mutex_);
  while (threads_.size() < threads) threads_.emplace_back([this] { work(); });
}

void WorkerPool::work() {
  for (;;) {
    std::function<void()> job;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return stopping_ || !jobs_.empty(); });
      if (jobs_.empty()) return;
      job = std::move(jobs_.front());
      jobs_.pop_front();
    }
    job();
  }
}

void WorkerPool::for_each(std::size_t count, std::size_t threads,
                          const std::function<void(std::size_t)>& task) {
  threads = std::min({threads, hardware_threads(), count});
  if (threads <= 1) {
    for (std::size_t i = 0; i < count; ++i) task(i);
    return;
  }

  // Shared with jobs, which may start only after the caller has done all the work and returned.
  struct Progress {
    std::atomic<std::size_t> next{0};
    std::mutex mutex;
    std::condition_variable finished;
    std::size_t done = 0;
    std::exception_ptr failure;
  };
  const auto progress = std::make_shared<Progress>();
  const auto help = [progress, count, &task] {
    for (;;) {
      const std::size_t i = progress->next.fetch_add(1);
      if (i >= count) return;
      std::exception_ptr failure;
      try {
        task(i);
      } catch (...) {
        failure = std::current_exception();
      }
      const std::lock_guard lock(progress->mutex);
      if (failure && !progress->failure) progress->failure = failure;
      if (++progress->done == count) progress->finished.notify_one();
    }
  };
  start(threads - 1);
  {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 1; i < threads; ++i) jobs_.emplace_back(help);
  }
  wake_.notify_all();
  help();
  std::unique_lock lock(progress->mutex);
  progress->finished.wait(lock, [&] { return progress->done == count; });
  if (progress->failure) std::rethrow_exception(progress->failure);
}

void copy_bytes(WorkerPool& workers, std::byte* target, const std::byte* source, std::size_t bytes,
                std::size_t threads) {
  constexpr std::size_t kWorthSharing = 512u << 10;
  constexpr std::size_t kPiece = 256u << 10;
  if (bytes == 0) return;
  if (bytes < kWorthSharing) {
    std::memcpy(target, source, bytes);
    return;
  }
  const std::size_t pieces = (bytes + kPiece - 1) / kPiece;
  workers.for_each(pieces, threads, [&](std::size_t i) {
    const std::size_t begin = i * kPiece;
    std::memcpy(target + begin, source + begin, std::min(kPiece, bytes - begin));
  });
}

}  // namespace vkml::vulkan
