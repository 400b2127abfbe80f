#include "lower.h"

#include <algorithm>
#include <unordered_map>

#include "emit.h"
#include "old_blocks.h"
#include "placement.h"

namespace vkml::dispatch {
namespace {

using graph::Family;
using graph::Node;

std::size_t at(int index) { return static_cast<std::size_t>(index); }

class Lowering {
 public:
  Lowering(const Schedule& schedule, const Fusion& fusion)
      : schedule_(schedule), fusion_(fusion), placements_(place_parts(schedule, fusion)) {}

  Lowered run() {
    const PlanContext context{
        schedule_, fusion_, [this](int position) { return locate(position); },
        [this](int position) { return scalar_of(position); },
        [this](const graph::OpInfo& op, std::int64_t extent) {
          result_.graph.sites.push_back({op.name, extent, ops::value_check_of(op)});
          return static_cast<int>(result_.graph.sites.size()) - 1;
        }};
    find_values_changed_in_place();
    keep_apart_what_changes_in_place();
    describe_nodes();
    for (const Group& group : fusion_.groups) {
      const Family family = schedule_[group.members[0]].node->family();
      if (family == Family::kConcat) {
        concat(context, group.members[0]);
      } else if (family == Family::kViewUpdate) {
        view_update(context, group);
      } else {
        add(emit_group(context, group));
      }
    }
    finish_nodes();
    result_.graph.input_count = static_cast<int>(result_.inputs.size());
    result_.graph.result_count = static_cast<int>(result_.results.size());
    keep_blocks_that_a_failure_would_need(result_.graph);
    return std::move(result_);
  }

 private:
  /// Kernels over no elements do nothing, unless they give one value for each empty row.
  void add(Kernel kernel) {
    std::int64_t outer = 1;
    for (int axis = 0; axis < kMaxDims - kernel.reduce_dims; ++axis)
      outer *= kernel.space[at(axis)];
    const bool has_row_results = kernel.reduce_dims > 0 && outer > 0;
    if (numel(kernel.space) == 0 && !has_row_results) return;
    if (kernel.stores.empty()) return;
    result_.graph.kernels.push_back(std::move(kernel));
  }

  /// A window of a value that no later group reads is replaced where the value lies: rows filled
  /// one by one take one block. Where the first of such a chain may overwrite a donated block, the
  /// last, which is kept, does.
  void find_values_changed_in_place() {
    std::vector<int> last_reader(at(schedule_.size()), -1);
    for (int i = 0; i < schedule_.size(); ++i) {
      for (const int source : schedule_.sources_of(i)) {
        int& last = last_reader[at(root_of(schedule_, source))];
        last = std::max(last, fusion_.group_of[at(i)]);
      }
    }
    for (std::size_t k = 0; k < fusion_.groups.size(); ++k) {
      const Group& group = fusion_.groups[k];
      if (schedule_[group.members[0]].node->family() != Family::kViewUpdate) continue;
      const int base = schedule_.sources_of(group.members[0])[0];
      const int result = group.members.back();
      const bool is_temporary = schedule_[base].role == Role::kCompute && !schedule_[base].kept &&
                                fusion_.stored[at(base)];
      const bool is_last = last_reader[at(base)] == static_cast<int>(k);
      if (is_temporary && is_last && !fusion_.donated[at(result)]) becomes_[base] = result;
    }
  }

  /// What a later update writes over is nobody else's memory.
  void keep_apart_what_changes_in_place() {
    for (std::size_t i = 0; i < placements_.size(); ++i) {
      const bool changes =
          becomes_.contains(static_cast<int>(i)) || becomes_.contains(placements_[i].container);
      if (changes) placements_[i] = {};
    }
  }

  Location locate(int position) {
    Location location{0, 0, dense_strides(padded(schedule_[position].node->shape()))};
    while (placements_[at(position)].container >= 0) {
      const Placement& placement = placements_[at(position)];
      location.offset += placement.offset;
      if (!placement.is_dense) location.strides = placement.strides;
      position = placement.container;
    }
    location.buffer = buffer_of(position);
    return location;
  }

  /// The value that lies in the end where this one lies first.
  int resting_place(int position) const {
    for (auto next = becomes_.find(position); next != becomes_.end();
         next = becomes_.find(position)) {
      position = next->second;
    }
    return position;
  }

  int buffer_of(int written) {
    const int position = resting_place(written);
    const auto [entry, added] =
        buffers_.try_emplace(position, static_cast<int>(result_.graph.buffers.size()));
    if (!added) return entry->second;
    const Step& step = schedule_[position];
    Buffer buffer;
    buffer.bytes = step.node->numel() * static_cast<std::int64_t>(size_of(step.node->dtype()));
    if (step.role == Role::kInput) {
      buffer.kind = BufferKind::kInput;
      buffer.binding = static_cast<int>(result_.inputs.size());
      result_.inputs.push_back(position);
    } else if (step.kept) {
      buffer.kind = BufferKind::kResult;
      buffer.binding = static_cast<int>(result_.results.size());
      result_.results.push_back(position);
    }
    const int index = entry->second;
    result_.graph.buffers.push_back(buffer);
    if (buffer.kind == BufferKind::kResult && fusion_.donated[at(written)]) {
      const int donor = buffer_of(schedule_.sources_of(written)[0]);
      result_.graph.buffers[at(index)].donor = result_.graph.buffers[at(donor)].binding;
    }
    return index;
  }

