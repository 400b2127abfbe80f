// Copies between devices. A graph lives on one device, so the copy is made when it is asked for:
// the result is a leaf of its device's graphs that remembers where gradients go.

#include "transfer.h"

#include <cstddef>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "call_recorder.h"
#include "runtime.h"
#include "vkml/dispatch/backend.h"
#include "vkml/dispatch/executor.h"
#include "vkml/ops/functions.h"

namespace vkml {
namespace {

using graph::NodePtr;
using graph::Value;

void transfer_gradient(const Value& output, const Value& gradient, std::span<Value> gradients) {
  gradients[0] = transfer(gradient, output->source(0)->device());
}
constexpr graph::OpInfo kTransferOp{"to", graph::Family::kLeaf, 0, &transfer_gradient};

std::size_t bytes_of(const graph::Node& node) {
  return static_cast<std::size_t>(node.numel()) * size_of(node.dtype());
}

/// Waits for the node and copies its elements to `bytes`, which they fill.
void read(const graph::Node& node, std::span<std::byte> bytes) {
  if (bytes.empty()) {
    node.storage()->wait();
  } else {
    dispatch::backend_for(node.device()).download(*node.storage(), node.storage_offset(), bytes);
  }
}

/// The dense, computed value that a view looks at; null where there is none.
NodePtr value_behind(const Value& view) {
  const NodePtr root = view->share_view_src();
  const bool is_there =
      root != nullptr && root->is_computed() && root->shape().is_contiguous(size_of(root->dtype()));
  return is_there ? root : nullptr;
}

/// The elements of a view in row-major order, from the bytes of the value behind it.
std::vector<std::byte> seen_through(const graph::Node& view, const std::vector<std::byte>& value) {
  const Shape& shape = view.shape();
  const std::size_t element = size_of(view.dtype());
  std::vector<std::byte> bytes(static_cast<std::size_t>(view.numel()) * element);
  for (std::int64_t i = 0; i < view.numel(); ++i) {
    std::int64_t from = view.view_offset();
    std::int64_t rest = i;
    for (int axis = shape.rank(); axis-- > 0;) {
      from += rest % shape[axis] * shape.stride(axis);
      rest /= shape[axis];
    }
    std::memcpy(&bytes[static_cast<std::size_t>(i) * element],
                &value[static_cast<std::size_t>(from)], element);
  }
  return bytes;
}

/// A view put in order on the CPU, for elements that its device holds but has no arithmetic for;
/// null where the device can do it.
NodePtr ordered_on_cpu(const Value& x, const graph::Node& dense) {
  const NodePtr value = x->is_view() ? value_behind(x) : nullptr;
  std::string reason;
  if (value == nullptr || dispatch::backend_for(x.device()).supports(dense, reason)) return nullptr;
  std::vector<std::byte> whole(bytes_of(*value));
  read(*value, whole);
  const std::vector<std::byte> bytes = seen_through(*x.node(), whole);
  StoragePtr storage = dispatch::backend_for(kCpu).allocator().allocate(bytes.size());
  if (!bytes.empty()) std::memcpy(storage->host(), bytes.data(), bytes.size());
  return graph::make_leaf(std::move(storage), 0, Shape(x.shape().extents(), x.dtype()), x.dtype());
}

/// x in row-major order, computed.
NodePtr computed(const Value& x) {
  CallRecorder::refuse_observation();
  NodePtr node = graph::contiguous(x).node();
  if (node->is_computed()) return node;
  if (NodePtr ordered = ordered_on_cpu(x, *node)) return ordered;
  dispatch::realize(std::span(&node, 1));
  return node;
}

}  // namespace

std::vector<std::byte> download(const Value& x) {
  const NodePtr node = computed(x);
  std::vector<std::byte> bytes(bytes_of(*node));
  read(*node, bytes);
  return bytes;
}

Value transfer(const Value& x, Device device) {
  register_backends();
  dispatch::Backend& backend = dispatch::backend_for(device);
  const NodePtr source = computed(x);
  const std::size_t count = bytes_of(*source);
  StoragePtr storage = backend.allocator().allocate(count);
  // One of the two is memory of the host as a rule, which needs no copy in between.
  if (device.kind == DeviceKind::kCpu) {
    read(*source, {static_cast<std::byte*>(storage->host()), count});
  } else if (source->device().kind == DeviceKind::kCpu) {
    source->storage()->wait();
    const auto* bytes = static_cast<const std::byte*>(source->storage()->host());
    if (count > 0) backend.upload(*storage, 0, {bytes + source->storage_offset(), count});
  } else {
    std::vector<std::byte> bytes(count);
    read(*source, bytes);
    if (count > 0) backend.upload(*storage, 0, bytes);
  }

  graph::NodeSpec spec;
  spec.op = &kTransferOp;
  spec.dtype = x.dtype();
  spec.device = device;
  spec.shape = Shape(x.shape().extents(), x.dtype());
  graph::SourceList sources{x.node()};
  const bool differentiable = graph::any_requires_grad(sources);
  if (differentiable) spec.flags |= graph::kFlagRequiresGrad;
  const NodePtr node = graph::make_node(std::move(spec), std::move(sources));
  node->bind(std::move(storage), 0);
  node->mark_computed();
  if (!differentiable) node->release_sources();
  return Value(node);
}

}  // namespace vkml
