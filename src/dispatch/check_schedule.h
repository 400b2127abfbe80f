// What is checked of a graph before it is planned: that it lies on one device, which can do it.
#pragma once

#include <span>

#include "schedule.h"
#include "vkml/dispatch/backend.h"

namespace vkml::dispatch {

/// The one device of the roots. Throws DeviceError naming two that differ.
Device common_device(std::span<const graph::NodePtr> roots);

/// Throws DeviceError for a node on another device, UnsupportedError for what the device cannot do.
void check_schedule(const Schedule& schedule, Device device, const Backend& backend);

}  // namespace vkml::dispatch
