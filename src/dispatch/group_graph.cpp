#include "group_graph.h"

#include <algorithm>

namespace vkml::dispatch {
namespace {

constexpr std::int64_t kLabelDistance = std::int64_t{1} << 32;
constexpr std::size_t kMaxSearched = 256;

std::size_t at(int index) { return static_cast<std::size_t>(index); }

}  // namespace

int GroupGraph::add(std::span<const int> sources) {
  const int group = static_cast<int>(owner_.size());
  owner_.push_back(group);
  sources_.emplace_back(sources.begin(), sources.end());
  distinct_.push_back(sources.size());
  previous_.push_back(last_);
  next_.push_back(-1);
  label_.push_back(last_ < 0 ? 0 : label_[at(last_)] + kLabelDistance);
  seen_.push_back(0);
  (last_ < 0 ? first_ : next_[at(last_)]) = group;
  last_ = group;
  return group;
}

int GroupGraph::find(int group) {
  while (owner_[at(group)] != group) {
    owner_[at(group)] = owner_[at(owner_[at(group)])];
    group = owner_[at(group)];
  }
  return group;
}

std::vector<int> GroupGraph::sources(int group) {
  std::vector<int>& sources = sources_[at(group)];
  for (int& source : sources) source = find(source);
  std::ranges::sort(sources);
  sources.erase(std::unique(sources.begin(), sources.end()), sources.end());
  std::erase(sources, group);
  distinct_[at(group)] = sources.size();
  return sources;
}

/// Fills `between_` with what `later` reads, directly or not, and stands after `earlier`. False
/// when one of those reads `earlier`, or when there are too many.
bool GroupGraph::collect_between(int later, int earlier) {
  ++search_;
  between_.clear();
  const auto visit = [&](int group) {
    for (const int raw : sources_[at(group)]) {
      const int source = find(raw);
      if (source == earlier && group != later) return false;
      if (label_[at(source)] <= label_[at(earlier)] || source == later) continue;
      if (seen_[at(source)] == search_) continue;
      seen_[at(source)] = search_;
      between_.push_back(source);
    }
    return true;
  };
  if (!visit(later)) return false;
  // NOLINTNEXTLINE(modernize-loop-convert): visit() appends.
  for (std::size_t next = 0; next < between_.size(); ++next) {
    if (between_.size() > kMaxSearched || !visit(between_[next])) return false;
  }
  return true;
}

bool GroupGraph::path_between(int a, int b) {
  const bool a_is_later = label_[at(a)] > label_[at(b)];
  return !collect_between(a_is_later ? a : b, a_is_later ? b : a);
}

void GroupGraph::unlink(int group) {
  const int before = previous_[at(group)];
  const int after = next_[at(group)];
  (before < 0 ? first_ : next_[at(before)]) = after;
  (after < 0 ? last_ : previous_[at(after)]) = before;
}

void GroupGraph::link_before(int group, int next) {
  const int before = previous_[at(next)];
  previous_[at(group)] = before;
  next_[at(group)] = next;
  (before < 0 ? first_ : next_[at(before)]) = group;
  previous_[at(next)] = group;
}

void GroupGraph::relabel() {
  std::int64_t label = 0;
  for (int group = first_; group >= 0; group = next_[at(group)]) {
    label_[at(group)] = label;
    label += kLabelDistance;
  }
}

void GroupGraph::make_room_before(int group, std::size_t count) {
  const int before = previous_[at(group)];
  const auto needed = static_cast<std::int64_t>(count);
  if (before >= 0 && label_[at(group)] - label_[at(before)] <= needed) relabel();
}

void GroupGraph::merge(int into, int from) {
  const bool into_is_later = label_[at(into)] > label_[at(from)];
  const int earlier = into_is_later ? from : into;
  collect_between(into_is_later ? into : from, earlier);
  // What the later one needs moves before the earlier one, in the order in which it stands.
  std::ranges::sort(between_, {}, [&](int group) { return label_[at(group)]; });
  make_room_before(earlier, between_.size());
  const int before = previous_[at(earlier)];
  const std::int64_t top = label_[at(earlier)];
  const std::int64_t bottom = before < 0 ? top - kLabelDistance : label_[at(before)];
  const std::int64_t step = (top - bottom) / (static_cast<std::int64_t>(between_.size()) + 1);
  std::int64_t label = bottom;
  for (const int group : between_) {
    unlink(group);
    link_before(group, earlier);
    label_[at(group)] = label += step;
  }
  if (into_is_later) {
    unlink(into);
    link_before(into, from);
    label_[at(into)] = label_[at(from)];
  }
  unlink(from);
  owner_[at(from)] = into;
  sources_[at(into)].insert(sources_[at(into)].end(), sources_[at(from)].begin(),
                            sources_[at(from)].end());
  sources_[at(from)] = {};
  // Repetitions are dropped when they may be half of the list, so that merging stays linear.
  if (sources_[at(into)].size() > 2 * distinct_[at(into)]) sources(into);
}

}  // namespace vkml::dispatch
