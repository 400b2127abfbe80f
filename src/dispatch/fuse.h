// Grouping of a schedule's steps into kernels.
//
// Greedy and deterministic: steps are visited in topological order, and each joins the groups of
// its sources where the union still is one kernel: one iteration space, at most one core, one set
// of reduced axes, every value inside read exactly at the element (or row) where it is computed,
// within limits of size, and no cycle between groups. What does not fit starts a group of its own,
// so a limit splits a kernel and never fails.
#pragma once

#include <vector>

#include "access.h"
#include "schedule.h"

namespace vkml::dispatch {

/// Where a member is computed.
enum class Place : std::uint8_t { kElement, kRow };

struct Group {
  std::vector<int> members;  // positions, ascending
  int core = -1;             // the member that has a kernel core, or is assembled from parts
  Extents space{1, 1, 1, 1};
  unsigned reduced = 0;       // mask of the axes of `space` that form a row
  std::vector<Place> places;  // by member
  std::vector<AxisMap> maps;  // by member: its axes in `space`
};

struct Fusion {
  std::vector<Group> groups;  // in the order they run
  std::vector<int> group_of;  // by position; -1: an input, a scalar, an alias
  std::vector<bool> stored;   // by position: needs memory
  std::vector<bool> donated;  // by position: an assignment that overwrites the old block
};

Fusion fuse(const Schedule& schedule, bool enabled);

/// A value computed in place wherever it is read: numbers and coordinates.
bool is_inline(const Schedule& schedule, int position);
/// Whether coordinates can be computed from those of the reader through this access.
bool inlines_at(const Schedule& schedule, const Access& access, const Shape& reader);

}  // namespace vkml::dispatch
