// Keys of plans: what they tell apart, what they leave out, and what the cache makes of them.

#include <gtest/gtest.h>

#include <array>

#include "dispatch/plan_key.h"
#include "dispatch/schedule.h"
#include "graph_values.h"

namespace {

using namespace vkml;
using namespace vkml::values;
using Numbers = std::vector<double>;

dispatch::PlanKey key_of(const Value& value) {
  return make_key(dispatch::make_schedule({&value.node(), 1}, true));
}

TEST(PlanKey, TellsSharingApart) {
  const Value x = leaf({2}, {1, 2});
  const Value y = leaf({2}, {3, 4});
  EXPECT_FALSE(key_of(x * y) == key_of(x * x));
  EXPECT_TRUE(key_of(x * y) == key_of(y * x)) << "leaf identity is no part of the key";
  const Value s = x + 1.0;
  EXPECT_FALSE(key_of(s * s) == key_of((x + 1.0) * (x + 1.0)));
}

TEST(PlanKey, LeavesOutNumbers) {
  const Value x = leaf({2}, {1, 2});
  EXPECT_TRUE(key_of(x * 2.0) == key_of(x * 3.0));
  EXPECT_FALSE(key_of(x * 2.0) == key_of(x * leaf({}, {3})));
  const Value twice = graph::weak_scalar(2.0, kCpu);
  EXPECT_FALSE(key_of(x * twice + twice) == key_of(x * 2.0 + 2.0)) << "one number or two";
}

TEST(PlanKey, LeavesOutOffsetsOfSlicesOfLeaves) {
  const Value x = leaf({100}, count_up(100));
  const Value first = graph::slice(x, 0, 0, 10, 1);
  const Value later = graph::slice(x, 0, 50, 60, 1);
  EXPECT_TRUE(key_of(first * 2.0) == key_of(later * 2.0));
  EXPECT_FALSE(key_of(first * 2.0) == key_of(graph::slice(x, 0, 0, 20, 2) * 2.0)) << "strides";
  // Of a value computed in the same graph the offset is structure.
  const auto part = [&](std::int64_t start) {
    return graph::slice(x + 1.0, 0, start, start + 10, 1) * 2.0;
  };
  EXPECT_FALSE(key_of(part(0)) == key_of(part(50)));
}

TEST(PlanKey, TellsStructureApart) {
  const Value x = leaf({2, 3}, count_up(6));
  const Value y = leaf({3, 2}, count_up(6));
  const auto base = key_of(x + 1.0);
  EXPECT_FALSE(base == key_of(x - 1.0)) << "operators";
  EXPECT_FALSE(base == key_of(y + 1.0)) << "shapes";
  EXPECT_FALSE(base == key_of(leaf({2, 3}, count_up(6), DType::kF16) + 1.0)) << "dtypes";
  EXPECT_FALSE(base == key_of(graph::transpose(y, 0, 1) + 1.0)) << "strides";
  const List rows{0};
  const List columns{1};
  EXPECT_FALSE(key_of(graph::sum(x, rows, true)) == key_of(graph::sum(x, columns, true)))
      << "attributes";
  const Value kept = x * 3.0;
  const auto before = key_of(kept + 1.0);
  kept.node()->add_slot();
  EXPECT_FALSE(before == key_of(kept + 1.0)) << "what is kept";
  kept.node()->remove_slot();
}

TEST(PlanKey, TellsAliasingOfStorageApart) {
  const Value x = leaf({4}, count_up(4));
  const Value y = leaf({2}, count_up(2));
  const Value front = graph::slice(x, 0, 0, 2, 1);
  const Value back = graph::slice(x, 0, 2, 4, 1);
  EXPECT_FALSE(key_of(front + back) == key_of(front + y));
}

TEST(Cache, SchedulesAndSlidingWindowsHit) {
  Value w = leaf({4}, {1, 1, 1, 1});
  const Value data = leaf({400}, count_up(400));
  dispatch::CacheStatistics after_second;
  for (int step = 0; step < 20; ++step) {
    const Value batch = graph::slice(data, 0, step * 4, step * 4 + 4, 1);
    const double rate = 0.1 / (1 + step);
    realize(w = w - batch * rate);
    if (step == 1) after_second = dispatch::cache_statistics(kCpu);
  }
  const auto last = dispatch::cache_statistics(kCpu);
  EXPECT_EQ(last.misses, after_second.misses);
  EXPECT_EQ(last.hits, after_second.hits + 18);
}

TEST(Cache, ClearingForgetsPlans) {
  const Value x = leaf({3}, {1, 2, 3});
  realize(x + 1.5);
  dispatch::clear_cache(kCpu);
  EXPECT_EQ(dispatch::cache_statistics(kCpu).plans, 0);
  EXPECT_EQ(numbers_of(x + 2.5), (Numbers{3.5, 4.5, 5.5}));
  EXPECT_EQ(dispatch::cache_statistics(kCpu).plans, 1);
}

}  // namespace
