#include "access.h"

namespace vkml::dispatch {
namespace {
std::size_t at(int axis) { return static_cast<std::size_t>(axis); }
}  // namespace

Extents padded(const Shape& shape) {
  Extents extents{1, 1, 1, 1};
  const int shift = kMaxDims - shape.rank();
  for (int axis = 0; axis < shape.rank(); ++axis) extents[at(axis + shift)] = shape[axis];
  return extents;
}

Extents dense_strides(const Extents& extents) {
  Extents strides{0, 0, 0, 0};
  std::int64_t stride = 1;
  for (int axis = kMaxDims - 1; axis >= 0; --axis) {
    strides[at(axis)] = extents[at(axis)] == 1 ? 0 : stride;
    stride *= extents[at(axis)];
  }
  return strides;
}

int root_of(const Schedule& schedule, int source) {
  const Step& step = schedule[source];
  return step.role == Role::kAlias ? schedule.index.find(step.node->view_src().get()) : source;
}

Access access_of(const Schedule& schedule, int source, const Shape& reader) {
  const graph::Node& node = *schedule[source].node;
  const auto element = static_cast<std::int64_t>(size_of(node.dtype()));
  Access access;
  access.root = root_of(schedule, source);
  if (schedule[source].role == Role::kAlias) access.offset = node.view_offset() / element;
  const Shape& shape = node.shape();
  const int shift = kMaxDims - shape.rank();
  const Extents target = padded(reader);
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const bool repeated = shape[axis] == 1;
    if (!repeated && target[at(axis + shift)] != 1) {
      access.strides[at(axis + shift)] = shape.stride(axis) / element;
    }
  }
  return access;
}

bool match_axes(const Extents& from, const Extents& to, unsigned allowed, AxisMap& map) {
  map = {-1, -1, -1, -1};
  int target = 0;
  for (int axis = 0; axis < kMaxDims; ++axis) {
    if (from[at(axis)] == 1) continue;
    while (target < kMaxDims && (((allowed >> target) & 1u) == 0 || to[at(target)] == 1)) ++target;
    if (target == kMaxDims || to[at(target)] != from[at(axis)]) return false;
    map[at(axis)] = target++;
  }
  for (; target < kMaxDims; ++target) {
    if (((allowed >> target) & 1u) != 0 && to[at(target)] != 1) return false;
  }
  return true;
}

}  // namespace vkml::dispatch
