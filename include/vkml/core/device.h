// A device's name. Core knows no device API: a Device is a kind and an index, nothing else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>

namespace vkml {

enum class DeviceKind : std::uint8_t { kCpu, kVulkan };

/// Every kind of device, in the order of DeviceKind: the one list of their names.
struct DeviceKindRow {
  DeviceKind kind;
  std::string_view name;
  bool is_numbered;  // "vulkan:0", where "cpu" is the only one
};
inline constexpr DeviceKindRow kDeviceKinds[] = {
    {DeviceKind::kCpu, "cpu", false},
    {DeviceKind::kVulkan, "vulkan", true},
};
inline constexpr std::size_t kDeviceKindCount = std::size(kDeviceKinds);

constexpr const DeviceKindRow& row_of(DeviceKind kind) {
  return kDeviceKinds[static_cast<std::size_t>(kind)];
}

struct Device {
  DeviceKind kind = DeviceKind::kCpu;
  std::uint8_t index = 0;

  friend bool operator==(const Device&, const Device&) = default;
};

inline constexpr Device kCpu{DeviceKind::kCpu, 0};

/// A number for each device, for tables.
constexpr int key_of(Device device) { return static_cast<int>(device.kind) << 8 | device.index; }
constexpr Device device_of_key(int key) {
  return {static_cast<DeviceKind>(key >> 8), static_cast<std::uint8_t>(key & 0xff)};
}

constexpr Device vulkan_device(int index = 0) {
  return {DeviceKind::kVulkan, static_cast<std::uint8_t>(index)};
}

/// "cpu", "vulkan:0".
std::string to_string(Device device);

/// Reads "cpu", "vulkan" (the first) or "vulkan:1". Throws DeviceError for anything else.
Device parse_device(std::string_view text);

}  // namespace vkml
