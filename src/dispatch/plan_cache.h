// Compiled plans by structure. A hash hit is confirmed by comparing the whole key; the least
// recently used plans go when the cache is full.
#pragma once

#include <list>
#include <memory>
#include <unordered_map>
#include <vector>

#include "plan_key.h"
#include "vkml/dispatch/backend.h"

namespace vkml::dispatch {

struct Plan {
  PlanKey key;
  std::shared_ptr<Executable> executable;  // null: nothing to run
  std::vector<int> inputs;                 // positions in the schedule, by binding
  std::vector<int> results;
  std::vector<int> scalars;
  std::vector<int> donors;        // by result: the input binding whose block it overwrites, or -1
  std::vector<bool> reads;        // by input: false where only its block is used
  std::vector<bool> may_fail_at;  // by result: whether it depends on an index that is checked
  std::int64_t kernel_count = 0;
  /// Whether it assigns to fresh blocks, which hold no old value when an index fails: then what may
  /// fail is waited for, so that the assigned tensors can be given their old blocks back.
  bool has_fresh_assignment = false;
  bool may_fail = false;
};

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
