// What happens while somebody watches: kernels with their times, and spans of the host's work. Off,
// it costs one relaxed load for each place that would be noted.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "vkml/core/device.h"
#include "vkml/dispatch/kernel_cost.h"
#include "vkml/dispatch/kernel_timer.h"

namespace vkml::dispatch {

using KernelCosts = std::vector<KernelCost>;  // by kernel of a plan

/// One kernel that ran.
struct KernelRun {
  Device device;
  std::shared_ptr<const KernelCosts> plan;
  std::size_t kernel = 0;  // of the plan
  KernelTime time;
  TimeSource source = TimeSource::kDevice;
  std::uint64_t thread = 0;      // that handed it over, by the operating system's number
  std::uint64_t submission = 0;  // kernels that were handed over together have one number
  const KernelCost& cost() const { return (*plan)[kernel]; }
};

/// Work of the host, by what it is for. Spans of a thread lie inside one another.
enum class HostWork : std::uint8_t {
  kRealize,   // one call of realize(), all that follows included
  kReplay,    // the same of a recorded step
  kPlan,      // fusion and the memory plan of a graph that is not in the cache, and its compilation
  kCompile,   // kernels and pipelines of a plan
  kCommands,  // writing commands for the device
  kSubmit,    // handing them over
  kWait,      // for the device
  kUpload,    // a copy to the device
  kDownload,  // a copy to the host
};
const char* name_of(HostWork work);

struct HostSpan {
  HostWork work = HostWork::kRealize;
  KernelTime time;
  std::uint64_t thread = 0;
  std::int64_t bytes = 0;  // of copies
};

struct ProfileData {
  KernelTime time;              // of the whole profile
  std::vector<KernelRun> runs;  // by begin
  std::vector<HostSpan> spans;  // by begin
};

class ProfileLog;

/// Begins to note what all threads do. Throws ArgumentError while another profile is open.
void open_profile();
/// Waits for the devices, ends, and gives what was noted. What a device that is lost meanwhile did
/// not finish is not in it.
ProfileData close_profile();

namespace detail {
extern std::atomic<bool> profile_is_open;
}
inline bool profile_is_open() { return detail::profile_is_open.load(std::memory_order_relaxed); }

/// Notes the span from its construction to its end, if a profile is open at its beginning.
class HostTimer {
 public:
  explicit HostTimer(HostWork work, std::int64_t bytes = 0) {
    if (profile_is_open()) start(work, bytes);
  }
  ~HostTimer() {
    if (log_) stop();
  }
  HostTimer(const HostTimer&) = delete;
  HostTimer& operator=(const HostTimer&) = delete;

 private:
  void start(HostWork work, std::int64_t bytes);
  void stop() noexcept;

  std::shared_ptr<ProfileLog> log_;
  HostSpan span_;
};

/// The timer for a run of such a plan; null when nobody watches.
std::shared_ptr<KernelTimer> make_kernel_timer(const std::shared_ptr<const KernelCosts>& plan,
                                               Device device);
/// Whether runs are printed on stderr as they come to their end (VKML_DEBUG=2).
bool prints_runs();

}  // namespace vkml::dispatch
