// Compiled plans by structure. A hash hit is confirmed by comparing the whole key; the least
// recently used plans go when the cache is full.
#pragma once

#include <list>
#include <memory>
#include <unordered_map>
#include <vector>

#include "plan.h"

namespace vkml::dispatch {

class PlanCache {
 public:
  /// The plan, which becomes the most recently used one; null if there is none.
  std::shared_ptr<Plan> find(const PlanKey& key);
  bool contains(const PlanKey& key) const;
  void insert(std::shared_ptr<Plan> plan);
  void clear();
  std::int64_t size() const { return static_cast<std::int64_t>(recent_.size()); }

 private:
  static constexpr std::size_t kCapacityWords = std::size_t{8} << 20;
  using Recent = std::list<std::shared_ptr<Plan>>;
  Recent recent_;  // most recent first
  std::unordered_multimap<std::uint64_t, Recent::iterator> by_hash_;
  std::size_t words_ = 0;
};

}  // namespace vkml::dispatch
