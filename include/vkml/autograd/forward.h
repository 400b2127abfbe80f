// Forward-mode differentiation over the graph that operators recorded, and what else functional
// transformations ask of it.
#pragma once

#include <span>
#include <vector>

#include "vkml/graph/value.h"

namespace vkml::autograd {

/// The tangent of each output, from a tangent for each input: Jacobian times vector. Undefined
/// where an output does not depend on an input. The outputs must have been recorded with gradients
/// from inputs that require one. With `create_graph` the tangents record gradients of their own.
std::vector<graph::Value> tangents(std::span<const graph::Value> outputs,
                                   std::span<const graph::Value> inputs,
                                   std::span<const graph::Value> directions, bool create_graph);

/// The leaves besides `inputs` that outputs depend on and that require a gradient.
std::vector<graph::Value> other_leaves(std::span<const graph::Value> outputs,
                                       std::span<const graph::Value> inputs);
/// Whether outputs depend on something that requires a gradient besides `inputs`.
bool has_other_leaves(std::span<const graph::Value> outputs, std::span<const graph::Value> inputs);

}  // namespace vkml::autograd
