#include "threads.h"

#include <omp.h>
#include <pthread.h>

#include <atomic>
#include <exception>

#ifdef VKML_THREAD_SANITIZER
#include <sanitizer/tsan_interface.h>
#endif

namespace vkml::cpu {
namespace {

std::atomic<bool> g_forked{false};

void after_fork_in_child() { g_forked.store(true, std::memory_order_relaxed); }

[[maybe_unused]] const int kForkHandler = pthread_atfork(nullptr, nullptr, after_fork_in_child);

// ThreadSanitizer does not see how libgomp, which is not instrumented, hands work over: what was
// written before release(point) is read after acquire(point).
#ifdef VKML_THREAD_SANITIZER
void release(char& point) { __tsan_release(&point); }
void acquire(char& point) { __tsan_acquire(&point); }
#else
void release(char&) {}
void acquire(char&) {}
#endif

}  // namespace

int thread_count() { return g_forked.load(std::memory_order_relaxed) ? 1 : omp_get_max_threads(); }

void limit_openmp_after_fork() {
  if (g_forked.load(std::memory_order_relaxed)) omp_set_num_threads(1);
}

bool worth_threads(double nanoseconds) {
  constexpr double kBreakEven = 8000;
  return nanoseconds > kBreakEven && thread_count() > 1;
}

void run_parallel(int threads, ParallelBody body, void* context) {
  std::exception_ptr failure;
  char begun = 0, ended = 0;
  release(begun);
#pragma omp parallel num_threads(threads)
  {
    acquire(begun);
    try {
      // OpenMP may give fewer threads than asked for; each then takes several shares.
      for (int share = omp_get_thread_num(); share < threads; share += omp_get_num_threads()) {
        body(context, share, threads);
      }
    } catch (...) {
#pragma omp critical(vkml_parallel_failure)
      if (!failure) failure = std::current_exception();
    }
    release(ended);
  }
  acquire(ended);
  if (failure) std::rethrow_exception(failure);
}

}  // namespace vkml::cpu
