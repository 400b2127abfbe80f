// Batching rules: what each family of operators does when its operands have one more axis in front.
//
// The graph is walked once, sources before users; a node below which nothing is batched stays as it
// is. Batched values always have the batch as axis 0, so that a rule shifts axes by one and
// otherwise calls the operator again. Bound: one node recorded for each node of the example.

#include "vkml/ops/batching.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "record.h"
#include "vkml/graph/node_index.h"
#include "vkml/ops/elementwise.h"
#include "vkml/ops/value_check.h"

namespace vkml::graph {
namespace {

using ops::CoreKind;

constexpr OpInfo kPlaceholder{"vmap", Family::kLeaf, 0, nullptr};

[[noreturn]] void refuse(const Node& node, const std::string& reason) {
  throw UnsupportedError(
      fmt::format("[vmap] {} {}. Give the operator whole batches, outside vmap, or call the "
                  "function once for each example",
                  node.op().name, reason));
}

ExtentList batched_extents(const Node& node, std::int64_t count) {
  ExtentList extents;
  extents.push_back(count);
  for (const std::int64_t extent : node.shape().extents()) extents.push_back(extent);
  return extents;
}

/// A batched value with extents of 1 behind its batch, so that its example has `rank` axes.
Value aligned(const Value& batched, int rank) {
  if (batched.rank() == rank + 1) return batched;
  ExtentList extents;
  extents.push_back(batched.shape()[0]);
  for (int axis = batched.rank(); axis <= rank; ++axis) extents.push_back(1);
  for (int axis = 1; axis < batched.rank(); ++axis) extents.push_back(batched.shape()[axis]);
  return reshape(batched, extents.span());
}

Attributes with_next_axis(const Attributes& attributes) {
  Attributes shifted;
  for (int i = 0; i < attributes.size(); ++i) shifted.push_back(attributes[i] + (i == 0 ? 1 : 0));
  return shifted;
}

class Batching {
 public:
  Batching(std::span<const Value> examples, std::span<const Lane> lanes)
      : examples_(examples.begin(), examples.end()), given_(lanes.begin(), lanes.end()) {
    for (std::size_t i = 0; i < examples.size(); ++i) {
      if (lanes[i].is_batched) count_ = lanes[i].value.shape()[0];
      keep(examples[i].node().get(), lanes[i]);
    }
  }

  Lane resolve(const Value& output) {
    struct Frame {
      NodePtr node;
      std::size_t next = 0;
    };
    std::vector<Frame> stack;
    const auto visit = [&](const NodePtr& node) {
      if (index_.find(node.get()) < 0) stack.push_back({node});
    };
    visit(output.node());
    while (!stack.empty()) {
      const std::size_t top = stack.size() - 1;
      const NodePtr node = stack[top].node;
      const auto sources = node->sources();
      if (!node->is_computed() && stack[top].next < sources.size()) {
        visit(sources[stack[top].next++]);
        continue;
      }
      stack.pop_back();
      if (index_.find(node.get()) < 0) keep(node.get(), lane_of(node));
    }
    return lane(output.node());
  }

 private:
  void keep(const Node* node, Lane lane) {
    if (index_.find(node) >= 0) return;
    index_.insert(node, static_cast<int>(lanes_.size()));
    lanes_.push_back(std::move(lane));
  }
  const Lane& lane(const NodePtr& node) const {
    return lanes_[static_cast<std::size_t>(index_.find(node.get()))];
  }

  Lane lane_of(const NodePtr& node) {
    const auto sources = node->sources();
    const bool is_batched =
        !node->is_computed() && std::ranges::any_of(sources, [&](const NodePtr& source) {
          return lane(source).is_batched;
        });
    if (!is_batched) return {Value(node), false};
    if (node->family() == Family::kAssign) return lane(sources[1]);
    if (node->shape().rank() == kMaxDims) {
      refuse(*node,
             fmt::format("of shape {} would have rank {} with the batch, more than kMaxDims={}",
                         node->shape().to_string(), kMaxDims + 1, kMaxDims));
    }
    const GradientMode mode(node->requires_grad());
    return {batched(node), true};
  }

  /// A source as a batch, also where all examples share it.
  Value whole(const NodePtr& source) const { return with_batch_axis(lane(source), count_); }

