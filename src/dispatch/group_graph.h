// The groups of a plan while they grow, and what depends on what: kept acyclic.
//
// The groups stand in a list in which each comes after what it reads. Joining two asks whether a
// third one lies between them: a search back from the later one, through groups that stand after
// the earlier one, that gives up after a fixed number of groups and then says yes. So planning is
// linear in the number of groups, and a refused join costs a kernel, never correctness.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace vkml::dispatch {

class GroupGraph {
 public:
  /// A new group, which reads `sources`; returns its number, counted from 0.
  int add(std::span<const int> sources);

  /// Whether one kernel for both groups would need itself through a third.
  bool path_between(int a, int b);

  /// Puts `from` into `into`, which has no path to it through a third group.
  void merge(int into, int from);

  /// The groups that a group reads, each once.
  std::vector<int> sources(int group);

 private:
  int find(int group);
  bool collect_between(int later, int earlier);
  void unlink(int group);
  void link_before(int group, int next);
  void make_room_before(int group, std::size_t count);
  void relabel();

  std::vector<int> owner_;  // a forest: towards the group that a merged one is part of now
  std::vector<std::vector<int>> sources_;
  std::vector<std::size_t> distinct_;  // sizes of sources_ when they last held no repetition
  std::vector<int> previous_, next_;   // the list; -1 at its ends
  std::vector<std::int64_t> label_;    // ascending along the list
  int first_ = -1, last_ = -1;
  std::vector<int> between_;  // of the last search
  std::vector<std::uint32_t> seen_;
  std::uint32_t search_ = 0;
};

}  // namespace vkml::dispatch
