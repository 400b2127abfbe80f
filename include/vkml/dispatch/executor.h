// realize(): from recorded nodes to values.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "vkml/dispatch/device_mutex.h"
#include "vkml/graph/node.h"

namespace vkml::dispatch {

struct RealizeOptions {
  /// Keep what a later backward pass through these nodes would read.
  bool keep_for_backward = true;
  /// After a bad index, let the assigned tensors of the graph show their old values. Otherwise they
  /// stay uncomputed, and whoever reads them gets the error.
  bool restore_after_failure = true;
};

/// Computes the roots (submits them, on devices that run ahead of the host). All must be on one
/// device. Throws DeviceError, UnsupportedError, OutOfMemoryError, IndexError; after an error the
/// graph is as it was and can be realised again.
void realize(std::span<const graph::NodePtr> roots, const RealizeOptions& options = {});

struct CacheStatistics {
  std::int64_t hits = 0, misses = 0, plans = 0;
  std::int64_t kernels = 0;  // run so far
};
CacheStatistics cache_statistics(Device device);
void clear_cache(Device device);

/// Coverage: how often each operator was evaluated on each device, while recording is on.
void set_coverage(bool enabled);
std::map<std::string, std::map<std::string, std::int64_t>> coverage();
void clear_coverage();

}  // namespace vkml::dispatch
