#include "record_tensor.h"

#include "pending_assignments.h"
#include "slot.h"
#include "vkml/api/context.h"
#include "vkml/dispatch/device_mutex.h"
#include "vkml/ops/elementwise.h"

namespace vkml {
namespace {

/// Whether a value is to be computed when the chain below it has this depth.
bool is_too_deep(const graph::Value& value) {
  const std::uint32_t limit = depth_limit();
  const bool needs_gradient = value->requires_grad() && !value->is_gradient_stop();
  return limit != 0 && value->depth() > limit && !needs_gradient;
}

Tensor finish(Tensor tensor, bool too_deep) {
  const bool eager = is_eager();
  if (!eager && !too_deep) return tensor;
  dispatch::run_long([&] {
    tensor.realize();
    // A failure belongs to the operator that caused it, on devices that run ahead of the host too.
    if (eager) tensor.memory().storage->wait();
  });
  return tensor;
}

}  // namespace

std::vector<graph::Value> values_of(std::span<const Tensor> tensors) {
  std::vector<graph::Value> values;
  for (const Tensor& tensor : tensors) values.push_back(tensor.value());
  return values;
}

bool is_number_elsewhere(const graph::Value& value, Device device) {
  return value->family() == graph::Family::kScalar && value->is_weak() && value.device() != device;
}

graph::Value on_device(const graph::Value& value, Device device) {
  return is_number_elsewhere(value, device) ? graph::scalar_on(value, device) : value;
}

Tensor record(graph::Value value) {
  const bool too_deep = is_too_deep(value);
  return finish(Tensor(std::move(value)), too_deep);
}

Tensor record_view(const graph::Value& value, const Tensor& base, const graph::Value& base_value) {
  return finish(Tensor(make_view_slot(value, base.slot(), base_value.node())), is_too_deep(value));
}

void assign_to(const Tensor& tensor, const graph::Value& value) {
  const graph::NodePtr assigned = tensor.slot()->assign(value);
  add_pending_assignment(assigned);
  finish(tensor, is_too_deep(graph::Value(assigned)));
}

}  // namespace vkml
