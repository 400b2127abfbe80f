#include "vkml/api/context.h"

#include <atomic>
#include <utility>

#include "runtime.h"
#include "vkml/core/environment.h"
#include "vkml/core/error.h"
#include "vkml/dispatch/backend.h"
#include "vkml/dispatch/executor.h"
#include "vkml/dispatch/missing_device.h"
#include "vkml/graph/value.h"

namespace vkml {
namespace {

std::atomic<bool>& eager_flag() {
  static std::atomic<bool> flag{environment_switch("VKML_EAGER")};
  return flag;
}

thread_local bool recording_only = false;

std::atomic<std::uint32_t> depth_bound{4096};
std::atomic<Device> device_default{kCpu};

}  // namespace

NoGrad::NoGrad() : before_(graph::set_grad_enabled(false)) {}
NoGrad::~NoGrad() { graph::set_grad_enabled(before_); }
bool is_grad_enabled() { return graph::grad_enabled(); }
bool set_grad_enabled(bool enabled) { return graph::set_grad_enabled(enabled); }

void set_eager(bool eager) { eager_flag().store(eager, std::memory_order_relaxed); }
bool is_eager() { return eager_flag().load(std::memory_order_relaxed) && !recording_only; }
bool set_recording_only(bool enabled) { return std::exchange(recording_only, enabled); }

void set_depth_limit(std::uint32_t limit) { depth_bound.store(limit, std::memory_order_relaxed); }
std::uint32_t depth_limit() { return depth_bound.load(std::memory_order_relaxed); }

namespace {

struct Devices {
  std::vector<DeviceDescription> found;
  std::map<std::string, std::string> missing;
};

Devices look_for_devices() {
  register_backends();
  Devices devices;
  for (const DeviceKindRow& row : kDeviceKinds) {
    const int count = dispatch::device_count(row.kind);
    if (count == 0) devices.missing.emplace(row.name, dispatch::why_no_device(row.kind));
    for (int index = 0; index < count; ++index) {
      const Device device{row.kind, static_cast<std::uint8_t>(index)};
      try {
        const dispatch::DeviceInfo info = dispatch::backend_for(device).info();
        devices.found.push_back({info.device, info.name, info.driver, info.memory_bytes,
                                 info.is_software, info.features});
      } catch (const Error& error) {
        // A driver that cannot make a device is as good as none: the others still work.
        devices.missing.emplace(to_string(device), error.what());
      }
    }
  }
  return devices;
}

}  // namespace

std::vector<DeviceDescription> devices() { return look_for_devices().found; }
std::map<std::string, std::string> missing_devices() { return look_for_devices().missing; }

void set_default_device(Device device) {
  register_backends();
  dispatch::backend_for(device);
  device_default.store(device);
}
Device default_device() { return device_default.load(); }

void synchronize(Device device) {
  register_backends();
  dispatch::backend_for(device).synchronize();
}
void synchronize() {
  for (const Device device : dispatch::devices_in_use())
    dispatch::backend_for(device).synchronize();
}

std::int64_t live_node_count() { return graph::live_node_count(); }

std::int64_t allocated_bytes(Device device) {
  register_backends();
  return dispatch::backend_for(device).allocated_bytes();
}

CacheInfo cache_info(Device device) {
  const dispatch::CacheStatistics statistics = dispatch::cache_statistics(device);
  return {statistics.hits, statistics.misses, statistics.plans, statistics.kernels};
}
void clear_cache(Device device) { dispatch::clear_cache(device); }

void set_coverage(bool enabled) { dispatch::set_coverage(enabled); }
std::map<std::string, std::map<std::string, std::int64_t>> coverage() {
  return dispatch::coverage();
}
void clear_coverage() { dispatch::clear_coverage(); }

}  // namespace vkml
