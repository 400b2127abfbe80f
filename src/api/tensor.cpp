#include "vkml/api/tensor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "call_recorder.h"
#include "realize.h"
#include "record_tensor.h"
#include "runtime.h"
#include "slot.h"
#include "transfer.h"
#include "vkml/api/context.h"
#include "vkml/api/functions.h"
#include "vkml/core/half.h"
#include "vkml/dispatch/backend.h"
#include "vkml/dispatch/executor.h"
#include "vkml/ops/autocast.h"
#include "vkml/ops/functions.h"

namespace vkml {

using graph::NodePtr;
using graph::Value;

Tensor::Tensor() = default;
Tensor::~Tensor() = default;
Tensor::Tensor(const Tensor&) = default;
Tensor::Tensor(Tensor&&) noexcept = default;
Tensor& Tensor::operator=(const Tensor&) = default;
Tensor& Tensor::operator=(Tensor&&) noexcept = default;

Tensor::Tensor(double value) : Tensor(graph::weak_scalar(value, default_device())) {}
Tensor::Tensor(float value) : Tensor(static_cast<double>(value)) {}
Tensor::Tensor(std::int64_t value) : Tensor(graph::weak_scalar(value, default_device())) {}
Tensor::Tensor(int value) : Tensor(static_cast<std::int64_t>(value)) {}
Tensor::Tensor(bool value) : Tensor(graph::weak_scalar(value, default_device())) {}

Tensor::Tensor(Value&& value) : slot_(make_slot(std::move(value).take())) {}
Tensor::Tensor(std::shared_ptr<Slot> slot) : slot_(std::move(slot)) {}
Tensor::Tensor(const Value& value) : slot_(make_slot(value.node())) {}

Value Tensor::value() const {
  if (!slot_)
    throw ArgumentError(
        "[tensor] an undefined tensor was used: it was never given a value. Assign one to it "
        "first");
  return Value(node_of(slot_));
}

Tensor Tensor::from_host(std::span<const std::byte> bytes, const Extents& extents, DType dtype,
                         Device device) {
  register_backends();
  const Shape shape(extents, dtype);
  const std::size_t wanted = static_cast<std::size_t>(shape.numel()) * size_of(dtype);
  if (bytes.size() != wanted) {
    throw ShapeError(fmt::format("[tensor] {} bytes do not fill shape {} of {} ({} bytes)",
                                 bytes.size(), shape.to_string(), name_of(dtype), wanted));
  }
  dispatch::Backend& backend = dispatch::backend_for(device);
  StoragePtr storage = backend.allocator().allocate(wanted);
  if (wanted > 0) backend.upload(*storage, 0, bytes);
  return from_shared(std::move(storage), 0, shape, dtype);
}

Tensor Tensor::from_values(std::span<const float> values, const Extents& extents, Device device) {
  return from_host(std::as_bytes(values), extents, DType::kF32, device);
}

Tensor Tensor::from_shared(StoragePtr storage, std::int64_t offset, const Shape& shape,
                           DType dtype) {
  return Tensor(Value(graph::make_leaf(std::move(storage), offset, shape, dtype)));
}

Shape Tensor::shape() const { return value().node()->shape(); }
Extents Tensor::extents() const {
  const Shape own = shape();
  return {own.extents().begin(), own.extents().end()};
}
std::int64_t Tensor::size(std::int64_t axis) const {
  return shape()[normalize_axis("size", axis, rank())];
}
DType Tensor::dtype() const { return value().dtype(); }
Device Tensor::device() const { return value().device(); }
bool Tensor::is_contiguous() const { return shape().is_contiguous(size_of(dtype())); }
bool Tensor::is_computed() const {
  const Value v = value();
  if (v->is_computed()) return true;
  const NodePtr root = v->share_view_src();
  // Without a root it is no view, or another thread has just computed it.
  return root ? root->is_computed() : v->is_computed();
}

const Tensor& Tensor::realize() const {
  register_backends();
  const NodePtr node = value().node();
  if (!node->is_computed()) dispatch::realize(std::span(&node, 1));
  return *this;
}

std::vector<std::byte> Tensor::to_host() const {
  register_backends();
  return download(value());
}

std::vector<float> Tensor::to_floats() const {
  const std::vector<std::byte> bytes = to(*this, DType::kF32).to_host();
  std::vector<float> values(bytes.size() / sizeof(float));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

namespace {

template <typename T>
T load(const std::vector<std::byte>& bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof(T));
  return value;
}

/// The bytes of a value's only element.
std::vector<std::byte> only_element(const Value& value) {
  if (value->numel() != 1) {
    throw ShapeError(fmt::format("[item] a tensor of shape {} has {} elements, not one",
                                 value.shape().to_string(), value->numel()));
  }
  register_backends();
  return download(value);
}

double number_in(const std::vector<std::byte>& bytes, DType dtype) {
  switch (dtype) {
    case DType::kBool:
    case DType::kU8:
      return load<std::uint8_t>(bytes);
    case DType::kI32:
      return load<std::int32_t>(bytes);
    case DType::kI64:
      return static_cast<double>(load<std::int64_t>(bytes));
    case DType::kF16:
      return f16_to_f32(load<std::uint16_t>(bytes));
    case DType::kBF16:
      return bf16_to_f32(load<std::uint16_t>(bytes));
    case DType::kF32:
      return load<float>(bytes);
    case DType::kF64:
      return load<double>(bytes);
  }
  throw InternalError("unknown dtype");
}

}  // namespace

// One value for bytes and dtype: another thread may give the tensor another one meanwhile.

double Tensor::item() const {
  const Value v = value();
  return number_in(only_element(v), v.dtype());
}

std::int64_t Tensor::item_integer() const {
  const Value v = value();
  const std::vector<std::byte> bytes = only_element(v);
  if (v.dtype() == DType::kI64) return load<std::int64_t>(bytes);
  return static_cast<std::int64_t>(number_in(bytes, v.dtype()));
}

Tensor::Memory Tensor::memory(bool is_exported) const {
  CallRecorder::refuse_observation();
  register_backends();
  // One node, held until the end: other threads may make the tensor show another.
  const NodePtr node = value().node();
  dispatch::realize({&node, 1});
  // A value that only a recording had has no memory, and says so.
  if (node->storage()->host() == nullptr && node->storage()->handle() == 0) node->storage()->wait();
  if (is_exported) node->storage()->mark_exported();
  return {node->storage(), node->storage_offset(), node->shape(), node->dtype()};
}

bool Tensor::requires_grad() const { return value()->requires_grad(); }
bool Tensor::is_leaf() const {
  const Value v = value();
  return !v->requires_grad() || v->is_gradient_stop();
}

namespace {

/// From now on the slot's value is where gradients end. Graphs recorded when it was a leaf before
/// still bring theirs to the same place.
void become_leaf(const std::shared_ptr<Slot>& slot) {
  const Value v(node_of(slot));
  std::shared_ptr<LeafGradient> gradient = slot->last_gradient();
  if (!gradient) gradient = std::make_shared<LeafGradient>();
  constexpr std::uint32_t kLeafFlags = graph::kFlagRequiresGrad | graph::kFlagGradientStop;
  NodePtr leaf =
      v->is_computed() && !v->is_view()
          ? graph::make_leaf(v->storage(), v->storage_offset(), v.shape(), v.dtype(), kLeafFlags)
          : graph::alias(v, kLeafFlags).node();
  gradient->belong_to(v.dtype(), v.device());
  leaf->set_sink(gradient);
  slot->set_gradient(std::move(gradient));
  slot->show(std::move(leaf));
}

}  // namespace

Tensor& Tensor::requires_grad_(bool requires_grad) {
  const Value v = value();
  if (v->requires_grad() == requires_grad) return *this;
  if (requires_grad && !is_floating(dtype())) {
    throw DTypeError(
        fmt::format("[requires_grad_] only floats have gradients, not {}", name_of(dtype())));
  }
  if (!requires_grad) {
    if (!is_leaf()) {
      throw AutogradError("[requires_grad_] this tensor was recorded by an operator; use detach()");
    }
    if (const std::shared_ptr<LeafGradient> gradient = slot_->gradient()) gradient->close();
    slot_->show(graph::detach(v).node());
    return *this;
  }
  become_leaf(slot_);
  return *this;
}

namespace {

/// Where the gradient of a tensor is found: of a leaf, or kept on its way to leaves.
std::shared_ptr<LeafGradient> gradient_of(const Tensor& tensor) {
  const std::shared_ptr<LeafGradient> retained = tensor.slot()->retained();
  return retained && !tensor.is_leaf() ? retained : tensor.slot()->last_gradient();
}

}  // namespace

Tensor Tensor::grad() const {
  const std::shared_ptr<LeafGradient> gradient = slot_ ? gradient_of(*this) : nullptr;
  const std::shared_ptr<Slot> current = gradient ? gradient->current() : nullptr;
  return current ? Tensor(current) : Tensor();
}

namespace {

/// A gradient must be addable to others of its tensor.
void check_matches(const char* op, const Value& gradient, const Value& tensor) {
  if (!gradient.shape().same_extents(tensor.shape())) {
    throw ShapeError(fmt::format("[{}] the gradient has shape {}, the tensor {}", op,
                                 gradient.shape().to_string(), tensor.shape().to_string()));
  }
  if (gradient.dtype() != tensor.dtype()) {
    throw DTypeError(fmt::format("[{}] the gradient is {}, the tensor {}. Use gradient.to(vkml.{})",
                                 op, name_of(gradient.dtype()), name_of(tensor.dtype()),
                                 name_of(tensor.dtype())));
  }
  if (gradient.device() != tensor.device()) {
    throw DeviceError(fmt::format(
        "[{}] the gradient is on {}, the tensor on {}. Use "
        "gradient.to(\"{}\")",
        op, to_string(gradient.device()), to_string(tensor.device()), to_string(tensor.device())));
  }
}

}  // namespace

void Tensor::set_grad(const Tensor& gradient) {
  const Value v = value();
  const std::shared_ptr<LeafGradient> leaf = gradient_of(*this);
  if (gradient.is_defined()) {
    if (!leaf || !leaf->is_open())
      throw AutogradError("[grad] this tensor is not a leaf that requires a gradient");
    check_matches("grad", gradient.value(), v);
  }
  if (leaf) leaf->set(gradient.slot());
}

Tensor Tensor::detach() const {
  const Value v = value();
  const Value detached = graph::detach(v);
  // A value without a graph must not keep one alive through its base.
  return is_leaf() ? record_view(detached, *this, v) : record(detached);
}

Tensor Tensor::snapshot() const { return record(graph::detach(value())); }

Tensor Tensor::pinned() const { return Tensor(value()); }

Tensor& Tensor::assign_(const Tensor& given) {
  const Value old = value();
  const Value value = on_device(given.value(), old.device());
  graph::check_assignable(old, value);
  const bool cuts_history = old->is_gradient_stop() && value->requires_grad();
  assign_to(*this, cuts_history ? graph::detach(value) : value);
  return *this;
}

Tensor& Tensor::update_(const Tensor& given) {
  const Value old = value();
  if (old->is_gradient_stop() && is_grad_enabled()) {
    throw AutogradError(
        "[assign_] a leaf that requires a gradient cannot be changed in place while gradients are "
        "recorded. Use no_grad");
  }
  const Value value = on_device(given.value(), old.device());
  if (is_floating(value.dtype()) && !is_floating(old.dtype())) {
    throw DTypeError(fmt::format("[assign_] a result of {} does not fit a tensor of {}",
                                 name_of(value.dtype()), name_of(old.dtype())));
  }
  if (!old.shape().same_extents(value.shape())) {
    throw ShapeError(
        fmt::format("[assign_] a result of shape {} does not fit a tensor of shape {}. Use the "
                    "operator that makes a new tensor",
                    value.shape().to_string(), old.shape().to_string()));
  }
  assign_to(*this, graph::cast_operand("assign_", value, old.dtype()));
  return *this;
}

Tensor& Tensor::copy_(const Tensor& given) {
  const Tensor here = to(Tensor(on_device(given.value(), device())), device());
  const Tensor source(graph::cast_operand("copy_", here.value(), dtype()));
  return update_(Tensor(graph::broadcast_to(source.value(), extents(), "copy_")));
}

Tensor& Tensor::set_data(const Tensor& given) {
  const Value old = value();
  const Value value = graph::contiguous(graph::detach(given.value()));
  if (!is_leaf()) {
    throw AutogradError("[set_data] this tensor was recorded by an operator; use detach()");
  }
  if (!old.shape().same_extents(value.shape())) {
    throw ShapeError(fmt::format("[set_data] a value of shape {} does not fit a tensor of shape {}",
                                 value.shape().to_string(), old.shape().to_string()));
  }
  const bool collects_gradients = requires_grad();
  if (collects_gradients && !is_floating(value.dtype())) {
    throw AutogradError(
        fmt::format("[set_data] only floats have gradients, not {}", name_of(value.dtype())));
  }
  slot_->leave_base(value.node());
  if (collects_gradients) become_leaf(slot_);
  return *this;
}

Tensor Tensor::operator-() const { return neg(*this); }
Tensor& Tensor::operator+=(const Tensor& other) { return update_(add(*this, other)); }
Tensor& Tensor::operator-=(const Tensor& other) { return update_(sub(*this, other)); }
Tensor& Tensor::operator*=(const Tensor& other) { return update_(mul(*this, other)); }
Tensor& Tensor::operator/=(const Tensor& other) { return update_(*this / other); }

Tensor operator+(const Tensor& a, const Tensor& b) { return add(a, b); }
Tensor operator-(const Tensor& a, const Tensor& b) { return sub(a, b); }
Tensor operator*(const Tensor& a, const Tensor& b) { return mul(a, b); }

namespace {

/// The number that a tensor was made from, where it is the same in every run of a recorded step.
std::optional<double> constant_number(const Value& x) {
  const bool is_number = x->family() == graph::Family::kScalar && x->is_weak();
  if (!is_number || graph::origin_of(*x.node()).source != graph::NumberSource::kConstant)
    return std::nullopt;
  return graph::scalar_number(*x.node());
}

}  // namespace

Tensor operator/(const Tensor& a, const Tensor& b) {
  const std::optional<double> divisor = constant_number(b.value());
  if (divisor) return record(a.value() / *divisor);
  // Autocast takes reciprocals as precise, and other quotients as they come.
  const bool is_reciprocal = constant_number(a.value()).has_value();
  return div(a, is_reciprocal ? record(graph::as_precise_operand(b.value())) : b);
}

Tensor power(const Tensor& a, const Tensor& b) {
  const bool is_square = is_floating(a.dtype()) && constant_number(b.value()) == 2.0;
  return is_square ? record(graph::square(graph::as_precise_operand(a.value()))) : pow(a, b);
}

namespace {

std::vector<NodePtr> pending_nodes(std::span<const Tensor> tensors) {
  register_backends();
  std::vector<NodePtr> nodes;
  for (const Tensor& tensor : tensors) {
    NodePtr node = tensor.value().node();
    if (!node->is_computed()) nodes.push_back(std::move(node));
  }
  return nodes;
}

}  // namespace

void realize(std::span<const Tensor> tensors) { dispatch::realize(pending_nodes(tensors)); }
void realize_by_device(std::span<const Tensor> tensors) {
  realize_by_device(pending_nodes(tensors), {});
}

}  // namespace vkml
