// Transformations on tensors: the device's lock round each walk over the graph.

#include "vkml/api/transforms.h"

#include <optional>

#include "record_tensor.h"
#include "runtime.h"
#include "vkml/autograd/backward.h"
#include "vkml/autograd/forward.h"
#include "vkml/dispatch/executor.h"
#include "vkml/ops/batching.h"

namespace vkml {
namespace {

using graph::Value;

std::vector<Tensor> tensors_of(std::span<const Value> values) {
  std::vector<Tensor> tensors;
  for (const Value& value : values) tensors.push_back(value ? record(value) : Tensor());
  return tensors;
}

/// No thread realises what is walked over meanwhile.
std::optional<dispatch::GraphLock> lock_for(std::span<const Tensor> tensors) {
  register_backends();
  std::optional<dispatch::GraphLock> lock;
  if (!tensors.empty()) lock.emplace(tensors[0].device());
  return lock;
}

}  // namespace

Tensor placeholder(std::span<const std::int64_t> extents, DType dtype, Device device,
                   bool requires_grad) {
  return Tensor(graph::placeholder(extents, dtype, device, requires_grad));
}

bool have_one_value(const Tensor& a, const Tensor& b) {
  return a.value().node() == b.value().node();
}

std::vector<BatchedTensor> vectorize(std::span<const Tensor> outputs,
                                     std::span<const Tensor> placeholders,
                                     std::span<const Tensor> batches) {
  std::vector<graph::Lane> lanes;
  for (const Value& batch : values_of(batches)) lanes.push_back({batch, true});
  std::vector<graph::Lane> found;
  {
    const auto lock = lock_for(outputs);
    found = graph::vectorize(values_of(outputs), values_of(placeholders), lanes);
  }
  std::vector<BatchedTensor> results;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const bool is_batched = found[i].is_batched;
    results.push_back({is_batched ? record(found[i].value) : outputs[i], is_batched});
  }
  return results;
}

std::vector<Tensor> cotangents(std::span<const Tensor> outputs, std::span<const Tensor> gradients,
                               std::span<const Tensor> inputs, bool create_graph) {
  std::vector<Value> arriving;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    arriving.push_back(autograd::seed_gradient(outputs[i].value(), gradients[i].value()));
  }
  std::vector<Value> found;
  {
    const auto lock = lock_for(outputs);
    found = autograd::gradients(values_of(outputs), arriving, values_of(inputs), create_graph);
  }
  return tensors_of(found);
}

std::vector<Tensor> tangents(std::span<const Tensor> outputs, std::span<const Tensor> inputs,
                             std::span<const Tensor> directions, bool create_graph) {
  std::vector<Value> found;
  {
    const auto lock = lock_for(outputs);
    found = autograd::tangents(values_of(outputs), values_of(inputs), values_of(directions),
                               create_graph);
  }
  return tensors_of(found);
}

std::vector<Tensor> other_leaves(std::span<const Tensor> outputs, std::span<const Tensor> inputs) {
  std::vector<Value> found;
  {
    const auto lock = lock_for(outputs);
    found = autograd::other_leaves(values_of(outputs), values_of(inputs));
  }
  std::vector<Tensor> leaves;
  for (const Value& leaf : found) leaves.emplace_back(leaf);
  return leaves;
}

bool has_other_leaves(std::span<const Tensor> outputs, std::span<const Tensor> inputs) {
  const auto lock = lock_for(outputs);
  return autograd::has_other_leaves(values_of(outputs), values_of(inputs));
}

}  // namespace vkml
