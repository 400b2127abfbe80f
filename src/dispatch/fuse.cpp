#include "fuse.h"

#include <algorithm>
#include <optional>

#include "vkml/ops/core_kind.h"
#include "vkml/ops/elementwise.h"

namespace vkml::dispatch {
namespace {

using graph::Family;

constexpr int kMaxOperands = 12;
constexpr std::size_t kMaxInstructions = 768;
constexpr unsigned kAllAxes = (1u << kMaxDims) - 1;

std::size_t at(int index) { return static_cast<std::size_t>(index); }

bool is_reduce(const Schedule& schedule, int position) {
  return schedule[position].node->family() == Family::kReduce;
}

/// Steps that run as a program; the others have a core or are assembled by several kernels.
bool is_program(const Schedule& schedule, int position) {
  switch (schedule[position].node->family()) {
    case Family::kElementwise:
    case Family::kCast:
    case Family::kCopy:
    case Family::kCheck:
    case Family::kAssign:
    case Family::kReduce:
    case Family::kIota:
    case Family::kScalar:
      return true;
    default:
      return false;
  }
}

bool is_assembled(const Schedule& schedule, int position) {
  const Family family = schedule[position].node->family();
  return family == Family::kConcat || family == Family::kViewUpdate;
}

/// The sources that a step's program reads: an assignment reads the new value alone.
std::span<const int> read_sources(const Schedule& schedule, int position) {
  const auto sources = schedule.sources_of(position);
  return schedule[position].node->family() == Family::kAssign ? sources.subspan(1) : sources;
}

/// The shape at whose elements a step reads its sources.
const Shape& reading_shape(const Schedule& schedule, int position) {
  const graph::Node& node = *schedule[position].node;
  return node.family() == Family::kReduce ? node.source(0)->shape() : node.shape();
}

std::size_t instruction_estimate(const Schedule& schedule, int position) {
  const graph::Node& node = *schedule[position].node;
  if (node.family() != Family::kElementwise) return 4;
  return ops::program_of(node.op(), ops::operand_type(node)).code.size();
}

unsigned reduced_mask(const Schedule& schedule, int position, const AxisMap& source_map,
                      const Extents& space) {
  const graph::Node& node = *schedule[position].node;
  const int shift = kMaxDims - node.source(0)->shape().rank();
  unsigned mask = 0;
  for (int axis = 0; axis < node.source(0)->shape().rank(); ++axis) {
    const bool reduced = ((node.attributes()[0] >> axis) & 1) != 0;
    if (reduced && source_map[at(axis + shift)] >= 0) mask |= 1u << source_map[at(axis + shift)];
  }
  if (mask != 0) return mask;
  // Rows of one element still need a row axis.
  for (int axis = kMaxDims - 1; axis >= 0; --axis) {
    if (space[at(axis)] == 1) return 1u << axis;
  }
  return 0;
}

class Fuser {
 public:
  Fuser(const Schedule& schedule, bool enabled) : schedule_(schedule), enabled_(enabled) {
    result_.group_of.assign(at(schedule.size()), -1);
    result_.stored.assign(at(schedule.size()), false);
    result_.donated.assign(at(schedule.size()), false);
  }

  Fusion run() {
    find_buffered_sources();
    for (int i = 0; i < schedule_.size(); ++i) {
      const Step& step = schedule_[i];
      const bool grouped = step.role == Role::kCompute
                               ? (!is_inline(schedule_, i) || buffered_[at(i)])
                               : step.role == Role::kScalar && buffered_[at(i)];
      if (grouped) place(i);
    }
    order_groups();
    mark_stored();
    return std::move(result_);
  }

 private:
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

  /// Checks that the members are one kernel and fills in its space, levels and maps.
  bool describe(Group& group) const {
    int reductions = 0;
    std::size_t instructions = 0;
    std::int64_t largest = -1;
    group.core = -1;
    for (const int member : group.members) {
      const bool reduce = is_reduce(schedule_, member);
      reductions += reduce ? 1 : 0;
      instructions += instruction_estimate(schedule_, member);
      if (!is_program(schedule_, member)) {
        if (group.core >= 0) return false;
        group.core = member;
      }
      const Extents extents = padded(reading_shape(schedule_, member));
      const std::int64_t count = numel(extents);
      if (count > largest || (count == largest && reduce && reductions == 1)) {
        largest = count;
        group.space = extents;
      }
    }
    if (group.members.size() > 1) {
      if (group.core >= 0 && (reductions > 0 || is_assembled(schedule_, group.core))) return false;
      if (instructions > kMaxInstructions) return false;
    }
    if (group.core >= 0) group.space = padded(schedule_[group.core].node->shape());
    return find_row(group) && place_members(group) && check_accesses(group) &&
           check_donation(group) && count_operands(group) <= kMaxOperands;
  }

