// Why there is no device of some kind, and what to do about it: for errors and lists.
#pragma once

#include <string>

#include "vkml/core/device.h"

namespace vkml::dispatch {

/// Beside register_backend: what says why there is none, called when a count is 0.
void explain_missing(DeviceKind kind, std::string (*why)());

/// Why there is no device of a kind; empty where there is one.
std::string why_no_device(DeviceKind kind);

}  // namespace vkml::dispatch
