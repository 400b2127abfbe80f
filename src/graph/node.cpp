#include "vkml/graph/node.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "live_count.h"
#include "vkml/core/pool_allocator.h"
#include "vkml/graph/node_observer.h"

namespace vkml::graph {
namespace {

using LiveNodes = LiveCount<Node>;
std::atomic<NodeObserver> node_observer{nullptr};

/// Nodes whose last reference was dropped by another node's destructor or release. Emptied by the
/// outermost one, so that a chain of any length is torn down without recursion.
thread_local std::vector<NodePtr>* teardown = nullptr;

void drop(SourceList& sources, NodePtr& view_src) {
  if (sources.span().empty() && !view_src) return;
  if (teardown != nullptr) {
    sources.drain([](NodePtr&& node) { teardown->push_back(std::move(node)); });
    if (view_src) teardown->push_back(std::move(view_src));
    return;
  }
  std::vector<NodePtr> worklist;
  teardown = &worklist;
  sources.drain([&](NodePtr&& node) { worklist.push_back(std::move(node)); });
  view_src.reset();
  while (!worklist.empty()) {
    NodePtr last = std::move(worklist.back());
    worklist.pop_back();
    last.reset();
  }
  teardown = nullptr;
}

/// Guards the release of a view's edge against threads that record another view of it, and the
/// first hook against another.
std::mutex& edge_mutex(const Node* node) {
  static std::array<std::mutex, 64> mutexes;
  return mutexes[reinterpret_cast<std::uintptr_t>(node) / sizeof(Node) % mutexes.size()];
}

}  // namespace

Node::Node(NodeSpec&& spec, SourceList&& sources)
    : op_(spec.op),
      attributes_(spec.attributes),
      shape_(spec.shape),
      dtype_(spec.dtype),
      device_(spec.device),
      flags_(spec.flags),
      offset_(spec.offset),
      sources_(std::move(sources)),
      view_src_(std::move(spec.view_src)),
      gradient_function_(std::move(spec.gradient_function)) {
  std::uint32_t below = 0;
  for (const NodePtr& source : sources_.span()) {
    if (!source->is_computed()) below = std::max(below, source->depth_);
    if (source->may_fail()) flags_.fetch_or(kFlagMayFail, std::memory_order_relaxed);
  }
  depth_ = below + 1;
  LiveNodes::add(1);
}

Node::~Node() {
  LiveNodes::add(-1);
  drop(sources_, view_src_);
}

void Node::bind(StoragePtr storage, std::int64_t offset) {
  storage_ = std::move(storage);
  storage_offset_ = offset;
}

void Node::mark_computed(bool may_fail) {
  if (!may_fail) flags_.fetch_and(~kFlagMayFail, std::memory_order_relaxed);
  flags_.fetch_or(kFlagComputed, std::memory_order_release);
}

void Node::mark_released() {
  if (!sources_.span().empty()) flags_.fetch_or(kFlagReleased, std::memory_order_release);
}

void Node::release_sources() {
  NodePtr view_src;
  {
    const std::scoped_lock lock(edge_mutex(this));
    view_src = std::move(view_src_);
  }
  drop(sources_, view_src);
}

NodePtr Node::share_view_src() const {
  if (family() != Family::kView && family() != Family::kCustom) return nullptr;
  const std::scoped_lock lock(edge_mutex(this));
  return view_src_;
}

std::shared_ptr<GradientHooks> Node::make_hooks() {
  const std::scoped_lock lock(edge_mutex(this));
  if (!hooks_) hooks_ = std::make_shared<GradientHooks>();
  flags_.fetch_or(kFlagHooked, std::memory_order_release);
  return hooks_;
}

std::shared_ptr<GradientHooks> Node::hooks() const {
  if (!has(kFlagHooked)) return nullptr;
  const std::scoped_lock lock(edge_mutex(this));
  return hooks_;
}

NodePtr make_node(NodeSpec&& spec, SourceList&& sources) {
  NodePtr node =
      std::allocate_shared<Node>(PoolAllocator<Node>(), std::move(spec), std::move(sources));
  const NodeObserver observe = node_observer.load(std::memory_order_relaxed);
  if (observe != nullptr && node->requires_grad()) observe(node);
  return node;
}

void set_node_observer(NodeObserver observer) { node_observer.store(observer); }

NodePtr make_leaf(StoragePtr storage, std::int64_t offset, const Shape& shape, DType dtype,
                  std::uint32_t extra_flags) {
  static constexpr OpInfo kLeafOp{"leaf", Family::kLeaf, 0, nullptr};
  NodeSpec spec;
  spec.op = &kLeafOp;
  spec.dtype = dtype;
  spec.device = storage->device();
  spec.shape = shape;
  spec.flags = extra_flags;
  NodePtr node = make_node(std::move(spec), {});
  node->bind(std::move(storage), offset);
  node->mark_computed();
  return node;
}

std::int64_t live_node_count() { return LiveNodes::total(); }

}  // namespace vkml::graph
