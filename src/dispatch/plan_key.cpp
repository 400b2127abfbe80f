#include "plan_key.h"

#include <xxhash.h>

#include <bit>

namespace vkml::dispatch {
namespace {

void append(std::vector<std::uint64_t>& words, std::span<const std::int64_t> values) {
  for (const std::int64_t value : values) words.push_back(static_cast<std::uint64_t>(value));
}

}  // namespace

PlanKey make_key(const Schedule& schedule) {
  PlanKey key;
  key.words.reserve(schedule.steps.size() * 8);
  for (int i = 0; i < schedule.size(); ++i) {
    const Step& step = schedule[i];
    const graph::Node& node = *step.node;
    const auto bits = [](auto value, int shift) {
      return static_cast<std::uint64_t>(value) << shift;
    };
    // How an input came about is no structure: a window on a leaf is planned as a leaf is.
    const bool is_recorded = step.role == Role::kCompute || step.role == Role::kAlias;
    const int attributes = is_recorded ? node.attributes().size() : 0;
    key.words.push_back(bits(step.role, 0) | bits(node.dtype(), 4) | bits(step.kept, 8) |
                        bits(step.donates, 9) | bits(node.shape().rank(), 12) |
                        bits(step.source_count, 16) | bits(attributes, 32));
    append(key.words, node.shape().extents());
    if (step.role == Role::kInput) {
      append(key.words, node.shape().strides());
      key.words.push_back(static_cast<std::uint64_t>(step.storage_class));
      continue;
    }
    if (step.role == Role::kScalar) continue;
    // Operators are told apart by their static descriptions.
    key.words.push_back(std::bit_cast<std::uintptr_t>(&node.op()));
    append(key.words, node.attributes().span());
    if (step.role == Role::kAlias) {
      append(key.words, node.shape().strides());
      key.words.push_back(static_cast<std::uint64_t>(node.view_offset()));
    }
    for (const int source : schedule.sources_of(i)) {
      key.words.push_back(static_cast<std::uint64_t>(source));
    }
  }
  key.hash = XXH3_64bits(key.words.data(), key.words.size() * sizeof(key.words[0]));
  return key;
}

}  // namespace vkml::dispatch
