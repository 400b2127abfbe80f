#include "vkml/core/device.h"

#include <charconv>

#include "vkml/core/error.h"

namespace vkml {

std::string to_string(Device device) {
  const DeviceKindRow& row = row_of(device.kind);
  const std::string name(row.name);
  return row.is_numbered ? name + ":" + std::to_string(device.index) : name;
}

Device parse_device(std::string_view text) {
  const std::size_t colon = text.find(':');
  for (const DeviceKindRow& row : kDeviceKinds) {
    if (text.substr(0, colon) != row.name) continue;
    if (colon == std::string_view::npos) return {row.kind, 0};
    const std::string_view digits = text.substr(colon + 1);
    const unsigned limit = row.is_numbered ? 256 : 1;
    unsigned index = 0;
    const auto [end, problem] =
        std::from_chars(digits.data(), digits.data() + digits.size(), index);
    if (problem == std::errc{} && end == digits.data() + digits.size() && index < limit)
      return {row.kind, static_cast<std::uint8_t>(index)};
  }
  throw DeviceError(
      "[device] unknown device \"" + std::string(text) +
      "\". Use \"cpu\", \"vulkan\" or \"vulkan:1\"; vkml.devices() lists what is here.");
}

}  // namespace vkml
