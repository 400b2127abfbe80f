// What the copies of a tensor share: the node they show now, the tensor they are a view of, and
// where their gradient collects.
//
// Locks here are held for loads and stores alone. Recording a node may call a user's observer, and
// dropping one may free what another library owns: both happen outside, and what was recorded is
// shown only if nobody was faster; else it is recorded anew.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "slot_lock.h"
#include "view_path.h"
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
  /// The leaf has a value of this dtype on this device from now on, and collects; a gradient of
  /// another value is given up, and what graphs recorded before still bring is converted.
  void belong_to(DType dtype, Device device);
  /// The tensor is no leaf for now: what arrives is dropped, what is there stays.
  void close();
  /// Collects again.
  void open();
  bool is_open();
  void accumulate(const graph::Value& gradient) override;
  std::shared_ptr<Slot> current();
  void set(std::shared_ptr<Slot> gradient);

 private:
  struct State {
    std::shared_ptr<Slot> gradient;
    DType dtype = DType::kF32;
    Device device;
    bool is_open = false;
  };
  void capture(bool reads);
  State state();
  /// Replaces the gradient `known`, unless another thread was faster.
  bool replace(const State& known, std::shared_ptr<Slot> gradient);

  RecordingMark mark_;
  SlotLock mutex_;
  State state_;
};

class Slot {
 public:
  explicit Slot(graph::NodePtr node);
  /// A view of `base`, which is none, that was taken when the base had changed `base_changes`
  /// times.
  Slot(graph::NodePtr node, std::shared_ptr<Slot> base, const ViewPath& path,
       std::uint64_t base_changes);
  ~Slot();
  Slot(const Slot&) = delete;
  Slot& operator=(const Slot&) = delete;

  /// The node shown now; a view of a tensor that has changed since is taken again. For users:
  /// node_of().
  graph::NodePtr node() {
    {
      const std::scoped_lock lock(mutex_);
      if (!view_) return node_;
    }
    return node_of_view();
  }
  /// While this thread records, lets it know of a slot that was there before.
  static void capture(const std::shared_ptr<Slot>& slot);
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
  /// Shows another node, and is a view of nothing from now on.
  void leave_base(graph::NodePtr node);

  bool is_view();
  /// Where gradients collect, of a leaf; else null.
  std::shared_ptr<LeafGradient> gradient();
  /// The same, where the tensor was a leaf once and may become one again.
  std::shared_ptr<LeafGradient> last_gradient() {
    const std::scoped_lock lock(mutex_);
    return gradient_;
  }
  void set_gradient(std::shared_ptr<LeafGradient> gradient) {
    const std::scoped_lock lock(mutex_);
    gradient_.swap(gradient);
  }
  /// Where gradients are kept that pass by a tensor that is no leaf; null unless asked for.
  std::shared_ptr<LeafGradient> retained() {
    const std::scoped_lock lock(mutex_);
    return retained_;
  }
  void set_retained(std::shared_ptr<LeafGradient> gradient) {
    const std::scoped_lock lock(mutex_);
    retained_.swap(gradient);
  }

 private:
  friend std::shared_ptr<Slot> make_view_slot(const graph::Value& view,
                                              const std::shared_ptr<Slot>& base,
                                              const graph::NodePtr& base_node);
  struct View {
    std::shared_ptr<Slot> base;  // no view itself: chains are collapsed
    ViewPath path;
    std::uint64_t base_changes = 0;  // as of the node shown
  };
  /// Nodes shown and how they came about, at one moment.
  struct State {
    graph::NodePtr node;
    graph::NodePtr before;
    std::uint64_t changes = 0;
  };

  graph::NodePtr node_of_view();
  State state();
  /// Shows `node` in the place of `known`, unless another thread was faster.
  bool replace(const graph::NodePtr& known, graph::NodePtr node, graph::NodePtr before);
  /// Assigns to what `path` shows; null: to all.
  graph::NodePtr assign_part(const graph::Value& value, const ViewPath* path);
  /// The node to show for a value: of a leaf, one where gradients stop and collect.
  graph::NodePtr node_for(const graph::Value& value);

  RecordingMark mark_;
  SlotLock mutex_;
  graph::NodePtr node_;
  std::uint64_t changes_ = 0;
  std::weak_ptr<graph::Node> before_;  // what the assignment shown, if it is one, replaced
  std::unique_ptr<View> view_;
  std::shared_ptr<LeafGradient> gradient_;
  std::shared_ptr<LeafGradient> retained_;
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
