// The record on tensors: tensors in and out, eager mode, and the device's lock round a pass.

#include <fmt/format.h>

#include "record_tensor.h"
#include "runtime.h"
#include "slot.h"
#include "vkml/api/autograd.h"
#include "vkml/dispatch/executor.h"

namespace vkml {

using autograd::ComputationGraph;
using autograd::OpRegistry;
using graph::Value;

namespace {

std::span<const Tensor> as_span(std::initializer_list<Tensor> tensors) {
  return {tensors.begin(), tensors.size()};
}

/// The tensor that shows a result already, so that its slot is shared, or a new one.
Tensor reuse(const Value& value, std::span<const Tensor> candidates) {
  for (const Tensor& candidate : candidates) {
    if (candidate.value().node() == value.node()) return candidate;
  }
  return record(value);
}

}  // namespace

Tensor apply(const std::string& op_name, const autograd::OperatorPtr& op,
             std::span<const Tensor> inputs) {
  return reuse(autograd::apply(op_name, op, values_of(inputs)), inputs);
}
Tensor apply(const std::string& op_name, std::span<const Tensor> inputs,
             const OpRegistry& registry) {
  return apply(op_name, registry.get(op_name), inputs);
}
Tensor apply(const std::string& op_name, std::initializer_list<Tensor> inputs,
             const OpRegistry& registry) {
  return apply(op_name, as_span(inputs), registry);
}

std::vector<Tensor> backward(const autograd::OperatorPtr& op, const Tensor& output_gradient,
                             std::span<const Tensor> inputs, const Tensor& output) {
  register_backends();
  const Value value = output.value();
  std::vector<Value> found;
  {
    const dispatch::GraphLock lock(value.device());
    found = op->backward(output_gradient.value(), values_of(inputs), value);
  }
  std::vector<Tensor> gradients;
  for (const Value& each : found) gradients.push_back(each ? record(each) : Tensor());
  return gradients;
}

Tensor apply(ComputationGraph& graph, const std::string& op_name, std::span<const Tensor> inputs) {
  return reuse(graph.apply(op_name, values_of(inputs)), inputs);
}
Tensor apply(ComputationGraph& graph, const std::string& op_name,
             std::initializer_list<Tensor> inputs) {
  return apply(graph, op_name, as_span(inputs));
}

Tensor record(ComputationGraph& graph, const std::string& op_name, std::span<const Tensor> inputs,
              const Tensor& output) {
  return reuse(graph.record(op_name, values_of(inputs), output.value()), std::span(&output, 1));
}
Tensor record(ComputationGraph& graph, const std::string& op_name,
              std::initializer_list<Tensor> inputs, const Tensor& output) {
  return record(graph, op_name, as_span(inputs), output);
}

void backward(ComputationGraph& graph, const Tensor& output, const Tensor& gradient,
              bool create_graph) {
  register_backends();
  const Value value = output.value();
  const dispatch::GraphLock lock(value.device());
  graph.backward(value, gradient.is_defined() ? gradient.value() : Value(), create_graph);
}

std::vector<int> topological_backward_order(const ComputationGraph& graph, const Tensor& output) {
  const Value value = output.value();
  const dispatch::GraphLock lock(value.device());
  return autograd::topological_backward_order(graph, value);
}

int grad_fn_index(const Tensor& tensor) { return autograd::grad_fn_index(tensor.value()); }

Tensor with_pullback(const std::string& name, const Tensor& value, std::span<const Tensor> inputs,
                     TensorPullback pullback) {
  const auto on_values = [pullback = std::move(pullback)](
                             const Value& gradient, std::span<const Value>, const Value& output) {
    std::vector<Value> gradients;
    for (const Tensor& each : pullback(Tensor(gradient), Tensor(output))) {
      gradients.push_back(each.is_defined() ? each.value() : Value());
    }
    return gradients;
  };
  const Value result = autograd::with_pullback(name, value.value(), values_of(inputs), on_values);
  return reuse(result, std::span(&value, 1));
}

Tensor tensor_of(const Value& value) {
  Tensor tensor(value);
  const auto sink = value->is_gradient_stop() ? value->sink().lock() : nullptr;
  if (sink) tensor.slot()->set_gradient(std::dynamic_pointer_cast<LeafGradient>(sink));
  return tensor;
}

Tensor pin(const Tensor& tensor) { return tensor_of(tensor.value()); }

void HookHandle::remove() {
  if (const auto hooks = hooks_.lock()) hooks->remove(id_);
}

namespace {

HookHandle add_hook(const Tensor& tensor, TensorHook hook, bool is_last) {
  const Value value = tensor.value();
  if (!value->requires_grad()) {
    throw AutogradError(
        "[register_hook] this tensor requires no gradient, so none would be seen. Set "
        "requires_grad=True first");
  }
  const auto sink = value->sink().lock();
  const std::shared_ptr<graph::GradientHooks> hooks =
      sink ? sink->hooks() : value.node()->make_hooks();
  const std::int64_t id = hooks->add(
      [hook = std::move(hook)](const Value& gradient) {
        const Tensor replaced = hook(Tensor(gradient));
        return replaced.is_defined() ? replaced.value() : Value();
      },
      is_last);
  return {hooks, id};
}

}  // namespace

HookHandle register_hook(const Tensor& tensor, TensorHook hook) {
  return add_hook(tensor, std::move(hook), false);
}

void retain_grad(const Tensor& tensor) {
  if (tensor.is_leaf() || retains_grad(tensor)) {
    if (tensor.requires_grad()) return;
    throw AutogradError(
        "[retain_grad] this tensor requires no gradient, so none would be kept. Set "
        "requires_grad=True first");
  }
  const auto kept = std::make_shared<LeafGradient>();
  kept->belong_to(tensor.dtype(), tensor.device());
  // What is kept is what other hooks leave, as PyTorch's.
  const auto keep = [kept](const Tensor& gradient) {
    kept->accumulate(gradient.value());
    return Tensor();
  };
  add_hook(tensor, keep, true);
  tensor.slot()->set_retained(kept);
}

bool retains_grad(const Tensor& tensor) {
  return !tensor.is_leaf() && tensor.slot()->retained() != nullptr;
}

}  // namespace vkml
