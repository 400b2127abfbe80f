#include <atomic>
#include <mutex>

#include "coverage.h"
#include "vkml/dispatch/executor.h"

namespace vkml::dispatch {
namespace {
std::atomic<bool> recording{false};
std::mutex mutex;
std::map<std::string, std::map<std::string, std::int64_t>> counts;
}  // namespace

void set_coverage(bool enabled) { recording.store(enabled, std::memory_order_relaxed); }

std::map<std::string, std::map<std::string, std::int64_t>> coverage() {
  const std::scoped_lock lock(mutex);
  return counts;
}

void clear_coverage() {
  const std::scoped_lock lock(mutex);
  counts.clear();
}

void record_coverage(const Schedule& schedule, Device device) {
  if (!recording.load(std::memory_order_relaxed)) return;
  const std::scoped_lock lock(mutex);
  auto& of_device = counts[to_string(device)];
  for (const Step& step : schedule.steps) {
    if (step.role == Role::kCompute) ++of_device[step.node->op().name];
  }
}

}  // namespace vkml::dispatch
