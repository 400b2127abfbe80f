// A computation recorded for one example, recorded again for a batch of them. (batching.cpp)
#pragma once

#include <span>
#include <vector>

#include "vkml/graph/value.h"
#include "vkml/ops/functions.h"

namespace vkml::graph {

/// Stands for one example while a function is recorded. It has no value: whoever observes it, or
/// anything computed from it, gets an UnsupportedError.
Value placeholder(Axes extents, DType dtype, Device device, bool requires_grad);
bool is_placeholder(const Node& node);

/// What became of a value: the same for every example, or one for each along axis 0.
struct Lane {
  Value value;
  bool is_batched = false;
};

/// Records `outputs` again with each of `examples` (placeholders, or any nodes below) replaced by
/// the lane of the same position. What depends on no batched lane is not recorded again. Gradients
/// are recorded where they were. Throws UnsupportedError naming an operator that takes no further
/// axis.
std::vector<Lane> vectorize(std::span<const Value> outputs, std::span<const Value> examples,
                            std::span<const Lane> lanes);

/// The lane's value with an axis 0 of `count` examples.
Value with_batch_axis(const Lane& lane, std::int64_t count);

/// A view recorded again of a base that has one more axis in front. (views.cpp)
Value batch_view(const Node& view, const Value& base);

}  // namespace vkml::graph