  Value record_again(const Node& node, SourceList sources, const Attributes& attributes) const {
    return record(node.op(), std::move(sources), batched_extents(node, count_).span(), node.dtype(),
                  node.device(), attributes);
  }

  Value batched(const NodePtr& pointer) {
    const Node& node = *pointer;
    const auto sources = node.sources();
    switch (node.family()) {
      case Family::kElementwise:
        return elementwise(node);
      case Family::kView:
        return batch_view(node, lane(sources[0]).value);
      case Family::kCopy:
        return copy(lane(sources[0]).value);
      case Family::kCast:
        return cast(lane(sources[0]).value, node.dtype());
      case Family::kCheck:
        if (ops::value_check_of(node.op()) != ops::ValueCheck::kNone) {
          return check_values(node.op(), lane(sources[0]).value);
        }
        return check_range(node.op(), lane(sources[0]).value, node.attributes()[0],
                           node.attributes()[1]);
      case Family::kReduce:
        return record_again(node, {lane(sources[0]).value.node()},
                            {node.attributes()[0] << 1, node.attributes()[1]});
      case Family::kConcat: {
        std::vector<Value> parts;
        for (const NodePtr& source : sources) parts.push_back(whole(source));
        return concat(parts, node.attributes()[0] + 1);
      }
      case Family::kViewUpdate:
        return view_update_of(node);
      case Family::kCore:
        return core(node);
      case Family::kCustom:
        return custom(pointer);
      default:
        refuse(node, "has no rule for a batch");
    }
  }

  Value elementwise(const Node& node) const {
    std::vector<Value> operands;
    for (const NodePtr& source : node.sources()) {
      const Lane& operand = lane(source);
      operands.push_back(operand.is_batched ? aligned(operand.value, node.shape().rank())
                                            : operand.value);
    }
    return ops::apply_elementwise(static_cast<ops::Row>(node.op().id), operands);
  }

  Value view_update_of(const Node& node) const {
    Window window;
    window.offset = node.attributes()[0];
    window.strides[0] = node.numel();
    for (int axis = 1; axis < node.attributes().size(); ++axis)
      window.strides[static_cast<std::size_t>(axis)] = node.attributes()[axis];
    return view_update(whole(node.source(0)), whole(node.source(1)), window);
  }

  Value core(const Node& node) const {
    switch (ops::core_of(node.op())) {
      case CoreKind::kMatmul:
        return matrix_product(node);
      case CoreKind::kGather:
      case CoreKind::kScatter:
      case CoreKind::kScan:
      case CoreKind::kArgSort: {
        SourceList operands;
        for (const NodePtr& source : node.sources()) operands.push_back(whole(source).node());
        return record_again(node, std::move(operands), with_next_axis(node.attributes()));
      }
      case CoreKind::kAttentionLogSumExp:
      case CoreKind::kAttention:
      case CoreKind::kAttentionQueryGradient:
      case CoreKind::kAttentionKeyGradient:
      case CoreKind::kAttentionValueGradient: {
        SourceList operands;
        for (const NodePtr& source : node.sources()) operands.push_back(whole(source).node());
        return record_again(node, std::move(operands), node.attributes());
      }
      case CoreKind::kSearchSorted:
        if (node.source(0)->shape().rank() == node.shape().rank()) {
          return record_again(node, {whole(node.source(0)).node(), whole(node.source(1)).node()},
                              node.attributes());
        }
        refuse(node, "of one row of values for many has no rule for a batch");
      default:
        refuse(node, "has no rule for a batch");
    }
  }

  Value matrix_product(const Node& node) const {
    const Lane& a = lane(node.source(0));
    const Lane& b = lane(node.source(1));
    const int rank = node.shape().rank();
    if (!b.is_batched && b.value.rank() == 2) {
      // One matrix for all examples: their rows are the rows of one larger product.
      const Value rows = contiguous(a.value);
      const std::int64_t inner = rows.shape()[rows.rank() - 1];
      const std::int64_t height = node.numel() / std::max<std::int64_t>(b.value.shape()[1], 1);
      const std::int64_t flat[] = {count_ * height, inner};
      const std::int64_t result[] = {count_ * height, b.value.shape()[1]};
      const Value product = record(node.op(), {reshape(rows, flat).node(), b.value.node()}, result,
                                   node.dtype(), node.device(), node.attributes());
      return reshape(product, batched_extents(node, count_).span());
    }
    const auto operand = [&](const Lane& given) {
      return given.is_batched ? aligned(given.value, rank).node() : given.value.node();
    };
    return record_again(node, {operand(a), operand(b)}, node.attributes());
  }

