#include "plan_cache.h"

#include <algorithm>

namespace vkml::dispatch {
namespace {
/// What a plan weighs beside its key: programs, recordings and pipelines grow with the kernels.
std::size_t weight(const Plan& plan) {
  return plan.key.words.size() + static_cast<std::size_t>(plan.kernel_count) * 512;
}
}  // namespace

std::shared_ptr<Plan> PlanCache::find(const PlanKey& key) {
  const auto [begin, end] = by_hash_.equal_range(key.hash);
  for (auto entry = begin; entry != end; ++entry) {
    if (!((*entry->second)->key == key)) continue;
    recent_.splice(recent_.begin(), recent_, entry->second);
    return recent_.front();
  }
  return nullptr;
}

bool PlanCache::contains(const PlanKey& key) const {
  const auto [begin, end] = by_hash_.equal_range(key.hash);
  return std::any_of(begin, end, [&](const auto& entry) { return (*entry.second)->key == key; });
}

void PlanCache::insert(std::shared_ptr<Plan> plan) {
  words_ += weight(*plan);
  recent_.push_front(std::move(plan));
  by_hash_.emplace(recent_.front()->key.hash, recent_.begin());
  while (words_ > kCapacityWords && recent_.size() > 1) {
    const auto last = std::prev(recent_.end());
    words_ -= weight(**last);
    const auto [begin, end] = by_hash_.equal_range((*last)->key.hash);
    for (auto entry = begin; entry != end; ++entry) {
      if (entry->second != last) continue;
      by_hash_.erase(entry);
      break;
    }
    recent_.erase(last);
  }
}

void PlanCache::clear() {
  by_hash_.clear();
  recent_.clear();
  words_ = 0;
}

}  // namespace vkml::dispatch
