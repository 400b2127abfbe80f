// The threads that kernels are shared out to.
//
// They watch for work for a while before they sleep: waking a sleeping thread costs 50 to 200 us on
// a virtual machine, as much as a small kernel. Watching is good on idle cores and ruinous on
// contended ones, where the watcher takes the time slice that the thread it waits for needs. A
// watcher notices when it is taken off its core: then all watch for a few microseconds only, for
// the next tenth of a second. And nobody waits for a thread that has not begun: shares go to
// whoever asks first, and the caller asks until there are none.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace vkml::cpu {

using ParallelBody = void (*)(void* context, int share, int shares);

class Workers {
 public:
  /// `count` threads beside the caller's, which live as long as the process.
  explicit Workers(int count);

  /// Calls body(context, share, shares) once for each share, which are at most 65,535, and returns
  /// when all are done. False, with nothing done, if another thread is doing this. `body` must not
  /// throw.
  bool run(int shares, ParallelBody body, void* context);

  /// Sends watchers to sleep, for a library whose own threads need the cores.
  void rest() { is_resting_.store(true, std::memory_order_relaxed); }

 private:
  using Clock = std::chrono::steady_clock;

  void work();
  bool has_shares() const;
  /// Takes the next share and carries it out; false if there is none.
  bool take_share();
  /// Watches until `done()`, as long as that is worth it; whether it was done.
  template <typename Done>
  bool watch(Done done);
  void note_contention(Clock::time_point now);
  Clock::duration patience(Clock::time_point now) const;

  std::mutex in_use_;

  // What is to be done: written while no share is being carried out.
  ParallelBody body_ = nullptr;
  void* context_ = nullptr;
  // The number of the run, its shares (16 bits) and the next of them (16 bits).
  alignas(64) std::atomic<std::uint64_t> ticket_{0};
  alignas(64) std::atomic<int> undone_{0};
  alignas(64) std::atomic<int> sleepers_{0};
  std::atomic<bool> is_resting_{false};
  std::atomic<Clock::rep> contended_until_{0};
  std::mutex sleep_;
  std::condition_variable wake_, finished_;
};

}  // namespace vkml::cpu
