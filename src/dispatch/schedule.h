// A graph as realize() sees it: the uncomputed nodes below the roots in topological order, with the
// values they start from as leaves. Positions in this list are what every later table is keyed by.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "vkml/graph/node.h"
#include "vkml/graph/node_index.h"

namespace vkml::dispatch {

enum class Role : std::uint8_t {
  kInput,   // holds its value, or is a view of something that does
  kScalar,  // a run-time number
  kAlias,   // a view of a value that this graph computes
  kCompute
};

struct Step {
  graph::Node* node = nullptr;
  Role role = Role::kCompute;
  bool kept = false;       // its storage outlives the run
  bool donates = false;    // kAssign: may overwrite the old value's block
  int storage_class = -1;  // inputs: the first position with the same storage
  int first_source = 0;    // into Schedule::sources
  int source_count = 0;
};

struct Schedule {
  std::vector<Step> steps;
  std::vector<int> sources;  // positions, flattened
  graph::NodeIndex index;

  std::span<const int> sources_of(int position) const {
    const Step& step = steps[static_cast<std::size_t>(position)];
    return {sources.data() + step.first_source, static_cast<std::size_t>(step.source_count)};
  }
  const Step& operator[](int position) const { return steps[static_cast<std::size_t>(position)]; }
  Step& operator[](int position) { return steps[static_cast<std::size_t>(position)]; }
  int size() const { return static_cast<int>(steps.size()); }
};

/// `keep_for_backward`: results that a later backward pass would read are kept too. Cheap
/// elementwise ones are not; they are computed again from the kept ones.
Schedule make_schedule(std::span<const graph::NodePtr> roots, bool keep_for_backward);

}  // namespace vkml::dispatch
