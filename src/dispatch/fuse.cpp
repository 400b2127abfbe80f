#include "fuse.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "group_graph.h"
#include "group_order.h"
#include "vkml/core/error.h"

namespace vkml::dispatch {
namespace {

using graph::Family;

// Each part of a concat is compared with so many before it: as many as a kernel could hold.
constexpr std::size_t kJoinedParts = kMaxOperands;

std::size_t at(int index) { return static_cast<std::size_t>(index); }

/// Elements from which a kernel is worth more than a dispatch, and up to which it costs no more.
constexpr std::int64_t kLarge = std::int64_t{1} << 20;
constexpr std::int64_t kSmall = std::int64_t{1} << 16;

class Fuser {
 public:
  Fuser(const Schedule& schedule, const FusionOptions& options)
      : schedule_(schedule),
        form_(schedule, options.max_operands),
        is_enabled_(options.is_enabled) {
    result_.group_of.assign(at(schedule.size()), -1);
    result_.stored.assign(at(schedule.size()), false);
    result_.donated.assign(at(schedule.size()), false);
  }

  Fusion run() {
    find_buffered_sources();
    find_last_readers();
    for (int i = 0; i < schedule_.size(); ++i) {
      const Step& step = schedule_[i];
      const bool grouped = step.role == Role::kCompute
                               ? (!is_inline(schedule_, i) || buffered_[at(i)])
                               : step.role == Role::kScalar && buffered_[at(i)];
      if (grouped) place(i);
      result_.donated[at(i)] = step.donates && form_.overwrites_in_place(i);
    }
    number_groups_as_they_run();
    mark_stored();
    return std::move(result_);
  }

 private:
  struct Extent {
    std::int64_t elements = 0;  // the most that a member reads or gives
    bool waits = false;         // a large one is among its members, or among what they wait for
  };

  /// Inline values that somebody reads from memory all the same.
  void find_buffered_sources() {
    buffered_.assign(at(schedule_.size()), false);
    for (int i = 0; i < schedule_.size(); ++i) {
      const Step& step = schedule_[i];
      if (is_inline(schedule_, i) && step.kept) buffered_[at(i)] = true;
      if (step.role != Role::kCompute) continue;
      for (const int source : schedule_.sources_of(i)) {
        const int root = root_of(schedule_, source);
        if (!is_inline(schedule_, root)) continue;
        const bool from_memory =
            schedule_[i].node->family() == Family::kCore ||
            (is_program(schedule_, i) &&
             !inlines_at(schedule_, access_of(schedule_, source, reading_shape(schedule_, i)),
                         reading_shape(schedule_, i)));
        if (from_memory) buffered_[at(root)] = true;
      }
    }
  }

  void find_last_readers() {
    last_reader_.assign(at(schedule_.size()), -1);
    for (int i = 0; i < schedule_.size(); ++i) {
      for (const int source : schedule_.sources_of(i)) {
        last_reader_[at(root_of(schedule_, source))] = i;
      }
    }
  }

  /// The most elements that a step reads or gives.
  std::int64_t elements_of(int position) const {
    std::int64_t most = schedule_[position].node->numel();
    for (const int source : schedule_.sources_of(position)) {
      most = std::max(most, schedule_[source].node->numel());
    }
    return most;
  }

  std::vector<int> source_groups(int position) const {
    std::vector<int> groups;
    for (const int source : schedule_.sources_of(position)) {
      const int group = result_.group_of[at(root_of(schedule_, source))];
      if (group >= 0) groups.push_back(group);
    }
    // The latest first.
    std::ranges::sort(groups, std::greater<>());
    groups.erase(std::unique(groups.begin(), groups.end()), groups.end());
    return groups;
  }

  void place(int position) {
    const std::vector<int> candidates = source_groups(position);
    const int own = graph_.add(candidates);
    groups_.emplace_back();
    groups_[at(own)].members = {position};
    Extent extent{elements_of(position), false};
    extent.waits = extent.elements >= kLarge;
    for (const int candidate : candidates) extent.waits |= extents_[at(candidate)].waits;
    extents_.push_back(extent);
    result_.group_of[at(position)] = own;
    if (!form_.describe(groups_[at(own)])) {
      throw InternalError("a single operator does not form a kernel: " +
                          std::string(schedule_[position].node->op().name));
    }
    if (!is_enabled_) return;
    const int companion = companion_of(schedule_, position);
    if (companion >= 0) join_companion(own, result_.group_of[at(companion)]);
    if (schedule_[position].node->family() == Family::kConcat) join_parts(candidates);
    if (!is_program(schedule_, position) || schedule_[position].role == Role::kScalar) return;
    for (const int candidate : candidates) {
      if (is_better_apart(own, candidate, position)) continue;
      if (!graph_.path_between(own, candidate)) try_merge(own, candidate);
    }
  }

