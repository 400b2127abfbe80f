// The nodes at the two ends of realize(), which recording shares with it: which of them need a run,
// and what a run that has been made (or recorded) means for them.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "schedule.h"
#include "vkml/core/storage.h"

namespace vkml::dispatch {

/// The node whose storage an input is a window on: itself, or the root of a view.
const graph::Node& storage_owner(const graph::Node& node);
/// Bytes from the start of that storage to the input's first element.
std::int64_t offset_of(const graph::Node& node);

/// Binds memory, marks the node computed, and gives its sources up where no gradient needs them.
void finish_node(graph::Node& node, StoragePtr storage, std::int64_t offset);

/// The roots that need a run: those that only show something computed are finished at once.
std::vector<graph::NodePtr> bind_ready_views(std::span<const graph::NodePtr> roots);

/// Where a result lies.
struct ResultPlace {
  StoragePtr storage;
  std::int64_t offset = 0;
};

/// Finishes the nodes at `results`, which lie at `places`, and the kept views of them. Finishing a
/// node may drop the last reference to others of the schedule, which are held until then.
void finish_results(const Schedule& schedule, std::span<const int> results,
                    std::span<const ResultPlace> places);

}  // namespace vkml::dispatch
