#include "record_tensor.h"

#include "slot.h"
#include "vkml/api/context.h"
#include "vkml/ops/elementwise.h"

namespace vkml {
namespace {

Tensor finish(Tensor tensor, const graph::Value& value) {
  const std::uint32_t limit = depth_limit();
  const bool too_deep = limit != 0 && value->depth() > limit && !value->requires_grad();
  if (is_eager() || too_deep) tensor.realize();
  // A failure belongs to the operator that caused it, on devices that run ahead of the host too.
  if (is_eager()) tensor.memory().storage->wait();
  return tensor;
}

}  // namespace

std::vector<graph::Value> values_of(std::span<const Tensor> tensors) {
  std::vector<graph::Value> values;
  for (const Tensor& tensor : tensors) values.push_back(tensor.value());
  return values;
}

graph::Value on_device(const graph::Value& value, Device device) {
  const bool is_number = value->family() == graph::Family::kScalar && value->is_weak();
  if (!is_number || value.device() == device) return value;
  return graph::scalar_on(value, device);
}

Tensor record(const graph::Value& value) { return finish(Tensor(value), value); }

Tensor record_view(const graph::Value& value, const Tensor& base, const graph::Value& base_value) {
  return finish(Tensor(make_view_slot(value, base.slot(), base_value.node())), value);
}

}  // namespace vkml
