// realize(): from recorded nodes to values.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "vkml/graph/node.h"

namespace vkml::dispatch {

struct RealizeOptions {
  /// Keep what a later backward pass through these nodes would read.
  bool keep_for_backward = true;
};

/// Computes the roots (submits them, on devices that run ahead of the host). All must be on one
/// device. Throws DeviceError, UnsupportedError, OutOfMemoryError, IndexError; after an error the
/// graph is as it was and can be realised again.
void realize(std::span<const graph::NodePtr> roots, const RealizeOptions& options = {});

/// The plan that realize() would run, as text: kernels, buffers, arena, cache hit or miss.
std::string explain(std::span<const graph::NodePtr> roots);

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
