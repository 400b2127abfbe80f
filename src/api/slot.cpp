#include "slot.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "call_recorder.h"
#include "vkml/core/error.h"
#include "vkml/core/pool_allocator.h"
#include "vkml/ops/functions.h"

namespace vkml {

using graph::Family;
using graph::NodePtr;
using graph::Value;

void LeafGradient::capture(bool reads) {
  if (!mark_.needs_capture()) return;
  CallRecorder::current().capture(shared_from_this(), reads);
  mark_.set_captured();
}

void LeafGradient::accumulate(const Value& gradient) {
  capture(true);
  const std::scoped_lock lock(mutex_);
  // A gradient has its leaf's own layout, so that it can be written to.
  const Value sum =
      gradient_ ? graph::add(Value(node_of(gradient_)), gradient) : graph::contiguous(gradient);
  gradient_ = make_slot(sum.node());
}

std::shared_ptr<Slot> LeafGradient::current() {
  capture(true);
  const std::scoped_lock lock(mutex_);
  return gradient_;
}

void LeafGradient::set(std::shared_ptr<Slot> gradient) {
  capture(false);
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
  before_.reset();
  ++version_;
}

namespace {

/// Takes the recorded steps again, from a new value.
Value replay(std::span<const ViewStep> steps, const Value& from) {
  Value value = from;
  for (const ViewStep& step : steps)
    value = graph::replay_view(*step.op, step.attributes, step.extents, value);
  return value;
}

}  // namespace

bool Slot::shows_all() const {
  return std::ranges::all_of(steps_,
                             [](const ViewStep& step) { return graph::is_detach(*step.op); });
}

bool Slot::crosses_detach() const {
  return std::ranges::any_of(steps_,
                             [](const ViewStep& step) { return graph::is_detach(*step.op); });
}

NodePtr Slot::node_for(const Value& value) const {
  if (!gradient_ || value->is_gradient_stop()) return value.node();
  const Value leaf = graph::alias(value, graph::kFlagRequiresGrad | graph::kFlagGradientStop);
  leaf.node()->set_sink(gradient_);
  return leaf.node();
}

void Slot::refresh() {
  if (!base_) return;
  const std::uint64_t version = base_->version();
  if (version != base_version_) {
    base_version_ = version;
    show(node_for(replay(steps_, Value(node_of(base_)))));
  }
  // A detached tensor whose base nobody else can reach is a tensor of its own.
  if (base_.use_count() == 1 && !base_->base_ && shows_all()) {
    base_.reset();
    steps_.clear();
  }
}

void Slot::substitute(NodePtr node) {
  const std::scoped_lock lock(mutex_);
  node->add_slot();
  node_->remove_slot();
  node_ = std::move(node);
}

void Slot::mark_changed() {
  const std::scoped_lock lock(mutex_);
  ++version_;
}

std::uint64_t Slot::changes() {
  const std::scoped_lock lock(mutex_);
  return version_;
}

void Slot::capture(const std::shared_ptr<Slot>& slot) {
  if (!slot->mark_.needs_capture()) return;
  CallRecorder::current().capture(slot);
  slot->mark_.set_captured();
}

std::shared_ptr<Slot> make_slot(NodePtr node) {
  return std::allocate_shared<Slot>(PoolAllocator<Slot>(), std::move(node));
}

std::uint64_t Slot::version() {
  const std::scoped_lock lock(mutex_);
  refresh();
  return version_;
}

void Slot::leave_base(NodePtr node) {
  const std::scoped_lock lock(mutex_);
  base_.reset();
  steps_.clear();
  show(std::move(node));
}

namespace {

void check_shows_elements_once(const Shape& view) {
  for (int axis = 0; axis < view.rank(); ++axis) {
    if (view.stride(axis) != 0 || view[axis] < 2) continue;
    throw ArgumentError(
        fmt::format("[assign_] a broadcast view of shape {} shows one element {} times along axis "
                    "{}. Write to what it was broadcast from, or to a copy: x.clone()",
                    view.to_string(), view[axis], axis));
  }
}

/// `whole` with the window that `steps` lead to replaced.
Value with_window(const Value& whole, std::span<const ViewStep> steps, const Value& value) {
  const Value dense = graph::contiguous(whole);
  const Value window = replay(steps, dense);
  check_shows_elements_once(window.shape());
  // What replaces all of a value does not read it: assigning cures one that cannot be computed.
  const bool is_dense = window.shape().is_contiguous(size_of(dense.dtype()));
  if (is_dense && window->numel() == dense->numel())
    return graph::reshape(value, dense.shape().extents());
  return graph::view_update(dense, value, graph::window_between(dense, window));
}

}  // namespace

NodePtr Slot::show_assignment(const Value& value) {
  NodePtr old = node_;
  // An unread assignment that nothing will need again is forgotten: not by the new value, which
  // would be deeper, and not after a bad index, since none is checked.
  if (!old->is_computed() && !value->may_fail() && value->depth() <= old->depth()) {
    if (NodePtr before = before_.lock()) old = std::move(before);
  }
  const Value dense = graph::contiguous(Value(old));
  std::optional<graph::GradientMode> mode;
  if (gradient_) mode.emplace(false);
  NodePtr assigned =
      graph::assign(dense, value,
                    gradient_ ? graph::kFlagRequiresGrad | graph::kFlagGradientStop : 0u)
          .node();
  if (gradient_) assigned->set_sink(gradient_);
  show(assigned);
  before_ = dense.node();
  return assigned;
}

NodePtr Slot::assign_window(const Value& value, std::span<const ViewStep> steps) {
  const std::scoped_lock lock(mutex_);
  refresh();
  if (base_) {
    capture(base_);
    std::vector<ViewStep> path = steps_;
    path.insert(path.end(), steps.begin(), steps.end());
    // Neither a leaf's gradient nor what a detached tensor is given may cross into the base.
    const Value written = gradient_ || crosses_detach() ? graph::detach(value) : value;
    std::optional<graph::GradientMode> mode;
    if (crosses_detach() && root().gradient_) mode.emplace(false);
    NodePtr assigned = base_->assign_window(written, path);
    refresh();
    return assigned;
  }
  const Value whole = steps.empty() ? value : with_window(Value(node_), steps, value);
  if (gradient_ && whole->requires_grad()) {
    throw AutogradError(
        "[assign_] a leaf that requires a gradient cannot be changed in place, through a view "
        "either, while gradients are recorded. Use no_grad");
  }
  return show_assignment(whole);
}

NodePtr Slot::assign(const Value& value) { return assign_window(value, {}); }

std::shared_ptr<Slot> make_view_slot(const Value& view, const std::shared_ptr<Slot>& base,
                                     const NodePtr& base_node) {
  std::vector<ViewStep> steps;
  const graph::Node* node = view.node().get();
  while (node != base_node.get()) {
    if (node->family() != Family::kView) return make_slot(view.node());
    const auto extents = node->shape().extents();
    steps.push_back({&node->op(), node->attributes(), {extents.begin(), extents.end()}});
    if (node->sources().empty()) return make_slot(view.node());
    node = node->source(0).get();
  }
  if (steps.empty()) return base;
  std::ranges::reverse(steps);
  return std::make_shared<Slot>(view.node(), base, std::move(steps));
}

}  // namespace vkml
