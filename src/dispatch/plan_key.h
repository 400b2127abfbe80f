// The structure of a schedule as words: two schedules with equal words have the same plan.
//
// In the key: operators, structural attributes, shapes, dtypes, strides of inputs, which leaf and
// which node is which (x*y is not x*x), which inputs share storage, kept and donated results. Not
// in it: leaf identity and addresses, offsets of views of leaves, values of scalars.
#pragma once

#include <cstdint>
#include <vector>

#include "schedule.h"

namespace vkml::dispatch {

struct PlanKey {
  std::vector<std::uint64_t> words;
  std::uint64_t hash = 0;

  friend bool operator==(const PlanKey& a, const PlanKey& b) { return a.words == b.words; }
};

PlanKey make_key(const Schedule& schedule);

}  // namespace vkml::dispatch
