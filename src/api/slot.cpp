#include "slot.h"

#include <algorithm>
#include <utility>

#include "vkml/core/error.h"
#include "vkml/ops/functions.h"

namespace vkml {

using graph::Family;
using graph::NodePtr;
using graph::Value;

void LeafGradient::accumulate(const Value& gradient) {
  const std::scoped_lock lock(mutex_);
  // A gradient has its leaf's own layout, so that it can be written to.
  const Value sum =
      gradient_ ? graph::add(Value(gradient_->node()), gradient) : graph::contiguous(gradient);
  gradient_ = std::make_shared<Slot>(sum.node());
}

std::shared_ptr<Slot> LeafGradient::current() const {
  const std::scoped_lock lock(mutex_);
  return gradient_;
}

void LeafGradient::set(std::shared_ptr<Slot> gradient) {
  const std::scoped_lock lock(mutex_);
  gradient_ = std::move(gradient);
}

Slot::Slot(NodePtr node) : node_(std::move(node)) { node_->add_slot(); }

Slot::Slot(NodePtr node, std::shared_ptr<Slot> base, std::vector<ViewStep> steps)
    : node_(std::move(node)), base_(std::move(base)), steps_(std::move(steps)) {
  node_->add_slot();
  base_version_ = base_->version();
}

Slot::~Slot() { node_->remove_slot(); }

void Slot::show(NodePtr node) {
  const std::scoped_lock lock(mutex_);
  node->add_slot();
  node_->remove_slot();
  node_ = std::move(node);
  ++version_;
}

namespace {

/// Takes the recorded steps again, from a new value.
Value replay(const std::vector<ViewStep>& steps, const Value& from) {
  Value value = from;
  for (const ViewStep& step : steps)
    value = graph::replay_view(*step.op, step.attributes, step.extents, value);
  return value;
}

}  // namespace

void Slot::refresh() {
  if (!base_) return;
  const std::uint64_t version = base_->version();
  if (version == base_version_) return;
  base_version_ = version;
  show(replay(steps_, Value(base_->node())).node());
}

NodePtr Slot::node() {
  const std::scoped_lock lock(mutex_);
  refresh();
  return node_;
}

std::uint64_t Slot::version() {
  const std::scoped_lock lock(mutex_);
  refresh();
  return version_;
}

void Slot::rebind(const Value& value) {
  const std::scoped_lock lock(mutex_);
  if (!base_) {
    show(value.node());
    return;
  }
  const Value dense = graph::contiguous(Value(base_->node()));
  const Value window_view = replay(steps_, dense);
  base_->rebind(graph::view_update(dense, value, graph::window_between(dense, window_view)));
  refresh();
}

std::shared_ptr<Slot> make_view_slot(const Value& view, const std::shared_ptr<Slot>& base,
                                     const NodePtr& base_node) {
  std::vector<ViewStep> steps;
  const graph::Node* node = view.node().get();
  while (node != base_node.get()) {
    if (node->family() != Family::kView) return std::make_shared<Slot>(view.node());
    const auto extents = node->shape().extents();
    steps.push_back({&node->op(), node->attributes(), {extents.begin(), extents.end()}});
    if (node->sources().empty()) return std::make_shared<Slot>(view.node());
    node = node->source(0).get();
  }
  if (steps.empty()) return base;
  std::ranges::reverse(steps);
  return std::make_shared<Slot>(view.node(), base, std::move(steps));
}

}  // namespace vkml
