#include "vkml/ops/gradient_reads.h"

#include <memory>
#include <mutex>
#include <vector>

#include "vkml/graph/node_index.h"
#include "vkml/ops/elementwise.h"
#include "vkml/ops/functions.h"

namespace vkml::ops {
namespace {

using graph::GradientReads;
using graph::Node;
using graph::NodePtr;
using graph::Value;

/// Records the row on numbers, and its rule.
GradientReads probe_row(const ElementwiseRow& row, Row which) {
  if (row.gradient == nullptr) return {};
  std::vector<Value> operands;
  for (int i = 0; i < row.arity; ++i) {
    const bool is_condition = row.rule == DTypeRule::kSelect && i == 0;
    operands.push_back(graph::scalar(1, is_condition ? DType::kBool : DType::kF32, kCpu));
  }
  return record_gradient_reads(apply_elementwise(which, operands).node());
}

}  // namespace

GradientReads gradient_reads(const graph::OpInfo& op) {
  if (op.family != graph::Family::kElementwise) return op.reads;
  struct Probed {
    std::once_flag once;
    GradientReads reads;
  };
  static const auto table = std::make_unique<Probed[]>(elementwise_rows().size());
  Probed& entry = table[static_cast<std::size_t>(op.id)];
  std::call_once(entry.once, [&] { entry.reads = probe_row(row_of(op), static_cast<Row>(op.id)); });
  return entry.reads;
}

namespace {

/// What the rule's expressions read. The search ends at the node and at its sources: what is
/// reached through one is not read itself.
GradientReads reads_of_rule(const NodePtr& node) {
  const auto sources = node->sources();
  std::vector<Value> gradients(sources.size());
  const Value one = graph::full(node->shape().extents(), 1, node->dtype(), node->device());
  node->op().gradient(Value(node), one, gradients);
  GradientReads reads;
  graph::NodeIndex seen;
  std::vector<const Node*> waiting;
  for (const Value& gradient : gradients) {
    if (gradient) waiting.push_back(gradient.node().get());
  }
  while (!waiting.empty()) {
    const Node* const found = waiting.back();
    waiting.pop_back();
    if (seen.find(found) >= 0) continue;
    seen.insert(found, 0);
    bool is_end = found == node.get();
    reads.output = reads.output || is_end;
    for (std::size_t i = 0; i < sources.size(); ++i) {
      if (found != sources[i].get()) continue;
      reads.operands |= 1u << i;
      is_end = true;
    }
    if (is_end) continue;
    for (const NodePtr& source : found->sources()) waiting.push_back(source.get());
  }
  return reads;
}

}  // namespace

GradientReads record_gradient_reads(const NodePtr& node) {
  // Operators evaluated on the host show what they read only to gradients that are recorded; rules
  // that save results for a first derivative read those only where none are.
  GradientReads reads;
  for (const bool is_recorded : {true, false}) {
    const graph::GradientMode mode(is_recorded);
    const GradientReads found = reads_of_rule(node);
    reads.operands |= found.operands;
    reads.output = reads.output || found.output;
  }
  return reads;
}

}  // namespace vkml::ops
