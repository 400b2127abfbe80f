// A short, fixed list of source nodes: three inline (every elementwise operator), any number on the
// heap (concat).
#pragma once

#include <array>
#include <initializer_list>
#include <memory>
#include <span>
#include <vector>

namespace vkml::graph {

class Node;

class SourceList {
 public:
  using NodePtr = std::shared_ptr<Node>;
  static constexpr std::size_t kInline = 3;

  SourceList() = default;
  SourceList(std::initializer_list<NodePtr> nodes) {
    for (const NodePtr& node : nodes) push_back(node);
  }
  void push_back(NodePtr node) {
    if (size_ < kInline) {
      inline_[size_++] = std::move(node);
      return;
    }
    if (heap_.empty()) {
      for (NodePtr& held : inline_) heap_.push_back(std::move(held));
    }
    heap_.push_back(std::move(node));
    size_ = heap_.size();
  }
  std::span<const NodePtr> span() const {
    return heap_.empty() ? std::span<const NodePtr>(inline_.data(), size_)
                         : std::span<const NodePtr>(heap_);
  }
  /// Moves every node out, leaving the list empty.
  template <typename Take>
  void drain(Take take) {
    for (std::size_t i = 0; i < size_; ++i) take(std::move(heap_.empty() ? inline_[i] : heap_[i]));
    heap_ = {};
    size_ = 0;
  }

 private:
  std::array<NodePtr, kInline> inline_;
  std::vector<NodePtr> heap_;
  std::size_t size_ = 0;
};

}  // namespace vkml::graph