  bool find_row(Group& group) const {
    group.reduced = 0;
    for (const int member : group.members) {
      if (!is_reduce(schedule_, member)) continue;
      AxisMap map;
      if (!match_axes(padded(reading_shape(schedule_, member)), group.space, kAllAxes, map))
        return false;
      const unsigned mask = reduced_mask(schedule_, member, map, group.space);
      if (group.reduced != 0 && group.reduced != mask) return false;
      group.reduced = mask;
    }
    return true;
  }

  bool place_members(Group& group) const {
    group.places.clear();
    group.maps.clear();
    for (const int member : group.members) {
      const Extents extents = padded(schedule_[member].node->shape());
      AxisMap map;
      if (!is_reduce(schedule_, member) && match_axes(extents, group.space, kAllAxes, map)) {
        group.places.push_back(Place::kElement);
      } else if (group.reduced != 0 &&
                 match_axes(extents, group.space, kAllAxes & ~group.reduced, map)) {
        group.places.push_back(Place::kRow);
      } else {
        return false;
      }
      group.maps.push_back(map);
    }
    return true;
  }

  int member_index(const Group& group, int position) const {
    const auto found = std::ranges::lower_bound(group.members, position);
    return found != group.members.end() && *found == position
               ? static_cast<int>(found - group.members.begin())
               : -1;
  }

  /// Every value of the group is read where it is computed.
  bool check_accesses(const Group& group) const {
    for (std::size_t i = 0; i < group.members.size(); ++i) {
      const int member = group.members[i];
      if (!is_program(schedule_, member)) {
        for (const int source : schedule_.sources_of(member)) {
          if (member_index(group, root_of(schedule_, source)) >= 0) return false;
        }
        continue;
      }
      const Shape& reader = reading_shape(schedule_, member);
      AxisMap reader_map = group.maps[i];
      if (is_reduce(schedule_, member) &&
          !match_axes(padded(reader), group.space, kAllAxes, reader_map)) {
        return false;
      }
      for (const int source : read_sources(schedule_, member)) {
        const Access access = access_of(schedule_, source, reader);
        const int root = member_index(group, access.root);
        if (root >= 0 && !reads_in_place(access, reader_map, group, root)) return false;
      }
    }
    return true;
  }

  bool reads_in_place(const Access& access, const AxisMap& reader_map, const Group& group,
                      int root) const {
    if (access.offset != 0) return false;
    const Extents strides = dense_strides(padded(schedule_[group.members[at(root)]].node->shape()));
    Extents expected{0, 0, 0, 0};  // by axis of the space
    unsigned covered = 0;
    for (int axis = 0; axis < kMaxDims; ++axis) {
      const int target = group.maps[at(root)][at(axis)];
      if (target >= 0) expected[at(target)] = strides[at(axis)];
    }
    for (int axis = 0; axis < kMaxDims; ++axis) {
      const int target = reader_map[at(axis)];
      if (target < 0) continue;
      covered |= 1u << target;
      if (access.strides[at(axis)] != expected[at(target)]) return false;
    }
    for (int target = 0; target < kMaxDims; ++target) {
      if (expected[at(target)] != 0 && ((covered >> target) & 1u) == 0) return false;
    }
    return true;
  }

  /// A donated block is read only at the element that overwrites it.
  bool check_donation(const Group& group) const {
    for (const int member : group.members) {
      const Step& step = schedule_[member];
      if (!step.donates || group.members.size() == 1) continue;
      const int old = schedule_.index.find(step.node->source(0).get());
      for (std::size_t i = 0; i < group.members.size(); ++i) {
        const int reader = group.members[i];
        for (const int source : schedule_.sources_of(reader)) {
          const int root = root_of(schedule_, source);
          if (schedule_[root].role != Role::kInput ||
              schedule_[root].storage_class != schedule_[old].storage_class) {
            continue;
          }
          if (!is_program(schedule_, reader) || root != old || source != old) return false;
          const Shape& shape = reading_shape(schedule_, reader);
          const Access access = access_of(schedule_, source, shape);
          if (!shape.same_extents(step.node->shape()) || is_reduce(schedule_, reader) ||
              access.strides != dense_strides(padded(shape))) {
            return false;
          }
        }
      }
    }
    return true;
  }

  int count_operands(const Group& group) const {
    std::vector<std::pair<int, Extents>> loads;
    int stores = 0;
    for (const int member : group.members) {
      stores += schedule_[member].kept ? 1 : 0;
      if (!is_program(schedule_, member)) {
        loads.resize(loads.size() + schedule_.sources_of(member).size(), {-1, {}});
        continue;
      }
      const Shape& reader = reading_shape(schedule_, member);
      for (const int source : read_sources(schedule_, member)) {
        const Access access = access_of(schedule_, source, reader);
        if (member_index(group, access.root) >= 0 || is_inline(schedule_, access.root)) continue;
        const std::pair<int, Extents> load{access.root, access.strides};
        if (std::ranges::find(loads, load) == loads.end()) loads.push_back(load);
      }
    }
    return static_cast<int>(loads.size()) + std::max(stores, 1);
  }

