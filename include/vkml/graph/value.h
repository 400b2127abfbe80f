// A value in the graph, as gradient rules and composite operators handle it. Operators on values
// (ops/elementwise.h, ops/functions.h) record nodes; nothing is computed.
#pragma once

#include <utility>

#include "vkml/graph/node.h"

namespace vkml::graph {

class Value {
 public:
  Value() = default;
  explicit Value(NodePtr node) : node_(std::move(node)) {}

  explicit operator bool() const { return node_ != nullptr; }
  const NodePtr& node() const { return node_; }
  /// Gives the node away.
  NodePtr take() && { return std::move(node_); }
  const Node* operator->() const { return node_.get(); }
  const Shape& shape() const { return node_->shape(); }
  DType dtype() const { return node_->dtype(); }
  Device device() const { return node_->device(); }
  int rank() const { return node_->shape().rank(); }

 private:
  NodePtr node_;
};

/// Whether operators recorded by this thread capture requires_grad now.
bool grad_enabled();
/// Sets it for this thread; returns what it was.
bool set_grad_enabled(bool enabled);

/// Sets it for this thread while it lives.
class GradientMode {
 public:
  explicit GradientMode(bool enabled) : before_(set_grad_enabled(enabled)) {}
  ~GradientMode() { set_grad_enabled(before_); }
  GradientMode(const GradientMode&) = delete;
  GradientMode& operator=(const GradientMode&) = delete;

 private:
  bool before_;
};

/// The node's requires_grad flag for an operator with these sources under the current mode.
bool any_requires_grad(const SourceList& sources);

}  // namespace vkml::graph
