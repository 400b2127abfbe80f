// x[...] and x[...] = v with Python's meaning of integers, slices, None and ellipsis.

#include <fmt/format.h>

#include <array>

#include "indexing.h"
#include "record_tensor.h"
#include "slot.h"
#include "vkml/api/context.h"
#include "vkml/api/functions.h"
#include "vkml/ops/functions.h"

namespace vkml {
namespace {

using graph::Value;

Value apply_index(const char* op, const Value& x, const Index& index) {
  std::int64_t consumed = 0;
  int ellipses = 0;
  for (const IndexPart& part : index) {
    if (std::holds_alternative<IndexEllipsis>(part)) {
      ++ellipses;
    } else if (!std::holds_alternative<IndexNewAxis>(part)) {
      ++consumed;
    }
  }
  if (ellipses > 1) throw IndexError(fmt::format("[{}] an index holds one ellipsis at most", op));
  if (consumed > x.rank()) {
    throw IndexError(
        fmt::format("[{}] {} indices for a tensor of rank {}", op, consumed, x.rank()));
  }
  // Two passes, so that x[None, 0] never exceeds the rank limit: first what removes or narrows
  // axes, then new axes.
  Value result = x;
  int axis = 0;
  std::vector<int> new_axes;  // places in the result
  int out_axis = 0;
  for (const IndexPart& part : index) {
    if (const auto* position = std::get_if<std::int64_t>(&part)) {
      result = graph::select_index(op, result, axis, *position);
    } else if (const auto* slice = std::get_if<IndexSlice>(&part)) {
      result = graph::slice(result, axis++, slice->start, slice->stop, slice->step);
      ++out_axis;
    } else if (std::holds_alternative<IndexNewAxis>(part)) {
      new_axes.push_back(out_axis++);
    } else {
      const int skipped = static_cast<int>(x.rank() - consumed);
      axis += skipped;
      out_axis += skipped;
    }
  }
  for (const int added : new_axes) result = graph::unsqueeze(result, added);
  return result;
}

/// The value whose memory another shows; null when that is not known any more.
graph::NodePtr root_of(const Value& value) {
  if (graph::NodePtr root = value->share_view_src()) return root;
  return value->is_view() || value->family() == graph::Family::kView ? nullptr : value.node();
}

/// Whether writing `value` to `window` changes nothing: `x[i] += 1` ends with such a write.
bool is_same_window(const Value& value, const Value& window) {
  return value.shape() == window.shape() && value.dtype() == window.dtype() &&
         value->view_offset() == window->view_offset() && root_of(value) != nullptr &&
         root_of(value) == root_of(window);
}

/// Without leading extents of 1 past the rank.
Value without_leading_ones(Value value, int rank) {
  while (value.rank() > rank && value.shape()[0] == 1) value = graph::squeeze(value, 0);
  return value;
}

}  // namespace

Tensor index_as(const char* op, const Tensor& tensor, const Index& index) {
  const Value x = tensor.value();
  return record_view(apply_index(op, x, index), tensor, x);
}

Tensor Tensor::index(const Index& index) const { return index_as("getitem", *this, index); }

// Written as through a view: x[index] is one.
void Tensor::index_put_(const Index& index, const Tensor& given) {
  const Value old = value();
  if (old->is_gradient_stop() && is_grad_enabled()) {
    throw AutogradError(
        "[setitem] a leaf that requires a gradient cannot be assigned to in place. Use no_grad, or "
        "assign to a copy");
  }
  const Value window = apply_index("setitem", old, index);
  if (is_same_window(given.value(), window)) return;
  const Value element =
      graph::cast_operand("setitem", on_device(given.value(), old.device()), old.dtype());
  const Value value = graph::broadcast_to(without_leading_ones(element, window.rank()),
                                          window.shape().extents(), "setitem");
  assign_to(Tensor(make_view_slot(window, slot_, old.node())), value);
}

}  // namespace vkml
