#include "slot.h"

#include <optional>
#include <utility>

#include "call_recorder.h"
#include "transfer.h"
#include "vkml/core/error.h"
#include "vkml/core/pool_allocator.h"
#include "vkml/ops/functions.h"

namespace vkml {

using graph::NodePtr;
using graph::Value;

// Gradients of leaves.

void LeafGradient::capture(bool reads) {
  if (!mark_.needs_capture()) return;
  CallRecorder::current().capture(shared_from_this(), reads);
  mark_.set_captured();
}

LeafGradient::State LeafGradient::state() {
  const std::scoped_lock lock(mutex_);
  return state_;
}

bool LeafGradient::replace(const State& known, std::shared_ptr<Slot> gradient) {
  const std::scoped_lock lock(mutex_);
  const bool is_known = state_.gradient == known.gradient && state_.dtype == known.dtype &&
                        state_.device == known.device;
  if (is_known) state_.gradient.swap(gradient);
  return is_known;
}

void LeafGradient::belong_to(DType dtype, Device device) {
  std::shared_ptr<Slot> given_up;
  const std::shared_ptr<Slot> held = state().gradient;
  const NodePtr node = held ? node_of(held) : nullptr;
  const bool fits = node && node->dtype() == dtype && node->device() == device;
  const std::scoped_lock lock(mutex_);
  if (!fits && state_.gradient == held) given_up = std::move(state_.gradient);
  state_.dtype = dtype;
  state_.device = device;
  state_.is_open = true;
}

void LeafGradient::close() {
  const std::scoped_lock lock(mutex_);
  state_.is_open = false;
}

void LeafGradient::open() {
  const std::scoped_lock lock(mutex_);
  state_.is_open = true;
}

bool LeafGradient::is_open() {
  const std::scoped_lock lock(mutex_);
  return state_.is_open;
}

void LeafGradient::accumulate(const Value& given) {
  capture(true);
  for (;;) {
    const State known = state();
    if (!known.is_open) return;
    Value gradient = graph::cast(given, known.dtype);
    if (gradient.device() != known.device) gradient = transfer(gradient, known.device);
    // A gradient has its leaf's own layout, so that it can be written to.
    const Value sum = known.gradient ? graph::add(Value(node_of(known.gradient)), gradient)
                                     : graph::contiguous(gradient);
    if (replace(known, make_slot(sum.node()))) return;
  }
}

std::shared_ptr<Slot> LeafGradient::current() {
  capture(true);
  return state().gradient;
}

void LeafGradient::set(std::shared_ptr<Slot> gradient) {
  capture(false);
  const std::scoped_lock lock(mutex_);
  state_.gradient.swap(gradient);
}

// Slots.

Slot::Slot(NodePtr node) : node_(std::move(node)) { node_->add_slot(); }

Slot::Slot(NodePtr node, std::shared_ptr<Slot> base, const ViewPath& path,
           std::uint64_t base_changes)
    : node_(std::move(node)),
      view_(std::make_unique<View>(View{std::move(base), path, base_changes})) {
  node_->add_slot();
}

Slot::~Slot() { node_->remove_slot(); }

Slot::State Slot::state() {
  const std::scoped_lock lock(mutex_);
  return {node_, before_.lock(), changes_};
}

bool Slot::replace(const NodePtr& known, NodePtr node, NodePtr before) {
  node->add_slot();
  bool is_known = false;
  {
    const std::scoped_lock lock(mutex_);
    is_known = node_ == known;
    if (is_known) {
      node_.swap(node);
      before_ = before;
      ++changes_;
    }
  }
  node->remove_slot();  // of the node that is not shown
  return is_known;
}

void Slot::show(NodePtr node) {
  node->add_slot();
  {
    const std::scoped_lock lock(mutex_);
    node_.swap(node);
    before_.reset();
    ++changes_;
  }
  node->remove_slot();
}

void Slot::substitute(NodePtr node) {
  node->add_slot();
  {
    const std::scoped_lock lock(mutex_);
    node_.swap(node);
  }
  node->remove_slot();
}

void Slot::leave_base(NodePtr node) {
  std::unique_ptr<View> left;
  {
    const std::scoped_lock lock(mutex_);
    left.swap(view_);
  }
  show(std::move(node));
}

void Slot::mark_changed() {
  const std::scoped_lock lock(mutex_);
  ++changes_;
}

std::uint64_t Slot::changes() {
  const std::scoped_lock lock(mutex_);
  return changes_;
}

bool Slot::is_view() {
  const std::scoped_lock lock(mutex_);
  return view_ != nullptr;
}

std::shared_ptr<LeafGradient> Slot::gradient() {
  std::shared_ptr<LeafGradient> gradient = last_gradient();
  return gradient && gradient->is_open() ? gradient : nullptr;
}

NodePtr Slot::node_for(const Value& value) {
  const std::shared_ptr<LeafGradient> collecting = gradient();
  if (!collecting || value->is_gradient_stop()) return value.node();
  const Value leaf = graph::alias(value, graph::kFlagRequiresGrad | graph::kFlagGradientStop);
  leaf.node()->set_sink(collecting);
  return leaf.node();
}

NodePtr Slot::node_of_view() {
  for (;;) {
    std::unique_ptr<View> left;
    std::optional<View> view;
    NodePtr shown;
    {
      const std::scoped_lock lock(mutex_);
      shown = node_;
      if (!view_) return shown;
      if (view_->base->changes() == view_->base_changes) {
        // A detached tensor whose base nobody else can reach is a tensor of its own.
        if (view_->path.is_detached && view_->base.use_count() == 1 &&
            view_->path.shows_all(shown->shape())) {
          left.swap(view_);
        }
        return shown;
      }
      view = *view_;
    }
    if (RecordingMark::current() != 0) capture(view->base);
    const State base = view->base->state();
    NodePtr node = node_for(view->path.taken_of(Value(base.node)));
    node->add_slot();
    {
      const std::scoped_lock lock(mutex_);
      if (node_ == shown && view_ && view_->base == view->base) {
        view_->base_changes = base.changes;
        node_.swap(node);
        before_.reset();
        ++changes_;
      }
    }
    node->remove_slot();
  }
}

void Slot::capture(const std::shared_ptr<Slot>& slot) {
  if (!slot->mark_.needs_capture()) return;
  CallRecorder::current().capture(slot);
  slot->mark_.set_captured();
}

NodePtr Slot::assign_part(const Value& value, const ViewPath* path) {
  for (;;) {
    const State known = state();
    const std::shared_ptr<LeafGradient> collecting = gradient();
    const Value whole = path != nullptr ? path->replaced_in(Value(known.node), value) : value;
    if (collecting && whole->requires_grad()) {
      throw AutogradError(
          "[assign_] a leaf that requires a gradient cannot be changed in place, through a view "
          "either, while gradients are recorded. Use no_grad");
    }
    // A change that gradients are not to see leaves the history as it was, as in PyTorch.
    const bool is_unseen = !collecting && !graph::grad_enabled() && known.node->requires_grad();
    // An unread assignment that nothing will need again is forgotten: not by the new value, which
    // would be deeper, and not after a bad index, since none is checked.
    const bool forgets = !is_unseen && !known.node->is_computed() && known.before &&
                         !whole->may_fail() && whole->depth() <= known.node->depth();
    std::optional<graph::GradientMode> mode;
    if (is_unseen) mode.emplace(true);
    const Value dense = graph::contiguous(Value(forgets ? known.before : known.node));
    if (collecting) mode.emplace(false);
    const std::uint32_t flags =
        collecting ? graph::kFlagRequiresGrad | graph::kFlagGradientStop : 0u;
    NodePtr assigned = is_unseen ? graph::assign_unseen(dense, whole).node()
                                 : graph::assign(dense, whole, flags).node();
    if (collecting) assigned->set_sink(collecting);
    if (replace(known.node, assigned, dense.node())) return assigned;
  }
}

NodePtr Slot::assign(const Value& value) {
  std::shared_ptr<Slot> base;
  ViewPath path;
  {
    const std::scoped_lock lock(mutex_);
    if (view_) {
      base = view_->base;
      path = view_->path;
    }
  }
  if (!base) return assign_part(value, nullptr);
  if (RecordingMark::current() != 0) capture(base);
  // Neither a leaf's gradient nor what a detached tensor is given may cross into the base.
  const Value written = path.is_detached || gradient() ? graph::detach(value) : value;
  std::optional<graph::GradientMode> mode;
  if (path.is_detached && base->gradient()) mode.emplace(false);
  NodePtr assigned = base->assign_part(written, &path);
  node_of_view();  // lets go of the old value, which may then be written over
  return assigned;
}

std::shared_ptr<Slot> make_slot(NodePtr node) {
  return std::allocate_shared<Slot>(PoolAllocator<Slot>(), std::move(node));
}

std::shared_ptr<Slot> make_view_slot(const Value& view, const std::shared_ptr<Slot>& base,
                                     const NodePtr& base_node) {
  if (view.node() == base_node) return base;
  std::shared_ptr<Slot> root = base;
  std::optional<ViewPath> base_path;
  std::uint64_t taken_at = 0;  // the root's count of changes, as of the base's node
  bool is_current = false;
  {
    const std::scoped_lock lock(base->mutex_);
    is_current = base->node_ == base_node;
    taken_at = base->changes_;
    if (base->view_) {
      root = base->view_->base;
      base_path = base->view_->path;
      taken_at = base->view_->base_changes;
    }
  }
  const Shape whole = base_path ? root->state().node->shape() : base_node->shape();
  const auto path = path_to(view, base_node, base_path ? &*base_path : nullptr, whole);
  if (!path) return make_slot(view.node());
  // What was taken of an older value is taken again when it is first shown.
  constexpr std::uint64_t kNever = ~std::uint64_t{0};
  return std::allocate_shared<Slot>(PoolAllocator<Slot>(), view.node(), std::move(root), *path,
                                    is_current ? taken_at : kNever);
}

}  // namespace vkml
