#include "threads.h"

#include <omp.h>
#include <pthread.h>

#include <atomic>
#include <exception>
#include <mutex>

namespace vkml::cpu {
namespace {

std::atomic<bool> g_forked{false};
std::atomic<bool> g_has_workers{false};

void after_fork_in_child() { g_forked.store(true, std::memory_order_relaxed); }

[[maybe_unused]] const int kForkHandler = pthread_atfork(nullptr, nullptr, after_fork_in_child);

// Made for as many threads as the first region wants; never destroyed, since its threads live as
// long as the process.
Workers& workers() {
  static auto* const made = new Workers(omp_get_max_threads() - 1);
  return *made;
}

}  // namespace

int thread_count() { return g_forked.load(std::memory_order_relaxed) ? 1 : omp_get_max_threads(); }

void limit_openmp_after_fork() {
  if (g_forked.load(std::memory_order_relaxed)) omp_set_num_threads(1);
}

bool worth_threads(double nanoseconds) {
  constexpr double kBreakEven = 8000;
  return nanoseconds > kBreakEven && thread_count() > 1;
}

SingleThreaded::SingleThreaded() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
SingleThreaded::~SingleThreaded() { omp_set_num_threads(before_); }

void rest_workers() {
  if (g_has_workers.load(std::memory_order_relaxed)) workers().rest();
}

void run_parallel(int threads, ParallelBody body, void* context) {
  struct Guarded {
    ParallelBody body;
    void* context;
    std::exception_ptr failure;
    std::mutex mutex;
  } guarded{body, context, nullptr, {}};
  const ParallelBody run_share = [](void* opaque, int share, int shares) {
    auto& state = *static_cast<Guarded*>(opaque);
    try {
      state.body(state.context, share, shares);
    } catch (...) {
      const std::lock_guard lock(state.mutex);
      if (!state.failure) state.failure = std::current_exception();
    }
  };
  bool is_done = false;
  if (!g_forked.load(std::memory_order_relaxed)) {
    is_done = workers().run(threads, run_share, &guarded);
    g_has_workers.store(true, std::memory_order_relaxed);
  }
  for (int share = 0; !is_done && share < threads; ++share) run_share(&guarded, share, threads);
  if (guarded.failure) std::rethrow_exception(guarded.failure);
}

}  // namespace vkml::cpu
