// The log of the open profile. Whoever notes something holds a reference to the log, so that what
// ends after the profile is closed goes to a log that nobody reads.

#include "vkml/dispatch/profile_log.h"

#include <fmt/format.h>
#ifdef __linux__
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <mutex>
#include <new>
#include <thread>
#include <utility>

#include "vkml/core/environment.h"
#include "vkml/core/error.h"
#include "vkml/dispatch/backend.h"

namespace vkml::dispatch {

std::int64_t steady_now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// Everything that was noted, by any thread.
class ProfileLog {
 public:
  void add(const HostSpan& span) {
    const std::lock_guard lock(mutex_);
    data_.spans.push_back(span);
  }
  void add(std::span<const KernelRun> runs) {
    const std::lock_guard lock(mutex_);
    data_.runs.insert(data_.runs.end(), runs.begin(), runs.end());
  }
  ProfileData take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(data_, {});
  }

 private:
  std::mutex mutex_;
  ProfileData data_;
};

namespace detail {
std::atomic<bool> profile_is_open{false};
}

namespace {

struct OpenProfile {
  std::mutex mutex;
  std::shared_ptr<ProfileLog> log;  // null: none is open
  std::int64_t begin = 0;
};
/// Never destroyed: threads may note something while the process exits.
OpenProfile& open() {
  static auto* instance = new OpenProfile;
  return *instance;
}

std::shared_ptr<ProfileLog> current_log() {
  if (!profile_is_open()) return nullptr;
  const std::lock_guard lock(open().mutex);
  return open().log;
}

std::uint64_t thread_number() {
#ifdef __linux__
  return static_cast<std::uint64_t>(syscall(SYS_gettid));
#else
  return static_cast<std::uint64_t>(std::hash<std::thread::id>{}(std::this_thread::get_id()));
#endif
}

std::uint64_t next_submission() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

double rate(double amount, std::int64_t nanoseconds) {
  return nanoseconds > 0 ? amount / static_cast<double>(nanoseconds) : 0;
}

/// One run on stderr: a line for it, and one for each kernel.
void print(std::span<const KernelRun> runs) {
  if (runs.empty()) return;
  std::int64_t total = 0;
  for (const KernelRun& run : runs) total += run.time.end - run.time.begin;
  const KernelRun& first = runs.front();
  std::string text =
      fmt::format("vkml: run {} on {}: {} kernels, {:.1f} us{}\n", first.submission,
                  to_string(first.device), runs.size(), static_cast<double>(total) * 1e-3,
                  first.source == TimeSource::kHost ? " by the host's clock" : "");
  for (const KernelRun& run : runs) {
    const KernelCost& cost = run.cost();
    const std::int64_t taken = run.time.end - run.time.begin;
    const auto bytes = static_cast<double>(cost.bytes_read + cost.bytes_written);
    text += fmt::format("vkml: {:10.1f} us {:9.1f} GB/s {:10.1f} GFLOP/s  {} [{}]\n",
                        static_cast<double>(taken) * 1e-3, rate(bytes, taken),
                        rate(cost.flops, taken), cost.name, fmt::join(cost.extents, ", "));
  }
  std::fputs(text.c_str(), stderr);
}

class RunTimer final : public KernelTimer {
 public:
  RunTimer(std::shared_ptr<ProfileLog> log, std::shared_ptr<const KernelCosts> plan, Device device)
      : log_(std::move(log)), plan_(std::move(plan)), device_(device) {}

  void finished(std::span<const KernelTime> kernels, TimeSource source) noexcept override try {
    std::vector<KernelRun> runs;
    runs.reserve(kernels.size());
    for (std::size_t i = 0; i < kernels.size(); ++i)
      runs.push_back({device_, plan_, i, kernels[i], source, thread_, submission_});
    if (log_) log_->add(runs);
    if (prints_runs()) print(runs);
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
    // The run itself is done; it is missing in the profile alone.
  }

 private:
  std::shared_ptr<ProfileLog> log_;
  std::shared_ptr<const KernelCosts> plan_;
  Device device_;
  std::uint64_t thread_ = thread_number();
  std::uint64_t submission_ = next_submission();
};

}  // namespace

const char* name_of(HostWork work) {
  switch (work) {
    case HostWork::kRealize:
      return "realize";
    case HostWork::kReplay:
      return "replay";
    case HostWork::kPlan:
      return "plan";
    case HostWork::kCompile:
      return "compile";
    case HostWork::kCommands:
      return "record commands";
    case HostWork::kSubmit:
      return "submit";
    case HostWork::kWait:
      return "wait";
    case HostWork::kUpload:
      return "upload";
    case HostWork::kDownload:
      return "download";
  }
  return "";
}

void HostTimer::start(HostWork work, std::int64_t bytes) {
  log_ = current_log();
  span_ = {work, {steady_now(), 0}, thread_number(), bytes};
}

void HostTimer::stop() noexcept try {
  span_.time.end = steady_now();
  log_->add(span_);
} catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
  // What was timed is done; it is missing in the profile alone.
}

void open_profile() {
  const std::lock_guard lock(open().mutex);
  if (open().log) {
    throw ArgumentError(
        "[profile] another profile is open: one is, at a time, and it sees all threads. Close it "
        "first");
  }
  open().log = std::make_shared<ProfileLog>();
  open().begin = steady_now();
  detail::profile_is_open = true;
}

ProfileData close_profile() {
  for (const Device device : devices_in_use()) {
    try {
      backend_for(device).synchronize();
    } catch (const Error&) {  // NOLINT(bugprone-empty-catch)
      // A lost device: whoever reads its results hears of it.
    }
  }
  std::shared_ptr<ProfileLog> log;
  KernelTime time;
  {
    const std::lock_guard lock(open().mutex);
    detail::profile_is_open = false;
    log = std::exchange(open().log, nullptr);
    time = {open().begin, steady_now()};
  }
  if (!log) return {};
  ProfileData data = log->take();
  data.time = time;
  std::ranges::stable_sort(data.runs, {}, [](const KernelRun& run) { return run.time.begin; });
  // A span that holds another begins no later, and ends no earlier.
  std::ranges::stable_sort(data.spans, {}, [](const HostSpan& span) {
    return std::pair(span.time.begin, -span.time.end);
  });
  return data;
}

bool prints_runs() {
  static const bool prints = debug_level() >= 2;
  return prints;
}

std::shared_ptr<KernelTimer> make_kernel_timer(const std::shared_ptr<const KernelCosts>& plan,
                                               Device device) {
  std::shared_ptr<ProfileLog> log = current_log();
  if (!log && !prints_runs()) return nullptr;
  return std::make_shared<RunTimer>(std::move(log), plan, device);
}

}  // namespace vkml::dispatch
