// What the copies of a tensor share: the node they show now, the tensor they are a view of, and
// where their gradient collects.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "slot_lock.h"
#include "vkml/graph/value.h"

namespace vkml {

class Slot;

/// Which recording (call_recorder.h) this thread is making: 0 for none. A slot or gradient that was
/// there before it is captured by it when it is first touched.
class RecordingMark {
 public:
  static std::uint64_t current() { return current_; }
  static std::uint64_t set(std::uint64_t id) { return std::exchange(current_, id); }
  /// Whether what bears this mark has yet to be captured.
  bool needs_capture() const { return current_ != 0 && id_ != current_; }
  void set_captured() { id_ = current_; }

 private:
  static inline thread_local std::uint64_t current_ = 0;
  std::uint64_t id_ = current_;
};

/// Collects the gradient of a leaf. Lives as long as the leaf's slot.
class LeafGradient final : public graph::GradientSink,
                           public std::enable_shared_from_this<LeafGradient> {
 public:
  void accumulate(const graph::Value& gradient) override;
  std::shared_ptr<Slot> current();
  void set(std::shared_ptr<Slot> gradient);

 private:
  void capture(bool reads);

  RecordingMark mark_;
  std::mutex mutex_;
  std::shared_ptr<Slot> gradient_;
};

/// One step from a tensor to a view of it, to be taken again when the tensor has a new value.
struct ViewStep {
  const graph::OpInfo* op = nullptr;
  graph::Attributes attributes;
  std::vector<std::int64_t> extents;
};

class Slot {
 public:
  explicit Slot(graph::NodePtr node);
  /// A view of `base`, reached by `steps`.
  Slot(graph::NodePtr node, std::shared_ptr<Slot> base, std::vector<ViewStep> steps);
  ~Slot();
  Slot(const Slot&) = delete;
  Slot& operator=(const Slot&) = delete;

  /// The node shown now; a view of a tensor that has changed since is taken again. For users:
  /// node_of().
  graph::NodePtr node() {
    const std::scoped_lock lock(mutex_);
    if (base_) refresh();
    return node_;
  }
  /// While this thread records, lets it know of a slot that was there before.
  static void capture(const std::shared_ptr<Slot>& slot);
  std::uint64_t version();
  /// Records the assignment of another value, of this shape and dtype. Of a view: the base is
  /// assigned a value with this window replaced. A leaf stays a leaf. Returns the assignment, which
  /// the slot without a base shows. Throws AutogradError where a leaf would get a history,
  /// ArgumentError for a view that shows an element twice; nothing has changed then.
  graph::NodePtr assign(const graph::Value& value);
  /// Shows another node without touching a base.
  void show(graph::NodePtr node);
  /// Shows another node of the same value: nobody need take views again.
  void substitute(graph::NodePtr node);
  /// The memory of the node shown was written over: views are taken again.
  void mark_changed();
  /// How often the slot was given another value, apart from its base.
  std::uint64_t changes();
  /// The same, and is a view of nothing from now on.
  void leave_base(graph::NodePtr node);

  const std::shared_ptr<Slot>& base() const { return base_; }
  std::shared_ptr<LeafGradient> gradient() {
    const std::scoped_lock lock(mutex_);
    return gradient_;
  }
  /// Makes this a leaf whose gradients collect, or an ordinary tensor.
  void set_gradient(std::shared_ptr<LeafGradient> gradient) {
    const std::scoped_lock lock(mutex_);
    gradient_ = std::move(gradient);
  }

 private:
  void refresh();
  /// Assigns to the window that `steps` lead to.
  graph::NodePtr assign_window(const graph::Value& value, std::span<const ViewStep> steps);
  graph::NodePtr show_assignment(const graph::Value& value);
  /// Whether the whole base is shown: a detached alias.
  bool shows_all() const;
  bool crosses_detach() const;
  const Slot& root() const { return base_ ? base_->root() : *this; }
  /// The node to show for a value: of a leaf, one where gradients stop and collect.
  graph::NodePtr node_for(const graph::Value& value) const;

  RecordingMark mark_;
  SlotLock mutex_;
  graph::NodePtr node_;
  std::uint64_t version_ = 0;
  std::weak_ptr<graph::Node> before_;  // what the assignment shown, if it is one, replaced
  std::shared_ptr<Slot> base_;
  std::vector<ViewStep> steps_;
  std::uint64_t base_version_ = 0;
  std::shared_ptr<LeafGradient> gradient_;
};

/// The node that a slot shows now.
inline graph::NodePtr node_of(const std::shared_ptr<Slot>& slot) {
  if (RecordingMark::current() != 0) Slot::capture(slot);
  return slot->node();
}

/// Makes the slot of a new tensor.
std::shared_ptr<Slot> make_slot(graph::NodePtr node);

/// Links a freshly recorded view to the slot it was taken of, where it is one.
std::shared_ptr<Slot> make_view_slot(const graph::Value& view, const std::shared_ptr<Slot>& base,
                                     const graph::NodePtr& base_node);

}  // namespace vkml
