// A profile as text.

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "vkml/api/profile.h"

namespace vkml {
namespace {

constexpr std::size_t kNameWidth = 44;

std::string cut(const std::string& text, std::size_t width) {
  return text.size() <= width ? text : text.substr(0, width - 3) + "...";
}

/// Without the extents of 1 that pad it on the left.
std::string shape_of(const KernelCost& cost) {
  const auto first = std::ranges::find_if(cost.extents, [](auto extent) { return extent != 1; });
  return fmt::format("{}", fmt::join(first, cost.extents.end(), "x"));
}

/// "12.3 %"; "-" where it is not known.
std::string percent(std::optional<double> share) {
  return share ? fmt::format("{:.1f} %", 100 * *share) : std::string("-");
}

std::string kernel_row(const KernelSummary& kernel, double all) {
  const double count = static_cast<double>(kernel.count);
  return fmt::format(
      "{:<{}} {:<9} {:>16} {:>6} {:>10.3f} {:>10.2f} {:>7} {:>8.1f} {:>9.1f} {:>8}\n",
      cut(kernel.cost.name, kNameWidth), kNameWidth, to_string(kernel.device),
      shape_of(kernel.cost), kernel.count, 1e3 * kernel.seconds, 1e6 * kernel.seconds / count,
      percent(kernel.seconds / all), 1e-9 * kernel.bytes_per_second(),
      1e-9 * kernel.flops_per_second(), percent(kernel.share_of_roof));
}

std::string host_row(const HostSummary& work) {
  std::string row =
      fmt::format("{:<16} {:>8} {:>10.3f} {:>10.2f}", name_of(work.work), work.count,
                  1e3 * work.seconds, 1e6 * work.seconds / static_cast<double>(work.count));
  if (work.bytes > 0) row += fmt::format(" {:>9.3f}", 1e-6 * static_cast<double>(work.bytes));
  return row + "\n";
}

}  // namespace

std::string Profile::table(std::size_t rows, bool with_roof) const {
  const std::vector<KernelSummary> found = kernels(with_roof);
  double all = 0;
  std::int64_t count = 0;
  std::set<std::string> timed_by_host;
  for (const KernelSummary& kernel : found) {
    all += kernel.seconds;
    count += kernel.count;
    if (kernel.source == TimeSource::kHost) timed_by_host.insert(to_string(kernel.device));
  }
  std::string text = fmt::format("{} kernels, {:.3f} ms on devices, {:.3f} ms in all\n", count,
                                 1e3 * all, 1e3 * seconds());
  for (const std::string& device : timed_by_host) {
    text +=
        fmt::format("{} writes no timestamps: its kernels are timed by the host's clock\n", device);
  }
  text += fmt::format("\n{:<{}} {:<9} {:>16} {:>6} {:>10} {:>10} {:>7} {:>8} {:>9} {:>8}\n",
                      "kernel", kNameWidth, "device", "shape", "count", "total ms", "mean us",
                      "time", "GB/s", "GFLOP/s", "of roof");
  for (std::size_t i = 0; i < std::min(rows, found.size()); ++i) text += kernel_row(found[i], all);
  if (found.size() > rows) text += fmt::format("and {} more\n", found.size() - rows);

  const std::vector<HostSummary> work = host();
  if (work.empty()) return text;
  text += fmt::format("\n{:<16} {:>8} {:>10} {:>10} {:>9}\n", "host", "count", "total ms",
                      "mean us", "MB");
  for (const HostSummary& one : work) text += host_row(one);
  return text;
}

}  // namespace vkml