  /// Whether the assignment overwrites the block of the old value.
  bool overwrites(int assignment) const {
    return fusion_.donated[at(assignment)] && schedule_[resting_place(assignment)].kept;
  }

  int scalar_of(int position) {
    const auto [entry, added] =
        scalars_.try_emplace(position, static_cast<int>(result_.scalars.size()));
    if (added) {
      result_.scalars.push_back(position);
      result_.graph.scalars.push_back(ops::compute_type(schedule_[position].node->dtype()));
    }
    return entry->second;
  }

  void concat(const PlanContext& context, int position) {
    const Node& node = *schedule_[position].node;
    const int axis = static_cast<int>(node.attributes()[0]);
    const Extents strides = dense_strides(padded(node.shape()));
    const std::int64_t along = strides[at(axis + kMaxDims - node.shape().rank())];
    const Location target = locate(position);
    std::int64_t start = 0;
    for (const int source : schedule_.sources_of(position)) {
      const Shape& part = schedule_[source].node->shape();
      const Placement& placement = placements_[at(root_of(schedule_, source))];
      const bool is_there = placement.container == position && placement.offset == start * along;
      if (!is_there) {
        Kernel kernel = emit_copy(context, source, part, target.buffer, node.dtype(),
                                  target.offset + start * along, strides);
        kernel.nodes = {position};
        add(std::move(kernel));
      }
      start += part[axis];
    }
  }

  void view_update(const PlanContext& context, const Group& group) {
    const int position = group.members[0];
    const int result = group.members.back();
    const Node& node = *schedule_[position].node;
    const int base = schedule_.sources_of(position)[0];
    const int value = schedule_.sources_of(position)[1];
    const int buffer = buffer_of(result);
    const Shape& window = schedule_[value].node->shape();
    Operand target{buffer, node.dtype(), node.attributes()[0], padded(window), {0, 0, 0, 0}};
    for (int axis = 0; axis < window.rank(); ++axis) {
      if (window[axis] != 1)
        target.strides[at(axis + kMaxDims - window.rank())] = node.attributes()[axis + 1];
    }
    const bool is_there =
        becomes_.contains(base) || (overwrites(result) && base == schedule_.sources_of(result)[0]);
    const bool reads_target = (becomes_.contains(base) && root_of(schedule_, value) == base) ||
                              (overwrites(result) && is_overwritten_by(schedule_, value, result));
    std::vector<Kernel> kernels;
    Kernel update;
    if (reads_target) {
      // Saved before anything is written over it.
      const Operand saved{
          new_temporary(window.numel() * static_cast<std::int64_t>(size_of(node.dtype()))),
          node.dtype(), 0, padded(window), dense_strides(padded(window))};
      kernels.push_back(
          emit_copy(context, value, window, saved.buffer, saved.dtype, 0, saved.strides));
      update = copy_kernel(saved, target);
    } else {
      update =
          emit_copy(context, value, window, buffer, node.dtype(), target.offset, target.strides);
    }
    if (!is_there) {
      kernels.push_back(emit_copy(context, base, node.shape(), buffer, node.dtype(), 0,
                                  dense_strides(padded(node.shape()))));
    }
    kernels.push_back(std::move(update));
    for (Kernel& kernel : kernels) {
      kernel.nodes = group.members;
      add(std::move(kernel));
    }
  }

  int new_temporary(std::int64_t bytes) {
    Buffer buffer;
    buffer.bytes = bytes;
    result_.graph.buffers.push_back(buffer);
    return static_cast<int>(result_.graph.buffers.size()) - 1;
  }

  void describe_nodes() {
    for (int i = 0; i < schedule_.size(); ++i) {
      const Step& step = schedule_[i];
      PlanNode node;
      node.op = &step.node->op();
      node.attributes = step.node->attributes();
      node.dtype = step.node->dtype();
      node.shape = step.node->shape();
      for (const int source : schedule_.sources_of(i)) node.sources.push_back(source);
      if (step.role == Role::kAlias) {
        node.view_root = root_of(schedule_, i);
        node.view_offset =
            step.node->view_offset() / static_cast<std::int64_t>(size_of(step.node->dtype()));
      }
      if (step.role == Role::kInput) {
        const auto element = static_cast<std::int64_t>(size_of(node.dtype));
        node.input.buffer = buffer_of(i);
        node.input.dtype = node.dtype;
        node.input.extents = padded(node.shape);
        const int shift = kMaxDims - node.shape.rank();
        for (int axis = 0; axis < node.shape.rank(); ++axis) {
          node.input.strides[at(axis + shift)] = node.shape.stride(axis) / element;
        }
      }
      if (step.role == Role::kScalar) node.scalar = scalar_of(i);
      result_.graph.nodes.push_back(std::move(node));
    }
  }

  void finish_nodes() {
    for (int i = 0; i < schedule_.size(); ++i) {
      const Step& step = schedule_[i];
      const bool computed = step.role == Role::kCompute || step.role == Role::kScalar;
      if (step.kept && computed) result_.graph.nodes[at(i)].result = buffer_of(i);
    }
  }

  const Schedule& schedule_;
  const Fusion& fusion_;
  std::vector<Placement> placements_;  // by position
  Lowered result_;
  std::unordered_map<int, int> becomes_;  // a value changed in place: what it is changed to
  std::unordered_map<int, int> buffers_;
  std::unordered_map<int, int> scalars_;
};

}  // namespace

Lowered lower(const Schedule& schedule, const Fusion& fusion) {
  return Lowering(schedule, fusion).run();
}

}  // namespace vkml::dispatch
