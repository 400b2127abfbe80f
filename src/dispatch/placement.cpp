#include "placement.h"

namespace vkml::dispatch {
namespace {

using graph::Family;

std::size_t at(int index) { return static_cast<std::size_t>(index); }

class Placing {
 public:
  Placing(const Schedule& schedule, const Fusion& fusion)
      : schedule_(schedule),
        fusion_(fusion),
        result_(at(schedule.size())),
        readers_(at(schedule.size())) {
    // A kernel has what it computes at hand; memory is read by the others.
    for (int i = 0; i < schedule.size(); ++i) {
      if (schedule[i].role != Role::kCompute) continue;
      for (const int source : schedule.sources_of(i)) {
        const int root = root_of(schedule, source);
        if (fusion.group_of[at(root)] != fusion.group_of[at(i)]) ++readers_[at(root)];
      }
    }
  }

  std::vector<Placement> run() {
    for (const Group& group : fusion_.groups) {
      const int first = group.members[0];
      if (schedule_[first].node->family() == Family::kConcat && !schedule_[first].kept) {
        place_parts_of(first);
      }
    }
    return std::move(result_);
  }

 private:
  void place_parts_of(int container) {
    const graph::Node& node = *schedule_[container].node;
    const int axis = static_cast<int>(node.attributes()[0]);
    const Extents strides = dense_strides(padded(node.shape()));
    const int padded_axis = axis + kMaxDims - node.shape().rank();
    std::int64_t outer = 1;
    for (int i = 0; i < axis; ++i) outer *= node.shape()[i];
    std::int64_t start = 0;
    for (const int source : schedule_.sources_of(container)) {
      const Shape& part = schedule_[source].node->shape();
      const int root = root_of(schedule_, source);
      Placement placement{container, start * strides[at(padded_axis)], outer == 1, strides};
      start += part[axis];
      if (!has_memory_to_give_up(root) || !shows_all(source, root)) continue;
      if (placement.is_dense || may_be_strided(source, root)) result_[at(root)] = placement;
    }
  }

  /// Whether the value is written by kernels that can write it anywhere.
  bool has_memory_to_give_up(int root) const {
    const Step& step = schedule_[root];
    const int group = fusion_.group_of[at(root)];
    if (step.role != Role::kCompute || step.kept || group < 0 || !fusion_.stored[at(root)] ||
        fusion_.donated[at(root)] || step.node->numel() == 0 || result_[at(root)].container >= 0) {
      return false;
    }
    const Group& own = fusion_.groups[at(group)];
    return schedule_[own.members[0]].node->family() != Family::kViewUpdate;
  }

  bool shows_all(int source, int root) const {
    const graph::Node& view = *schedule_[source].node;
    const graph::Node& node = *schedule_[root].node;
    return source == root || (view.view_offset() == 0 && view.numel() == node.numel() &&
                              view.shape().is_contiguous(size_of(view.dtype())));
  }

  bool may_be_strided(int source, int root) const {
    const Group& group = fusion_.groups[at(fusion_.group_of[at(root)])];
    return source == root && group.core < 0 && readers_[at(root)] == 1;
  }

  const Schedule& schedule_;
  const Fusion& fusion_;
  std::vector<Placement> result_;
  std::vector<int> readers_;  // by position: how often other groups read the value
};

}  // namespace

std::vector<Placement> place_parts(const Schedule& schedule, const Fusion& fusion) {
  return Placing(schedule, fusion).run();
}

}  // namespace vkml::dispatch
