// A recorded operation. What it computes never changes; its realisation state does, and what the
// layers above hang on it: how many tensors show it, where a leaf's gradients collect, hooks.
//
// Two events change a node after construction: bind() gives it memory, mark_computed() says that
// the memory holds its value. With the second its sources may be released, when no gradient needs
// them. Nodes shared between tensors are therefore sound, and lowering is a pure function of the
// graph.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>

#include "vkml/core/device.h"
#include "vkml/core/shape.h"
#include "vkml/core/storage.h"
#include "vkml/graph/gradient_function.h"
#include "vkml/graph/op_info.h"
#include "vkml/graph/source_list.h"

namespace vkml::graph {

using NodePtr = std::shared_ptr<Node>;

/// Where gradients of a leaf collect. Owned by the leaf's slot; nodes refer to it weakly, since a
/// gradient's graph may contain the leaf.
class GradientSink {
 public:
  virtual ~GradientSink() = default;
  /// Adds a gradient of the leaf's shape and dtype.
  virtual void accumulate(const Value& gradient) = 0;
  /// What looks at the leaf's gradient first. Here, and not on a node, since a leaf that is
  /// assigned to has a new node.
  const std::shared_ptr<GradientHooks>& hooks() const { return hooks_; }

 private:
  std::shared_ptr<GradientHooks> hooks_ = std::make_shared<GradientHooks>();
};

enum NodeFlag : std::uint32_t {
  kFlagComputed = 1u << 0,      // storage holds the value (in queue order)
  kFlagRequiresGrad = 1u << 1,  // captured at construction
  kFlagWeak = 1u << 2,          // a Python number: yields to other operands' dtypes
  kFlagGradientStop = 1u << 3,  // an autograd leaf: gradients collect here and go no further
  kFlagReleased = 1u << 4,      // sources were given up by a backward pass
  kFlagHooked = 1u << 5,        // somebody wants to see the gradient
  kFlagMayFail = 1u << 6,       // a bad index may leave it without a value, as far as is known
};

/// What a new node is made of.
struct NodeSpec {
  const OpInfo* op = nullptr;
  Attributes attributes;
  DType dtype = DType::kF32;
  Device device;
  Shape shape;              // of a view: over its root storage
  std::int64_t offset = 0;  // of a view: bytes from its root's first element
  NodePtr view_src;         // of a view: the root storage owner
  std::uint32_t flags = 0;
  std::shared_ptr<const GradientFunction> gradient_function;  // of a custom operator
};

class Node : public std::enable_shared_from_this<Node> {
 public:
  Node(NodeSpec&& spec, SourceList&& sources);
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  const OpInfo& op() const { return *op_; }
  Family family() const { return op_->family; }
  const Attributes& attributes() const { return attributes_; }
  DType dtype() const { return dtype_; }
  Device device() const { return device_; }
  const Shape& shape() const { return shape_; }
  std::int64_t numel() const { return shape_.numel(); }
  std::span<const NodePtr> sources() const { return sources_.span(); }
  const NodePtr& source(int index) const {
    return sources_.span()[static_cast<std::size_t>(index)];
  }

  bool is_view() const { return view_src_ != nullptr; }
  /// The root storage owner: one hop, through any chain of views.
  const NodePtr& view_src() const { return view_src_; }
  /// The same for threads that record: they hold no device's lock, and the edge may be released
  /// meanwhile. Null when it was, or when this is no view.
  NodePtr share_view_src() const;
  /// Bytes from the start of the root's value.
  std::int64_t view_offset() const { return offset_; }

  bool requires_grad() const { return has(kFlagRequiresGrad); }
  bool is_weak() const { return has(kFlagWeak); }
  bool is_gradient_stop() const { return has(kFlagGradientStop); }
  bool is_released() const { return has(kFlagReleased); }
  /// Whether it checks indices, or is computed from something that does and that has not passed.
  bool may_fail() const { return has(kFlagMayFail); }
  /// Number of unevaluated operations on the longest path below, counting this one.
  std::uint32_t depth() const { return depth_; }

  // Realisation state: written under the device's lock.
  bool is_bound() const { return storage_ != nullptr; }
  bool is_computed() const { return has(kFlagComputed); }
  const StoragePtr& storage() const { return storage_; }
  /// Bytes from the start of the storage to this node's first element.
  std::int64_t storage_offset() const { return storage_offset_; }
  void bind(StoragePtr storage, std::int64_t offset);
  /// `may_fail`: the device runs ahead of the host, and may yet find a bad index.
  void mark_computed(bool may_fail = false);
  /// Makes a later backward pass through here an error, if there are sources to pass on to.
  void mark_released();
  /// Gives up the sources.
  void release_sources();

  /// Slots (tensor handles) that show this node now: such a value is kept when it is computed.
  void add_slot() { slots_.fetch_add(1, std::memory_order_relaxed); }
  void remove_slot() { slots_.fetch_sub(1, std::memory_order_relaxed); }
  bool has_slot() const { return slots_.load(std::memory_order_relaxed) > 0; }

  const std::weak_ptr<GradientSink>& sink() const { return sink_; }
  void set_sink(std::weak_ptr<GradientSink> sink) { sink_ = std::move(sink); }

  /// The rule of this one node, where its operator has none of its own; else null.
  const std::shared_ptr<const GradientFunction>& gradient_function() const {
    return gradient_function_;
  }
  /// The hooks on this node's gradient, made on first use.
  std::shared_ptr<GradientHooks> make_hooks();
  /// The same, null when nobody asked for any.
  std::shared_ptr<GradientHooks> hooks() const;

 private:
  bool has(std::uint32_t flag) const {
    return (flags_.load(std::memory_order_acquire) & flag) != 0;
  }

  const OpInfo* op_;
  Attributes attributes_;
  Shape shape_;
  DType dtype_;
  Device device_;
  std::atomic<std::uint32_t> flags_;
  std::uint32_t depth_ = 0;
  std::atomic<std::uint32_t> slots_{0};
  std::int64_t offset_;
  std::int64_t storage_offset_ = 0;
  SourceList sources_;
  NodePtr view_src_;
  StoragePtr storage_;
  std::weak_ptr<GradientSink> sink_;
  std::shared_ptr<const GradientFunction> gradient_function_;
  std::shared_ptr<GradientHooks> hooks_;
};

/// Makes a node from the pool.
NodePtr make_node(NodeSpec&& spec, SourceList&& sources);

/// A computed leaf over existing storage.
NodePtr make_leaf(StoragePtr storage, std::int64_t offset, const Shape& shape, DType dtype,
                  std::uint32_t extra_flags = 0);

/// Nodes alive now, for tests of memory.
std::int64_t live_node_count();

}  // namespace vkml::graph
