#include "vkml/core/device.h"

#include <charconv>

#include "vkml/core/error.h"

namespace vkml {

std::string to_string(Device device) {
  if (device.kind == DeviceKind::kCpu) return "cpu";
  return "vulkan:" + std::to_string(device.index);
}

Device parse_device(std::string_view text) {
  if (text == "cpu" || text == "cpu:0") return kCpu;
  if (text == "vulkan") return vulkan_device(0);
  constexpr std::string_view kPrefix = "vulkan:";
  if (text.starts_with(kPrefix)) {
    const std::string_view digits = text.substr(kPrefix.size());
    unsigned index = 0;
    const auto [end, problem] = std::from_chars(digits.begin(), digits.end(), index);
    if (problem == std::errc{} && end == digits.end() && index < 256) {
      return vulkan_device(static_cast<int>(index));
    }
  }
  throw DeviceError(
      "unknown device \"" + std::string(text) +
      "\". Use \"cpu\", \"vulkan\" or \"vulkan:1\"; vkml.devices() lists what is here.");
}

}  // namespace vkml
