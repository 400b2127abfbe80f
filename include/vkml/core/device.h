// A device's name. Core knows no device API: a Device is a kind and an index, nothing else.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace vkml {

enum class DeviceKind : std::uint8_t { kCpu, kVulkan };

struct Device {
  DeviceKind kind = DeviceKind::kCpu;
  std::uint8_t index = 0;

  friend bool operator==(const Device&, const Device&) = default;
};

inline constexpr Device kCpu{DeviceKind::kCpu, 0};

constexpr Device vulkan_device(int index = 0) {
  return {DeviceKind::kVulkan, static_cast<std::uint8_t>(index)};
}

/// "cpu", "vulkan:0".
std::string to_string(Device device);

/// Reads "cpu", "vulkan" or "vulkan:1". Throws DeviceError for anything else.
Device parse_device(std::string_view text);

}  // namespace vkml