  /// A small group with a number that others read later: they would have to wait for large groups
  /// once it is part of one that does. How many labels a mean loss counts is one: the gradient of
  /// the logits needs it, and not the loss, and so can be part of the kernel that reads the logits.
  bool is_better_apart(int own, int candidate, int position) const {
    const Extent& extent = extents_[at(candidate)];
    if (extent.waits || extent.elements > kSmall || !extents_[at(own)].waits) return false;
    return std::ranges::any_of(groups_[at(candidate)].members, [&](int member) {
      return last_reader_[at(member)] > position && schedule_[member].node->numel() == 1;
    });
  }

  /// `from` is -1 where the companion's result is there already.
  void join_companion(int core, int from) {
    if (from >= 0 && !graph_.path_between(core, from)) try_merge(core, from);
  }

  /// Parts of a concat that are computed over one space are one kernel, which writes them all where
  /// they belong (placement.h).
  void join_parts(const std::vector<int>& parts) {
    for (std::size_t i = 0; i < parts.size(); ++i) {
      for (std::size_t k = i + 1; k < std::min(parts.size(), i + 1 + kJoinedParts); ++k) {
        const Group& into = groups_[at(parts[i])];
        const Group& from = groups_[at(parts[k])];
        if (into.members.empty() || from.members.empty() || into.core >= 0 || from.core >= 0 ||
            into.space != from.space || into.reduced != 0 || from.reduced != 0) {
          continue;
        }
        if (!graph_.path_between(parts[i], parts[k])) try_merge(parts[i], parts[k]);
      }
    }
  }

  void try_merge(int into, int from) {
    Group merged;
    std::ranges::merge(groups_[at(into)].members, groups_[at(from)].members,
                       std::back_inserter(merged.members));
    if (!form_.describe(merged)) return;
    for (const int member : groups_[at(from)].members) result_.group_of[at(member)] = into;
    groups_[at(into)] = std::move(merged);
    groups_[at(from)] = {};
    Extent& extent = extents_[at(into)];
    extent.elements = std::max(extent.elements, extents_[at(from)].elements);
    extent.waits |= extents_[at(from)].waits;
    graph_.merge(into, from);
  }

  void number_groups_as_they_run() {
    const std::vector<int> order = order_groups(schedule_, groups_, graph_, result_.donated);
    std::vector<int> rank(groups_.size(), -1);
    for (std::size_t k = 0; k < order.size(); ++k) {
      rank[at(order[k])] = static_cast<int>(k);
      result_.groups.push_back(std::move(groups_[at(order[k])]));
    }
    for (int& group : result_.group_of) group = group < 0 ? -1 : rank[at(group)];
  }

  /// Memory is needed by what is kept and by what another group, or a core, reads.
  void mark_stored() {
    for (int i = 0; i < schedule_.size(); ++i) {
      const int group = result_.group_of[at(i)];
      if (group < 0) continue;
      const Group& own = result_.groups[at(group)];
      const bool assembled = own.core >= 0 && is_assembled(schedule_, own.core);
      if (schedule_[i].kept || (assembled && own.members.back() == i)) result_.stored[at(i)] = true;
    }
    for (int i = 0; i < schedule_.size(); ++i) {
      const int group = result_.group_of[at(i)];
      if (group < 0) continue;
      const int companion = companion_of(schedule_, i);
      for (const int source : schedule_.sources_of(i)) {
        const int root = root_of(schedule_, source);
        const int from = result_.group_of[at(root)];
        if (from < 0 || from == group || source == companion) continue;
        const bool inlined = is_inline(schedule_, root) && is_program(schedule_, i);
        if (!inlined || buffered_[at(root)]) result_.stored[at(root)] = true;
      }
    }
    for (const int i : roots_of_kept_views()) result_.stored[at(i)] = true;
  }

  std::vector<int> roots_of_kept_views() const {
    std::vector<int> roots;
    for (int i = 0; i < schedule_.size(); ++i) {
      if (schedule_[i].role == Role::kAlias && schedule_[i].kept)
        roots.push_back(root_of(schedule_, i));
    }
    return roots;
  }

  const Schedule& schedule_;
  KernelForm form_;
  bool is_enabled_;
  Fusion result_;
  std::vector<bool> buffered_;    // by position: an inline value that is read from memory
  std::vector<int> last_reader_;  // by position; -1: none
  std::vector<Group> groups_;
  std::vector<Extent> extents_;  // of the groups
  GroupGraph graph_;
};

}  // namespace

Fusion fuse(const Schedule& schedule, const FusionOptions& options) {
  return Fuser(schedule, options).run();
}

}  // namespace vkml::dispatch
