#include "vkml/api/profile.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <utility>

#include "roof.h"
#include "runtime.h"
#include "vkml/core/error.h"

namespace vkml {
namespace {

double seconds_of(const dispatch::KernelTime& time) {
  return 1e-9 * static_cast<double>(time.end - time.begin);
}

auto key_of_run(const KernelRun& run) {
  const KernelCost& cost = run.cost();
  return std::tuple(key_of(run.device), run.source, cost.name, cost.extents, cost.bytes_read,
                    cost.bytes_written, cost.flops);
}

std::optional<double> share_of_roof(const KernelSummary& kernel) {
  if (kernel.seconds <= 0) return std::nullopt;
  const std::optional<double> copy = copy_roof(kernel.device);
  if (!copy) return std::nullopt;
  const KernelCost& cost = kernel.cost;
  double needed = static_cast<double>(cost.bytes_read + cost.bytes_written) / *copy;
  if (cost.product) {
    const std::optional<double> product = product_roof(kernel.device, *cost.product);
    if (!product) return std::nullopt;
    needed = std::max(needed, cost.flops / *product);
  }
  return needed * static_cast<double>(kernel.count) / kernel.seconds;
}

}  // namespace

double KernelSummary::bytes_per_second() const {
  const double bytes = static_cast<double>((cost.bytes_read + cost.bytes_written) * count);
  return seconds > 0 ? bytes / seconds : 0;
}
double KernelSummary::flops_per_second() const {
  return seconds > 0 ? cost.flops * static_cast<double>(count) / seconds : 0;
}

Profile::Profile() {
  register_backends();
  dispatch::open_profile();
}
Profile::~Profile() { close(); }

void Profile::close() {
  if (!std::exchange(is_open_, false)) return;
  data_ = dispatch::close_profile();
}

const dispatch::ProfileData& Profile::data() const {
  if (is_open_) {
    throw ArgumentError("[profile] is still open. Read it when it is closed: after the block");
  }
  return data_;
}

const std::vector<KernelRun>& Profile::runs() const { return data().runs; }
const std::vector<HostSpan>& Profile::spans() const { return data().spans; }
double Profile::seconds() const { return seconds_of(data().time); }

std::vector<KernelSummary> Profile::kernels(bool with_roof) const {
  std::vector<KernelSummary> kernels;
  std::map<decltype(key_of_run(std::declval<const KernelRun&>())), std::size_t> known;
  for (const KernelRun& run : data().runs) {
    const auto [place, is_new] = known.try_emplace(key_of_run(run), kernels.size());
    const double seconds = seconds_of(run.time);
    if (is_new) kernels.push_back({run.cost(), run.device, run.source, 0, 0, seconds, {}, {}});
    KernelSummary& kernel = kernels[place->second];
    ++kernel.count;
    kernel.seconds += seconds;
    kernel.shortest = std::min(kernel.shortest, seconds);
    const auto at = std::ranges::lower_bound(kernel.threads, run.thread);
    if (at == kernel.threads.end() || *at != run.thread) kernel.threads.insert(at, run.thread);
  }
  std::ranges::stable_sort(kernels, std::ranges::greater{}, &KernelSummary::seconds);
  if (with_roof) {
    for (KernelSummary& kernel : kernels) kernel.share_of_roof = share_of_roof(kernel);
  }
  return kernels;
}

std::vector<HostSummary> Profile::host() const {
  std::vector<HostSummary> found;
  for (const HostSpan& span : data().spans) {
    auto place = std::ranges::find(found, span.work, &HostSummary::work);
    if (place == found.end()) place = found.insert(found.end(), {span.work, 0, 0, 0});
    ++place->count;
    place->seconds += seconds_of(span.time);
    place->bytes += span.bytes;
  }
  std::ranges::sort(found, {}, &HostSummary::work);
  return found;
}

}  // namespace vkml
