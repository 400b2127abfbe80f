// Which backends there are, and one instance for each device.

#include <array>
#include <map>
#include <mutex>
#include <string>

#include "vkml/core/error.h"
#include "vkml/dispatch/backend.h"
#include "vkml/dispatch/missing_device.h"

namespace vkml::dispatch {
namespace {

struct Entry {
  BackendFactory factory = nullptr;
  int (*count)() = nullptr;
  std::string (*why_none)() = nullptr;

  int device_count() const { return count == nullptr ? 0 : count(); }
  std::string reason() const {
    if (device_count() > 0) return {};
    return why_none == nullptr ? "vkML was built without its backend" : why_none();
  }
};

struct Registry {
  std::mutex mutex;
  std::array<Entry, kDeviceKindCount> entries;
  std::map<int, std::unique_ptr<Backend>> backends;
};

/// Never destroyed: storages freed while the process exits still need their backend.
Registry& registry() {
  static Registry* instance = new Registry;
  return *instance;
}

}  // namespace

void register_backend(DeviceKind kind, BackendFactory factory, int (*count)()) {
  Registry& r = registry();
  const std::scoped_lock lock(r.mutex);
  r.entries[static_cast<std::size_t>(kind)] = {factory, count};
}

void explain_missing(DeviceKind kind, std::string (*why)()) {
  Registry& r = registry();
  const std::scoped_lock lock(r.mutex);
  r.entries[static_cast<std::size_t>(kind)].why_none = why;
}

int device_count(DeviceKind kind) {
  Registry& r = registry();
  const std::scoped_lock lock(r.mutex);
  return r.entries[static_cast<std::size_t>(kind)].device_count();
}

std::string why_no_device(DeviceKind kind) {
  Registry& r = registry();
  const std::scoped_lock lock(r.mutex);
  return r.entries[static_cast<std::size_t>(kind)].reason();
}

std::vector<Device> devices_in_use() {
  Registry& r = registry();
  const std::scoped_lock lock(r.mutex);
  std::vector<Device> devices;
  for (const auto& [key, backend] : r.backends) {
    devices.push_back(device_of_key(key));
  }
  return devices;
}

Backend& backend_for(Device device) {
  Registry& r = registry();
  const std::scoped_lock lock(r.mutex);
  const int key = key_of(device);
  const auto found = r.backends.find(key);
  if (found != r.backends.end()) return *found->second;
  const Entry& entry = r.entries[static_cast<std::size_t>(device.kind)];
  const int count = entry.device_count();
  if (count == 0)
    throw DeviceError("[device] " + to_string(device) + " is not here: " + entry.reason());
  if (device.index >= count) {
    throw DeviceError("[device] " + to_string(device) + " is not here: " + std::to_string(count) +
                      " of its kind found. vkml.devices() lists what is; the CPU always works");
  }
  return *r.backends.emplace(key, entry.factory(device.index)).first->second;
}

}  // namespace vkml::dispatch
