// What dispatch keeps for each device: its lock, its plans, its counts.
#pragma once

#include "plan_cache.h"
#include "vkml/dispatch/executor.h"

namespace vkml::dispatch {

struct DeviceState {
  /// Realising, releasing sources and walking gradients take it.
  DeviceMutex mutex;
  PlanCache cache;
  CacheStatistics statistics;
};

/// Made on first use; lives as long as the process.
DeviceState& state_of(Device device);

}  // namespace vkml::dispatch
