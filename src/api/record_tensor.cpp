#include "record_tensor.h"

#include "slot.h"
#include "vkml/api/context.h"

namespace vkml {
namespace {

Tensor finish(Tensor tensor, const graph::Value& value) {
  const std::uint32_t limit = depth_limit();
  const bool too_deep = limit != 0 && value->depth() > limit && !value->requires_grad();
  if (is_eager() || too_deep) tensor.realize();
  return tensor;
}

}  // namespace

Tensor record(const graph::Value& value) { return finish(Tensor(value), value); }

Tensor record_view(const graph::Value& value, const Tensor& base, const graph::Value& base_value) {
  return finish(Tensor(make_view_slot(value, base.slot(), base_value.node())), value);
}

}  // namespace vkml
