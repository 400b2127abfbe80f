#include "kernel_form.h"

#include <algorithm>
#include <utility>

#include "vkml/ops/core_kind.h"
#include "vkml/ops/elementwise.h"

namespace vkml::dispatch {
namespace {

using graph::Family;

constexpr std::size_t kMaxInstructions = 768;
constexpr unsigned kAllAxes = (1u << kMaxDims) - 1;

std::size_t at(int index) { return static_cast<std::size_t>(index); }

std::size_t instruction_estimate(const Schedule& schedule, int position) {
  const graph::Node& node = *schedule[position].node;
  if (node.family() != Family::kElementwise) return 4;
  return ops::program_of(node.op(), ops::operand_dtype(node)).code.size();
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

int member_index(const Group& group, int position) {
  const auto found = std::ranges::lower_bound(group.members, position);
  return found != group.members.end() && *found == position
             ? static_cast<int>(found - group.members.begin())
             : -1;
}

}  // namespace

KernelForm::KernelForm(const Schedule& schedule, int max_operands)
    : schedule_(schedule), max_operands_(max_operands), uses_(at(schedule.size())) {
  for (int i = 0; i < schedule.size(); ++i) {
    if (schedule[i].role != Role::kCompute) continue;
    for (const int source : schedule.sources_of(i)) ++uses_[at(root_of(schedule, source))];
  }
}

bool KernelForm::describe(Group& group) const {
  int reductions = 0;
  std::size_t instructions = 0;
  std::int64_t largest = -1;
  group.core = -1;
  group.companion = -1;
  for (const int member : group.members) {
    const bool reduce = is_reduce(schedule_, member);
    reductions += reduce ? 1 : 0;
    instructions += instruction_estimate(schedule_, member);
    if (!is_program(schedule_, member)) {
      // A companion is a source of its core, and comes first.
      if (group.companion >= 0) return false;
      if (group.core >= 0 && companion_of(schedule_, member) != group.core) return false;
      group.companion = group.core;
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
    const bool assembled = group.core >= 0 && is_assembled(schedule_, group.core);
    if (group.core >= 0 && reductions > 0) return false;
    if (assembled && !assigns_window(group)) return false;
    if (instructions > kMaxInstructions) return false;
  }
  if (group.core >= 0) group.space = padded(schedule_[group.core].node->shape());
  if (!find_row(group) || !place_members(group) || !check_accesses(group)) return false;
  // One operator is a kernel whatever it reads: joining a thousand parts is a thousand copies.
  return group.members.size() == 1 ||
         (check_donation(group) && count_operands(group) <= max_operands_);
}

bool KernelForm::find_row(Group& group) const {
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

bool KernelForm::place_members(Group& group) const {
  group.places.clear();
  group.maps.clear();
  for (const int member : group.members) {
    const Extents extents = padded(schedule_[member].node->shape());
    AxisMap map{-1, -1, -1, -1};
    if (member == group.companion) {
      // The core writes it: it has no place in the program.
      group.places.push_back(Place::kElement);
    } else if (!is_reduce(schedule_, member) && match_axes(extents, group.space, kAllAxes, map)) {
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

bool KernelForm::check_accesses(const Group& group) const {
  for (std::size_t i = 0; i < group.members.size(); ++i) {
    const int member = group.members[i];
    if (!is_program(schedule_, member)) {
      const int companion = companion_of(schedule_, member);
      for (const int source : schedule_.sources_of(member)) {
        if (source == companion) continue;
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

bool KernelForm::reads_in_place(const Access& access, const AxisMap& reader_map, const Group& group,
                                int root) const {
  if (access.offset != 0 || group.members[at(root)] == group.companion) return false;
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

bool KernelForm::assigns_window(const Group& group) const {
  if (group.members.size() != 2) return false;
  const int update = group.members[0];
  const int assignment = group.members[1];
  if (schedule_[update].node->family() != Family::kViewUpdate || schedule_[update].kept ||
      schedule_[assignment].node->family() != Family::kAssign ||
      read_sources(schedule_, assignment)[0] != update || uses_[at(update)] != 1) {
    return false;
  }
  // Of the block that is overwritten the base can only be all; the window's value is saved first.
  const int base = schedule_.sources_of(update)[0];
  return !schedule_[assignment].donates || !is_overwritten_by(schedule_, base, assignment) ||
         base == schedule_.sources_of(assignment)[0];
}

bool KernelForm::check_donation(const Group& group) const {
  if (group.core >= 0 && is_assembled(schedule_, group.core)) return true;
  for (const int member : group.members) {
    const Step& step = schedule_[member];
    if (!step.donates) continue;
    const int old = schedule_.index.find(step.node->source(0).get());
    for (const int reader : group.members) {
      for (const int source : schedule_.sources_of(reader)) {
        if (!is_overwritten_by(schedule_, source, member)) continue;
        if (!is_program(schedule_, reader) || source != old) return false;
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

bool KernelForm::overwrites_in_place(int assignment) const {
  Group alone;
  alone.members = {assignment};
  return check_donation(alone);
}

int KernelForm::count_operands(const Group& group) const {
  std::vector<std::pair<int, Extents>> loads;
  std::vector<int> inner_uses(group.members.size());
  for (const int member : group.members) {
    for (const int source : schedule_.sources_of(member)) {
      const int inner = member_index(group, root_of(schedule_, source));
      if (inner >= 0) ++inner_uses[at(inner)];
    }
    if (!is_program(schedule_, member)) {
      // The companion reads no more than its core.
      if (member == group.companion) continue;
      const std::size_t unread = companion_of(schedule_, member) >= 0 ? 1 : 0;
      loads.resize(loads.size() + schedule_.sources_of(member).size() - unread, {-1, {}});
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
  // What others read is written, also where those others may join the group later.
  int stores = 0;
  for (std::size_t i = 0; i < group.members.size(); ++i) {
    const int member = group.members[i];
    if (schedule_[member].kept || inner_uses[i] < uses_[at(member)]) ++stores;
  }
  return static_cast<int>(loads.size()) + std::max(stores, 1);
}

bool is_reduce(const Schedule& schedule, int position) {
  return schedule[position].node->family() == Family::kReduce;
}

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

int companion_of(const Schedule& schedule, int position) {
  if (schedule[position].role != Role::kCompute) return -1;
  const ops::Companion companion = ops::companion_of(schedule[position].node->op());
  return companion.source < 0 ? -1 : schedule.sources_of(position)[at(companion.source)];
}

std::span<const int> read_sources(const Schedule& schedule, int position) {
  const auto sources = schedule.sources_of(position);
  return schedule[position].node->family() == Family::kAssign ? sources.last(1) : sources;
}

const Shape& reading_shape(const Schedule& schedule, int position) {
  const graph::Node& node = *schedule[position].node;
  return node.family() == Family::kReduce ? node.source(0)->shape() : node.shape();
}

bool is_overwritten_by(const Schedule& schedule, int source, int assignment) {
  const int root = root_of(schedule, source);
  const int old = schedule.index.find(schedule[assignment].node->source(0).get());
  return schedule[root].role == Role::kInput &&
         schedule[root].storage_class == schedule[old].storage_class;
}

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

}  // namespace vkml::dispatch
