// Copies between devices. A graph lives on one device, so the copy is made when it is asked for:
// the result is a leaf of its device's graphs that remembers where gradients go.

#include "transfer.h"

#include <cstddef>
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

/// x in row-major order, computed.
NodePtr computed(const Value& x) {
  CallRecorder::refuse_observation();
  NodePtr node = graph::contiguous(x).node();
  if (!node->is_computed()) dispatch::realize(std::span(&node, 1));
  return node;
}

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
