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

}  // namespace

std::vector<std::byte> download(const Value& x) {
  CallRecorder::refuse_observation();
  const Value dense = graph::contiguous(x);
  const NodePtr node = dense.node();
  if (!node->is_computed()) dispatch::realize(std::span(&node, 1));
  std::vector<std::byte> bytes(static_cast<std::size_t>(node->numel()) * size_of(node->dtype()));
  if (bytes.empty()) {
    node->storage()->wait();
  } else {
    dispatch::backend_for(node->device()).download(*node->storage(), node->storage_offset(), bytes);
  }
  return bytes;
}

Value transfer(const Value& x, Device device) {
  register_backends();
  dispatch::Backend& backend = dispatch::backend_for(device);
  const std::vector<std::byte> bytes = download(x);
  StoragePtr storage = backend.allocator().allocate(bytes.size());
  if (!bytes.empty()) backend.upload(*storage, 0, bytes);

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
