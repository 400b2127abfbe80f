// The record of a computation (autograd/tape.h) and custom gradients, on tensors. Not part of
// vkml.h: it shows the graph's own types, which most programs never name.
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "vkml/api/tensor.h"
#include "vkml/autograd/tape.h"
#include "vkml/ops/functions.h"  // IWYU pragma: export (what operators are written with)

namespace vkml {

/// The graph's values of tensors, as operators take them.
std::vector<graph::Value> values_of(std::span<const Tensor> tensors);

/// Calls a registered operator, built in or custom. Throws UnregisteredOpError.
Tensor apply(const std::string& op_name, std::span<const Tensor> inputs,
             const autograd::OpRegistry& registry = *autograd::default_registry());
Tensor apply(const std::string& op_name, std::initializer_list<Tensor> inputs,
             const autograd::OpRegistry& registry = *autograd::default_registry());

/// The operator itself: its value, and the gradients of its inputs from that of its output,
/// undefined where it has none. Holds the device while it walks over the graph.
Tensor apply(const std::string& op_name, const autograd::OperatorPtr& op,
             std::span<const Tensor> inputs);
std::vector<Tensor> backward(const autograd::OperatorPtr& op, const Tensor& output_gradient,
                             std::span<const Tensor> inputs, const Tensor& output);

/// The same, recorded in `graph` if some input requires a gradient.
Tensor apply(autograd::ComputationGraph& graph, const std::string& op_name,
             std::span<const Tensor> inputs);
Tensor apply(autograd::ComputationGraph& graph, const std::string& op_name,
             std::initializer_list<Tensor> inputs);

/// Records a call that was made already. Returns the output to go on with, which is `output` itself
/// unless it gets the operator's gradient here.
Tensor record(autograd::ComputationGraph& graph, const std::string& op_name,
              std::span<const Tensor> inputs, const Tensor& output);
Tensor record(autograd::ComputationGraph& graph, const std::string& op_name,
              std::initializer_list<Tensor> inputs, const Tensor& output);

/// Gives every recorded ancestor its gradient, and adds to the leaves'. The graph stays, for
/// another pass. Holds the device: no other thread evaluates meanwhile.
void backward(autograd::ComputationGraph& graph, const Tensor& output, const Tensor& gradient = {},
              bool create_graph = false);

/// The recorded ancestors of `output`, users before their sources.
std::vector<int> topological_backward_order(const autograd::ComputationGraph& graph,
                                            const Tensor& output);

/// The position of the node that made a tensor, in the living record that recorded it last, or -1.
int grad_fn_index(const Tensor& tensor);

using TensorPullback =
    std::function<std::vector<Tensor>(const Tensor& output_gradient, const Tensor& output)>;

/// A custom gradient for one call: `value`, computed with gradients off, as a tensor whose gradient
/// goes to `inputs`. The pullback gives one gradient for each input, with its shape, or an
/// undefined tensor.
Tensor with_pullback(const std::string& name, const Tensor& value, std::span<const Tensor> inputs,
                     TensorPullback pullback);

/// The tensor of a graph's value. Of a leaf it shows the gradient that collects there.
Tensor tensor_of(const graph::Value& value);

/// A tensor of its own for the value of now: what is assigned later is not seen by it. Gradients go
/// on to what the value was computed from.
Tensor pin(const Tensor& tensor);

/// Stands for one hook, until the hook is removed.
class HookHandle {
 public:
  HookHandle(std::weak_ptr<graph::GradientHooks> hooks, std::int64_t id)
      : hooks_(std::move(hooks)), id_(id) {}
  /// Removes the hook; a second time nothing happens.
  void remove();

 private:
  std::weak_ptr<graph::GradientHooks> hooks_;
  std::int64_t id_;
};

using TensorHook = std::function<Tensor(const Tensor& gradient)>;

/// Calls `hook` in every backward pass with the whole gradient of the tensor, before it goes on or
/// collects. The hook may return another of the same shape and dtype, or an undefined tensor. A
/// leaf keeps its hooks when it is assigned to. Throws AutogradError when the tensor requires no
/// gradient.
HookHandle register_hook(const Tensor& tensor, TensorHook hook);

/// From now on backward passes add to grad() of a tensor that an operator made, too. Of a leaf they
/// do so anyway. Throws AutogradError when the tensor requires no gradient.
void retain_grad(const Tensor& tensor);
/// Whether retain_grad was called for a tensor that an operator made.
bool retains_grad(const Tensor& tensor);

}  // namespace vkml
