#include "group_order.h"

#include <algorithm>
#include <map>
#include <set>

#include "vkml/core/error.h"

namespace vkml::dispatch {
namespace {

std::size_t at(int index) { return static_cast<std::size_t>(index); }

class GroupOrder {
 public:
  GroupOrder(const Schedule& schedule, const std::vector<Group>& groups, GroupGraph& graph,
             std::vector<bool>& donated)
      : schedule_(schedule), groups_(groups), donated_(donated), states_(groups.size()) {
    for (int group = 0; group < static_cast<int>(groups.size()); ++group) {
      if (groups_[at(group)].members.empty()) continue;
      for (const int source : graph.sources(group)) {
        states_[at(source)].users.push_back(group);
        ++states_[at(group)].unmet_sources;
      }
    }
    find_readers_of_overwritten_blocks();
  }

  std::vector<int> run() {
    for (int group = 0; group < static_cast<int>(groups_.size()); ++group) {
      if (!groups_[at(group)].members.empty()) offer(group);
    }
    const auto live = static_cast<std::size_t>(
        std::ranges::count_if(groups_, [](const Group& group) { return !group.members.empty(); }));
    while (order_.size() < live) {
      std::set<int>& ready = ready_.empty() ? ready_to_overwrite_ : ready_;
      if (ready.empty()) {
        keep_one_old_block();
        continue;
      }
      const int next = *ready.begin();
      ready.erase(ready.begin());
      finish(next);
    }
    return std::move(order_);
  }

 private:
  struct State {
    std::vector<int> users;        // groups that read this one's values
    std::vector<int> overwriters;  // groups that overwrite a block which this one reads
    int unmet_sources = 0;
    int unmet_readers = 0;  // groups that still read a block which this one overwrites
    bool overwrites = false;
    bool done = false;
  };

  void find_readers_of_overwritten_blocks() {
    std::map<int, int> writer_of;  // by storage class
    for (int group = 0; group < static_cast<int>(groups_.size()); ++group) {
      for (const int member : groups_[at(group)].members) {
        if (!donated_[at(member)]) continue;
        const int old = schedule_.index.find(schedule_[member].node->source(0).get());
        writer_of[schedule_[old].storage_class] = group;
        states_[at(group)].overwrites = true;
      }
    }
    if (writer_of.empty()) return;
    for (int group = 0; group < static_cast<int>(groups_.size()); ++group) {
      for (const int member : groups_[at(group)].members) {
        for (const int source : read_sources(schedule_, member))
          note_reader(writer_of, group, source);
      }
    }
  }

  void note_reader(const std::map<int, int>& writer_of, int group, int source) {
    const Step& root = schedule_[root_of(schedule_, source)];
    if (root.role != Role::kInput) return;
    const auto found = writer_of.find(root.storage_class);
    if (found == writer_of.end() || found->second == group) return;
    std::vector<int>& overwriters = states_[at(group)].overwriters;
    if (std::ranges::find(overwriters, found->second) != overwriters.end()) return;
    overwriters.push_back(found->second);
    ++states_[at(found->second)].unmet_readers;
  }

  void offer(int group) {
    const State& state = states_[at(group)];
    if (state.done || state.unmet_sources > 0) return;
    if (!state.overwrites) {
      ready_.insert(group);
    } else if (state.unmet_readers == 0) {
      ready_to_overwrite_.insert(group);
    }
  }

  void finish(int group) {
    State& state = states_[at(group)];
    state.done = true;
    order_.push_back(group);
    for (const int user : state.users) {
      --states_[at(user)].unmet_sources;
      offer(user);
    }
    for (const int overwriter : state.overwriters) {
      --states_[at(overwriter)].unmet_readers;
      offer(overwriter);
    }
  }

  /// Two groups that overwrite what the other reads: the first gets a block of its own.
  void keep_one_old_block() {
    const auto waiting = std::ranges::find_if(
        states_, [](const State& state) { return state.overwrites && !state.done; });
    if (waiting == states_.end())
      throw InternalError("the groups of a plan depend on each other in a cycle");
    const int group = static_cast<int>(waiting - states_.begin());
    waiting->overwrites = false;
    keep_old_blocks(group);
    offer(group);
  }

  void keep_old_blocks(int group) {
    for (const int member : groups_[at(group)].members) donated_[at(member)] = false;
  }

  const Schedule& schedule_;
  const std::vector<Group>& groups_;
  std::vector<bool>& donated_;
  std::vector<State> states_;
  std::set<int> ready_, ready_to_overwrite_;
  std::vector<int> order_;
};

}  // namespace

std::vector<int> order_groups(const Schedule& schedule, const std::vector<Group>& groups,
                              GroupGraph& graph, std::vector<bool>& donated) {
  return GroupOrder(schedule, groups, graph, donated).run();
}

}  // namespace vkml::dispatch
