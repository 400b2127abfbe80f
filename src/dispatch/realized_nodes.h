// The two ends of realize() that recording shares with it: which roots need a run, and what a run
// that has been made (or recorded) means for the nodes.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "fuse.h"
#include "schedule.h"
#include "vkml/core/storage.h"
#include "vkml/dispatch/execution_graph.h"

namespace vkml::dispatch {

class Backend;

/// The one device of the roots. Throws DeviceError naming two that differ.
Device common_device(std::span<const graph::NodePtr> roots);

/// The node whose storage an input is a window on: itself, or the root of a view.
const graph::Node& storage_owner(const graph::Node& node);
/// Bytes from the start of that storage to the input's first element.
std::int64_t offset_of(const graph::Node& node);

/// Binds memory, marks the node computed, and gives its sources up where no gradient needs them.
void finish_node(graph::Node& node, StoragePtr storage, std::int64_t offset);

/// The roots that need a run: those that only show something computed are finished at once.
std::vector<graph::NodePtr> bind_ready_views(std::span<const graph::NodePtr> roots);

/// Where a result lies.
struct Location {
  StoragePtr storage;
  std::int64_t offset = 0;
};

/// Finishes the nodes at `results`, which lie at `places`, and the kept views of them. Finishing a
/// node may drop the last reference to others of the schedule, which are held until then.
void finish_results(const Schedule& schedule, std::span<const int> results,
                    std::span<const Location> places);

/// Throws DeviceError for a node on another device, UnsupportedError for what the device cannot do.
void check_schedule(const Schedule& schedule, Device device, const Backend& backend);

/// Whether operators may share kernels (VKML_FUSE), and how large those may be on the device.
FusionOptions fusion_options(const Backend& backend);

/// Asks for scratch, then plans memory: the last two steps of lowering.
ExecutionGraph finish_plan(ExecutionGraph graph, const Backend& backend);

}  // namespace vkml::dispatch
