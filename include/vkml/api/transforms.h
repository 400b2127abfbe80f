// What functional transformations (vmap, jvp) ask of the graph, on tensors. Not part of vkml.h:
// they are for those who write transformations; Python's vkml.func is made of them.
#pragma once

#include <span>
#include <vector>

#include "vkml/api/tensor.h"

namespace vkml {

/// Stands for one example while a function is recorded; observing it, or what is computed from it,
/// throws UnsupportedError.
Tensor placeholder(std::span<const std::int64_t> extents, DType dtype, Device device,
                   bool requires_grad = false);

/// Whether two tensors show one recorded value: neither was written to since the other showed it.
bool have_one_value(const Tensor& a, const Tensor& b);

/// A value for all examples: one for each along axis 0, or the same for every one.
struct BatchedTensor {
  Tensor tensor;
  bool is_batched = false;
};
/// Records `outputs` again with each placeholder replaced by a batch, whose axis 0 counts examples.
/// Throws UnsupportedError naming an operator that takes no further axis.
std::vector<BatchedTensor> vectorize(std::span<const Tensor> outputs,
                                     std::span<const Tensor> placeholders,
                                     std::span<const Tensor> batches);

/// Gradients of inputs from those of outputs (reverse mode), summed over the outputs; undefined
/// where no output depends on an input. Nothing is computed and nothing released. Throws
/// AutogradError for an output that requires no gradient, ShapeError for a gradient of another
/// shape.
std::vector<Tensor> cotangents(std::span<const Tensor> outputs, std::span<const Tensor> gradients,
                               std::span<const Tensor> inputs, bool create_graph = false);

/// The tangents of outputs from those of inputs (forward mode); undefined where an output does not
/// depend on an input. With `create_graph` they record gradients of their own.
std::vector<Tensor> tangents(std::span<const Tensor> outputs, std::span<const Tensor> inputs,
                             std::span<const Tensor> directions, bool create_graph = false);

/// The leaves besides `inputs` that outputs depend on and that require a gradient.
std::vector<Tensor> other_leaves(std::span<const Tensor> outputs, std::span<const Tensor> inputs);
/// Whether outputs depend on something that requires a gradient besides `inputs`.
bool has_other_leaves(std::span<const Tensor> outputs, std::span<const Tensor> inputs);

}  // namespace vkml
