// Profile: what ran while it was open, on every device and from every thread: kernels with the time
// that they took on their device, what that is of what the device can do, and the host's work.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "vkml/core/device.h"
#include "vkml/dispatch/profile_log.h"

namespace vkml {

using dispatch::HostSpan;
using dispatch::HostWork;
using dispatch::KernelCost;
using dispatch::KernelRun;
using dispatch::TimeSource;

/// Runs of one kernel: equal name, extents and traffic, on one device.
struct KernelSummary {
  KernelCost cost;  // of one run
  Device device;
  TimeSource source = TimeSource::kDevice;
  std::int64_t count = 0;
  double seconds = 0;                  // of all runs together
  double shortest = 0;                 // seconds of one run
  std::vector<std::uint64_t> threads;  // that handed it over, ascending
  /// Of the time of all runs, how much the device would need at its best: the larger of traffic
  /// over the bandwidth of a long copy, and, of products, operations over the rate of a large
  /// product, both as measured by vkML on this device. None where they were not measured. Above 1
  /// where a cache holds the data.
  std::optional<double> share_of_roof;

  double bytes_per_second() const;
  double flops_per_second() const;
};

/// All of the host's work of one kind. Work lies inside other work: the sums overlap.
struct HostSummary {
  HostWork work = HostWork::kRealize;
  std::int64_t count = 0;
  double seconds = 0;
  std::int64_t bytes = 0;  // of copies
};

/// Open from construction until close(), which the destructor calls too. One is open at a time.
/// While it is, kernels run one after the other, and recorded steps are handed over afresh.
class Profile {
 public:
  /// Throws ArgumentError while another one is open.
  Profile();
  ~Profile();
  Profile(const Profile&) = delete;
  Profile& operator=(const Profile&) = delete;

  /// Waits for all devices, and ends.
  void close();
  bool is_open() const { return is_open_; }

  // All below throw ArgumentError while it is open.

  /// Every kernel that ran, by its beginning.
  const std::vector<KernelRun>& runs() const;
  /// The same by kernel, the longest first. `with_roof`: measures the devices' roofs at first use
  /// in a process, which takes some tenths of a second (not while another profile is open).
  std::vector<KernelSummary> kernels(bool with_roof = true) const;
  /// The host's work, by its beginning.
  const std::vector<HostSpan>& spans() const;
  std::vector<HostSummary> host() const;
  /// From opening to closing.
  double seconds() const;

  /// Kernels and the host's work as text; at most `rows` kernels.
  std::string table(std::size_t rows = 30, bool with_roof = true) const;
  /// Writes a trace that chrome://tracing and ui.perfetto.dev show. A file that is there is
  /// replaced as a whole or not at all. Throws FileError.
  void write_trace(const std::string& path) const;

 private:
  const dispatch::ProfileData& data() const;

  bool is_open_ = true;
  dispatch::ProfileData data_;
};

}  // namespace vkml
