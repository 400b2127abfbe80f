#include "workers.h"

#include <omp.h>
#include <pthread.h>
#include <signal.h>

#include <system_error>
#include <thread>

namespace vkml::cpu {
namespace {

using namespace std::chrono_literals;

constexpr auto kPatience = 200us;
constexpr auto kPatienceWhenContended = 5us;
constexpr auto kContendedFor = 100ms;
// A turn of watching takes a microsecond; one that takes this long was interrupted by a program.
constexpr auto kInterrupted = 500us;
constexpr int kLooksATurn = 32;

int next_of(std::uint64_t ticket) { return static_cast<int>(ticket & 0xffff); }
int shares_of(std::uint64_t ticket) { return static_cast<int>(ticket >> 16 & 0xffff); }

void pause_briefly() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

Workers::Workers(int count) {
  // Signals are for the threads of the program.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    for (int worker = 0; worker < count; ++worker) std::thread([this] { work(); }).detach();
  } catch (const std::system_error&) {
    // The system gives no more: the others take the shares.
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

bool Workers::has_shares() const {
  const std::uint64_t ticket = ticket_.load();
  return next_of(ticket) < shares_of(ticket);
}

bool Workers::take_share() {
  std::uint64_t ticket = ticket_.load();
  do {
    if (next_of(ticket) >= shares_of(ticket)) return false;
  } while (!ticket_.compare_exchange_weak(ticket, ticket + 1));
  body_(context_, next_of(ticket), shares_of(ticket));
  if (undone_.fetch_sub(1) == 1) {
    // The caller may be asleep: it looks again under the lock.
    const std::lock_guard sleep(sleep_);
    finished_.notify_one();
  }
  return true;
}

bool Workers::run(int shares, ParallelBody body, void* context) {
  const std::unique_lock lock(in_use_, std::try_to_lock);
  if (!lock) return false;
  body_ = body;
  context_ = context;
  is_resting_.store(false, std::memory_order_relaxed);
  undone_.store(shares, std::memory_order_relaxed);
  // Sequentially consistent, as the count of sleepers is: either this sees a sleeper, or the
  // sleeper sees the shares.
  const std::uint64_t number = (ticket_.load(std::memory_order_relaxed) >> 32) + 1;
  ticket_.store(number << 32 | static_cast<std::uint64_t>(shares) << 16);
  const bool all_watched = sleepers_.load() == 0;
  if (!all_watched) {
    const std::lock_guard sleep(sleep_);
    wake_.notify_all();
  }
  const Clock::time_point start = Clock::now();
  while (take_share()) {
  }
  const Clock::time_point end = Clock::now();
  const auto done = [this] { return undone_.load(std::memory_order_acquire) == 0; };
  if (!watch(done)) {
    // Shares are about equal: who takes that much longer was interrupted.
    if (all_watched && end - start < kPatience) note_contention(end);
    std::unique_lock sleep(sleep_);
    finished_.wait(sleep, done);
  }
  return true;
}

void Workers::work() {
  // A library that is called from here shares its work out no further.
  omp_set_num_threads(1);
  for (;;) {
    watch([this] { return has_shares() || is_resting_.load(std::memory_order_relaxed); });
    if (take_share()) continue;
    std::unique_lock sleep(sleep_);
    sleepers_.fetch_add(1);
    wake_.wait(sleep, [this] { return has_shares(); });
    sleepers_.fetch_sub(1);
  }
}

template <typename Done>
bool Workers::watch(Done done) {
  if (done()) return true;
  const Clock::time_point start = Clock::now();
  Clock::time_point before = start;
  const Clock::duration limit = patience(start);
  for (;;) {
    for (int look = 0; look < kLooksATurn; ++look) {
      if (done()) return true;
      pause_briefly();
    }
    const Clock::time_point now = Clock::now();
    if (now - before > kInterrupted) note_contention(now);
    if (now - start > limit) return done();
    before = now;
  }
}

void Workers::note_contention(Clock::time_point now) {
  contended_until_.store((now + kContendedFor).time_since_epoch().count(),
                         std::memory_order_relaxed);
}

Workers::Clock::duration Workers::patience(Clock::time_point now) const {
  const bool is_contended =
      now.time_since_epoch().count() < contended_until_.load(std::memory_order_relaxed);
  return is_contended ? Clock::duration(kPatienceWhenContended) : Clock::duration(kPatience);
}

}  // namespace vkml::cpu