  bool depends(int group, int on) const {
    return (reach_[at(group)][at(on) / 64] >> (on % 64)) & 1u;
  }
  void add_reach(int group, int on) {
    auto& bits = reach_[at(group)];
    bits[at(on) / 64] |= std::uint64_t{1} << (on % 64);
    for (std::size_t w = 0; w < bits.size(); ++w) bits[w] |= reach_[at(on)][w];
  }

  /// Whether one kernel for both would need itself through a third group.
  bool path_between(int a, int b) const {
    for (int middle = 0; middle < static_cast<int>(groups_.size()); ++middle) {
      if (middle == a || middle == b || groups_[at(middle)].members.empty()) continue;
      if ((depends(a, middle) && depends(middle, b)) ||
          (depends(b, middle) && depends(middle, a))) {
        return true;
      }
    }
    return false;
  }

  std::vector<int> source_groups(int position) const {
    std::vector<int> groups;
    for (const int source : schedule_.sources_of(position)) {
      const int group = result_.group_of[at(root_of(schedule_, source))];
      if (group >= 0 && std::ranges::find(groups, group) == groups.end()) groups.push_back(group);
    }
    return groups;
  }

  void place(int position) {
    const int own = static_cast<int>(groups_.size());
    groups_.emplace_back();
    groups_[at(own)].members = {position};
    const std::size_t words = at(schedule_.size()) / 64 + 1;
    reach_.emplace_back(words, 0);
    result_.group_of[at(position)] = own;
    if (!describe(groups_[at(own)])) {
      throw InternalError("a single operator does not form a kernel: " +
                          std::string(schedule_[position].node->op().name));
    }
    std::vector<int> candidates = source_groups(position);
    for (const int group : candidates) add_reach(own, group);
    if (!enabled_ || !is_program(schedule_, position) || schedule_[position].role == Role::kScalar)
      return;
    std::ranges::sort(candidates, std::greater<>());
    for (const int candidate : candidates) {
      const int current = result_.group_of[at(position)];
      if (candidate != current && !path_between(current, candidate)) try_merge(current, candidate);
    }
  }

  void try_merge(int into, int from) {
    Group merged;
    std::ranges::merge(groups_[at(into)].members, groups_[at(from)].members,
                       std::back_inserter(merged.members));
    if (!describe(merged)) return;
    for (const int member : groups_[at(from)].members) result_.group_of[at(member)] = into;
    groups_[at(into)] = std::move(merged);
    groups_[at(from)].members.clear();
    for (std::size_t w = 0; w < reach_[at(into)].size(); ++w)
      reach_[at(into)][w] |= reach_[at(from)][w];
    const auto clear = [](std::vector<std::uint64_t>& bits, int group) {
      bits[at(group) / 64] &= ~(std::uint64_t{1} << (group % 64));
    };
    for (int group = 0; group < static_cast<int>(groups_.size()); ++group) {
      if (depends(group, from) || depends(group, into)) add_reach(group, into);
      clear(reach_[at(group)], from);
    }
    clear(reach_[at(into)], into);
  }

  /// Groups in an order that respects data and overwritten blocks. Overwriting comes as late as it
  /// can: what fails before it leaves the old value.
  void order_groups() {
    std::vector<bool> donates(groups_.size());
    for (int i = 0; i < schedule_.size(); ++i) {
      if (schedule_[i].donates) {
        result_.donated[at(i)] = true;
        donates[at(result_.group_of[at(i)])] = true;
      }
    }
    std::vector<bool> done(groups_.size());
    std::vector<int> order;
    const int live = static_cast<int>(
        std::ranges::count_if(groups_, [](const Group& group) { return !group.members.empty(); }));
    while (static_cast<int>(order.size()) < live) {
      int next = -1;
      for (const bool overwriting : {false, true}) {
        for (int group = 0; next < 0 && group < static_cast<int>(groups_.size()); ++group) {
          if (groups_[at(group)].members.empty() || done[at(group)]) continue;
          if (donates[at(group)] == overwriting && is_ready(group, done, overwriting)) next = group;
        }
      }
      if (next < 0) {
        cancel_one_donation(donates, done);
        continue;
      }
      done[at(next)] = true;
      order.push_back(next);
    }
    cancel_unsafe_donations(order);
    std::vector<int> rank(groups_.size(), -1);
    for (std::size_t k = 0; k < order.size(); ++k) {
      rank[at(order[k])] = static_cast<int>(k);
      result_.groups.push_back(std::move(groups_[at(order[k])]));
    }
    for (int& group : result_.group_of) group = group < 0 ? -1 : rank[at(group)];
  }

