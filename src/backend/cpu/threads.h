// Threads: our own (workers.h) for our loops and for products that we share out ourselves,
// libgomp's for what oneDNN shares out.
//
// A forked child would wait for threads that fork() did not copy, so it runs single-threaded. An
// empty parallel region costs about 1.5 us: callers ask for one only for work worth several of it.
#pragma once

#include <cstdint>
#include <utility>

#include "workers.h"

namespace vkml::cpu {

/// Threads to use from here on: OMP_NUM_THREADS or the cores of this process; 1 in a forked child.
int thread_count();

/// Makes other users of OpenMP on this thread keep to thread_count() in a forked child.
void limit_openmp_after_fork();

/// Whether work estimated at `nanoseconds` gains from more than one thread.
bool worth_threads(double nanoseconds);

/// Which of `count` items a thread of `threads` owns: contiguous, sizes differing by at most one.
struct Share {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};
constexpr Share share_of(std::int64_t count, int thread, int threads) {
  return {count * thread / threads, count * (thread + 1) / threads};
}

/// Leaves the cores to the threads of a library that is about to be called.
void rest_workers();

/// Keeps libraries that are called on this thread from sharing work out while it lives.
class SingleThreaded {
 public:
  SingleThreaded();
  ~SingleThreaded();
  SingleThreaded(const SingleThreaded&) = delete;
  SingleThreaded& operator=(const SingleThreaded&) = delete;

 private:
  int before_;
};

/// Runs body(context, share, shares) once for each share, on as many threads as there are; rethrows
/// an exception.
void run_parallel(int threads, ParallelBody body, void* context);

/// Splits [0, count) into contiguous shares and calls body(begin, end) for each.
template <typename Body>
void parallel_shares(std::int64_t count, bool parallel, Body&& body) {
  if (count <= 0) return;
  int threads = parallel ? thread_count() : 1;
  if (threads > count) threads = static_cast<int>(count);
  if (threads <= 1) {
    body(std::int64_t{0}, count);
    return;
  }
  struct Context {
    Body* body;
    std::int64_t count;
  } context{&body, count};
  run_parallel(
      threads,
      [](void* opaque, int thread, int team) {
        auto* state = static_cast<Context*>(opaque);
        const Share share = share_of(state->count, thread, team);
        if (share.begin < share.end) (*state->body)(share.begin, share.end);
      },
      &context);
}

}  // namespace vkml::cpu
