#include "vkml/api/plan.h"

#include "runtime.h"
#include "vkml/graph/value.h"

namespace vkml {
namespace {

std::vector<graph::NodePtr> nodes_of(std::span<const Tensor> tensors) {
  register_backends();
  std::vector<graph::NodePtr> nodes;
  for (const Tensor& tensor : tensors) nodes.push_back(tensor.value().node());
  return nodes;
}

}  // namespace

PlanDescription describe(std::span<const Tensor> tensors) {
  return dispatch::describe(nodes_of(tensors));
}

std::string explain(const Tensor& tensor) {
  return dispatch::explain(nodes_of(std::span(&tensor, 1)));
}

}  // namespace vkml
