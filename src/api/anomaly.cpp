#include "vkml/api/anomaly.h"

#include <fmt/format.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <utility>

#include "vkml/api/tensor.h"
#include "vkml/autograd/backward.h"
#include "vkml/core/error.h"
#include "vkml/graph/node_observer.h"
#include "vkml/ops/functions.h"

namespace vkml {
namespace {

using graph::NodePtr;
using graph::Value;

std::atomic<bool> enabled_now{false};
std::atomic<bool> checking_now{true};

/// Places by node. Kept beside the nodes, which have no room for what is seldom wanted.
class Places {
 public:
  void set_provider(std::function<std::string()> provider) {
    const std::scoped_lock lock(mutex_);
    provider_ = std::make_shared<const std::function<std::string()>>(std::move(provider));
  }

  void add(const NodePtr& node) {
    std::shared_ptr<const std::function<std::string()>> provider;
    {
      const std::scoped_lock lock(mutex_);
      provider = provider_;
    }
    // Called without the lock: it may wait for an interpreter.
    std::string place = provider ? (*provider)() : std::string();
    if (place.empty()) return;
    const std::scoped_lock lock(mutex_);
    if (entries_.size() >= next_sweep_) {
      std::erase_if(entries_, [](const auto& entry) { return entry.second.first.expired(); });
      next_sweep_ = 2 * entries_.size() + 1024;
    }
    entries_.insert_or_assign(node.get(), std::pair(std::weak_ptr(node), std::move(place)));
  }

  std::string find(const NodePtr& node) const {
    const std::scoped_lock lock(mutex_);
    const auto entry = entries_.find(node.get());
    // Another node may lie where one has gone.
    const bool known = entry != entries_.end() && entry->second.first.lock() == node;
    return known ? entry->second.second : std::string();
  }

  void clear() {
    const std::scoped_lock lock(mutex_);
    entries_.clear();
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const std::function<std::string()>> provider_;
  std::unordered_map<const graph::Node*, std::pair<std::weak_ptr<graph::Node>, std::string>>
      entries_;
  std::size_t next_sweep_ = 1024;
};

Places& places() {
  static auto* all = new Places;
  return *all;
}

void remember_place(const NodePtr& node) { places().add(node); }

bool has_nan(const Value& value) {
  const graph::GradientMode mode(false);
  try {
    return Tensor(graph::any(graph::isnan(value), {}, false)).item() != 0;
  } catch (const UnsupportedError&) {
    return false;  // what vmap records stands for many examples, and has no value
  }
}

void check_rule(const NodePtr& node, std::span<const Value> gradients) {
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    // A rule may state what nobody asked for, as for a number.
    if (!node->source(static_cast<int>(i))->requires_grad()) continue;
    if (!gradients[i] || !is_floating(gradients[i].dtype()) || !has_nan(gradients[i])) continue;
    const std::string place = places().find(node);
    throw AutogradError(
        fmt::format("[backward] the gradient of {} is NaN for its operand {} of shape {}. {}",
                    node->op().name, i, gradients[i].shape().to_string(),
                    place.empty() ? "It was called before anomaly mode was turned on, or from C++"
                                  : "It was called at " + place));
  }
}

}  // namespace

void set_detect_anomaly(bool enabled, bool check_nan) {
  enabled_now.store(enabled);
  checking_now.store(check_nan);
  graph::set_node_observer(enabled ? &remember_place : nullptr);
  autograd::set_rule_observer(enabled && check_nan ? &check_rule : nullptr);
  if (!enabled) places().clear();
}
bool is_detecting_anomaly() { return enabled_now.load(); }
bool is_checking_nan() { return checking_now.load(); }

void set_place_provider(std::function<std::string()> provider) {
  places().set_provider(std::move(provider));
}

}  // namespace vkml