  Value custom(const NodePtr& node);

  std::vector<Value> examples_;
  std::vector<Lane> given_;
  std::int64_t count_ = 0;
  NodeIndex index_;
  std::vector<Lane> lanes_;
};

/// The rule of a custom operator's node, recorded for one example when a gradient arrives, and then
/// for the batch.
class BatchedRule final : public GradientFunction {
 public:
  BatchedRule(NodePtr example, std::vector<Value> examples, std::vector<Lane> lanes,
              std::vector<bool> is_batched)
      : example_(std::move(example)),
        examples_(std::move(examples)),
        lanes_(std::move(lanes)),
        is_batched_(std::move(is_batched)) {}

  void operator()(const Value& output, const Value& gradient,
                  std::span<Value> gradients) const override {
    const std::int64_t count = output.shape()[0];
    const bool records = grad_enabled() && gradient->requires_grad();
    const Value arriving =
        placeholder(example_->shape().extents(), example_->dtype(), example_->device(), records);
    std::vector<Value> of_example(example_->sources().size());
    if (example_->gradient_function()) {
      (*example_->gradient_function())(Value(example_), arriving, of_example);
    } else if (example_->op().gradient != nullptr) {
      example_->op().gradient(Value(example_), arriving, of_example);
    }
    // The rule reads the node and its sources; whatever else it reads leads to the examples.
    std::vector<Value> known{arriving, Value(example_)};
    std::vector<Lane> lanes{{gradient, true}, {output, true}};
    for (std::size_t i = 0; i < example_->sources().size(); ++i) {
      known.emplace_back(example_->sources()[i]);
      lanes.push_back({Value(output->sources()[i]), is_batched_[i]});
    }
    known.insert(known.end(), examples_.begin(), examples_.end());
    lanes.insert(lanes.end(), lanes_.begin(), lanes_.end());
    for (std::size_t i = 0; i < of_example.size(); ++i) {
      if (!of_example[i]) continue;
      const Lane found = vectorize(std::span(&of_example[i], 1), known, lanes)[0];
      const Value all = with_batch_axis(found, count);
      // What all examples share gets the sum of their gradients.
      const std::int64_t axis[] = {0};
      gradients[i] = is_batched_[i] ? all : cast(sum(all, axis, false), all.dtype());
    }
  }

 private:
  NodePtr example_;
  std::vector<Value> examples_;
  std::vector<Lane> lanes_;
  std::vector<bool> is_batched_;
};

Value Batching::custom(const NodePtr& node) {
  const Lane& value = lane(node->source(0));
  if (!node->requires_grad()) return whole(node->source(0));
  std::vector<Value> inputs;
  std::vector<bool> is_batched{true};
  for (const NodePtr& source : node->sources().subspan(1)) {
    inputs.push_back(lane(source).value);
    is_batched.push_back(lane(source).is_batched);
  }
  static constexpr OpInfo kBatched{"vmap", Family::kCustom, 0, nullptr};
  return with_gradient(kBatched, with_batch_axis(value, count_), inputs, {},
                       std::make_shared<BatchedRule>(node, examples_, given_, is_batched));
}

}  // namespace

Value placeholder(Axes extents, DType dtype, Device device, bool requires_grad) {
  NodeSpec spec;
  spec.op = &kPlaceholder;
  spec.dtype = dtype;
  spec.device = device;
  spec.shape = Shape(extents, dtype);
  if (requires_grad) spec.flags |= kFlagRequiresGrad;
  return Value(make_node(std::move(spec), {}));
}

bool is_placeholder(const Node& node) { return &node.op() == &kPlaceholder; }

std::vector<Lane> vectorize(std::span<const Value> outputs, std::span<const Value> examples,
                            std::span<const Lane> lanes) {
  Batching batching(examples, lanes);
  std::vector<Lane> results;
  for (const Value& output : outputs) results.push_back(batching.resolve(output));
  return results;
}

Value with_batch_axis(const Lane& lane, std::int64_t count) {
  if (lane.is_batched) return lane.value;
  const ExtentList extents = batched_extents(*lane.value.node(), count);
  return broadcast_to(lane.value, extents.span());
}

}  // namespace vkml::graph