  bool is_ready(int group, const std::vector<bool>& done, bool overwriting) const {
    for (int other = 0; other < static_cast<int>(groups_.size()); ++other) {
      if (!done[at(other)] && other != group && !groups_[at(other)].members.empty()) {
        if (depends(group, other)) return false;
        if (overwriting && reads_donated(other, group)) return false;
      }
    }
    return true;
  }

  /// Whether `reader` reads a block that `writer` overwrites.
  bool reads_donated(int reader, int writer) const {
    for (const int member : groups_[at(writer)].members) {
      if (!result_.donated[at(member)]) continue;
      const int old = schedule_.index.find(schedule_[member].node->source(0).get());
      for (const int user : groups_[at(reader)].members) {
        for (const int source : read_sources(schedule_, user)) {
          const int root = root_of(schedule_, source);
          if (schedule_[root].role == Role::kInput &&
              schedule_[root].storage_class == schedule_[old].storage_class) {
            return true;
          }
        }
      }
    }
    return false;
  }

  void cancel_one_donation(std::vector<bool>& donates, const std::vector<bool>& done) {
    for (int group = 0; group < static_cast<int>(groups_.size()); ++group) {
      if (!donates[at(group)] || done[at(group)]) continue;
      donates[at(group)] = false;
      for (const int member : groups_[at(group)].members) result_.donated[at(member)] = false;
      return;
    }
    throw InternalError("the groups of a plan depend on each other in a cycle");
  }

  bool may_fail(const Group& group) const {
    return std::ranges::any_of(group.members, [&](int member) {
      const graph::Node& node = *schedule_[member].node;
      return node.family() == Family::kCheck ||
             (node.family() == Family::kCore &&
              (node.op().id == static_cast<int>(ops::CoreKind::kGather) ||
               node.op().id == static_cast<int>(ops::CoreKind::kScatterAdd)));
    });
  }

  void cancel_unsafe_donations(const std::vector<int>& order) {
    bool fails_later = false;
    for (std::size_t k = order.size(); k-- > 0;) {
      const Group& group = groups_[at(order[k])];
      fails_later = fails_later || may_fail(group);
      if (!fails_later) continue;
      for (const int member : group.members) result_.donated[at(member)] = false;
    }
  }

  /// Memory is needed by what is kept and by what another group, or a core, reads.
  void mark_stored() {
    for (int i = 0; i < schedule_.size(); ++i) {
      const int group = result_.group_of[at(i)];
      if (group < 0) continue;
      const bool alone = !is_program(schedule_, i) && is_assembled(schedule_, i);
      if (schedule_[i].kept || alone) result_.stored[at(i)] = true;
    }
    for (int i = 0; i < schedule_.size(); ++i) {
      const int group = result_.group_of[at(i)];
      if (group < 0) continue;
      for (const int source : schedule_.sources_of(i)) {
        const int root = root_of(schedule_, source);
        const int from = result_.group_of[at(root)];
        if (from < 0 || from == group) continue;
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
  bool enabled_;
  Fusion result_;
  std::vector<bool> buffered_;
  std::vector<Group> groups_;
  std::vector<std::vector<std::uint64_t>> reach_;  // by group: groups it depends on, transitively
};

}  // namespace

bool is_inline(const Schedule& schedule, int position) {
  const Step& step = schedule[position];
  return step.role == Role::kScalar ||
         (step.role == Role::kCompute && step.node->family() == Family::kIota);
}

bool inlines_at(const Schedule& schedule, const Access& access, const Shape& reader) {
  const graph::Node& node = *schedule[access.root].node;
  if (node.family() == Family::kScalar) return true;
  // Each of the reader's axes must stay within one axis of the coordinates' own shape.
  const Extents shape = padded(node.shape());
  const Extents strides = dense_strides(shape);
  const Extents extents = padded(reader);
  for (int axis = 0; axis < kMaxDims; ++axis) {
    const std::int64_t stride = std::abs(access.strides[at(axis)]);
    if (stride == 0 || extents[at(axis)] == 1) continue;
    bool inside = false;
    for (int own = 0; own < kMaxDims; ++own) {
      if (strides[at(own)] == 0 || stride % strides[at(own)] != 0) continue;
      const std::int64_t step = stride / strides[at(own)];
      inside = inside || step * (extents[at(axis)] - 1) < shape[at(own)];
    }
    if (!inside) return false;
  }
  return true;
}

Fusion fuse(const Schedule& schedule, bool enabled) { return Fuser(schedule, enabled).run(); }

}  // namespace vkml::dispatch
