// Assignments: when the new value takes the block of the old one, and when it must not.

#include <gtest/gtest.h>

#include <array>

#include "graph_values.h"
#include "planned.h"
#include "vkml/core/error.h"
#include "vkml/dispatch/verify.h"

namespace {

using namespace vkml;
using namespace vkml::values;
using Numbers = std::vector<double>;

/// Drops the last reference to what a value was computed from, as a rebound tensor does.
struct Parameter {
  Value value;
  void* address() const { return value->storage()->host(); }
};

TEST(Donation, AnUpdateWithNoOtherReaderIsInPlace) {
  Parameter p{leaf({2}, {1, 2})};
  void* const address = p.address();
  for (int i = 0; i < 3; ++i) {
    p.value = graph::assign(p.value, p.value * 2.0);
    realize(p.value);
    EXPECT_EQ(p.address(), address);
  }
  EXPECT_EQ(numbers_of(p.value), (Numbers{8, 16}));
}

TEST(Donation, ALeafKeepsItsAddress) {
  Parameter p{parameter({2}, {1, 2})};
  void* const address = p.address();
  const bool before = graph::set_grad_enabled(false);
  for (int i = 0; i < 3; ++i) {
    p.value =
        graph::assign(p.value, p.value * 2.0, graph::kFlagRequiresGrad | graph::kFlagGradientStop);
    realize(p.value);
    EXPECT_EQ(p.address(), address);
  }
  graph::set_grad_enabled(before);
}

TEST(Donation, NotWhileAReaderOfTheOldValueIsPending) {
  Parameter p{leaf({2}, {1, 2})};
  const Value reader = p.value + 10.0;
  p.value = graph::assign(p.value, p.value * 2.0);
  realize(p.value);
  EXPECT_EQ(numbers_of(reader), (Numbers{11, 12}));
  EXPECT_EQ(numbers_of(p.value), (Numbers{2, 4}));
}

TEST(Donation, NotWhileAViewOfTheOldValueLives) {
  Parameter p{leaf({2}, {1, 2})};
  const Value view = graph::slice(p.value, 0, 1, 2, 1);
  p.value = graph::assign(p.value, p.value * 2.0);
  realize(p.value);
  EXPECT_EQ(numbers_of(view), Numbers{2});
}

TEST(Donation, NotOfExportedMemory) {
  Parameter p{leaf({2}, {1, 2})};
  p.value->storage()->mark_exported();
  const Value old = p.value;
  void* const address = p.address();
  p.value = graph::assign(p.value, p.value * 2.0);
  realize(p.value);
  EXPECT_NE(p.address(), address);
  EXPECT_EQ(numbers_of(old), (Numbers{1, 2}));
}

TEST(Donation, AReversedReadOfTheOldValueSeesNoNewOne) {
  Parameter p{leaf({4}, {1, 2, 3, 4})};
  p.value = graph::assign(p.value, graph::slice(p.value, 0, std::nullopt, std::nullopt, -1) + 0.0);
  EXPECT_EQ(numbers_of(p.value), (Numbers{4, 3, 2, 1}));
  p.value = graph::assign(p.value, graph::sum(p.value, {}, true) * p.value);
  EXPECT_EQ(numbers_of(p.value), (Numbers{40, 30, 20, 10}));
}

/// x[start] = value, as a tensor records it.
Value with_element(const Value& x, std::int64_t start, const Value& value) {
  return graph::assign(x, graph::view_update(x, value, {start, {1}}));
}

TEST(Donation, AWindowAloneIsWritten) {
  Value x = leaf({4}, {1, 2, 3, 4});
  void* const address = x->storage()->host();
  x = with_element(x, 2, leaf({1}, {9}));
  const dispatch::ExecutionGraph plan = plan_of(x);
  ASSERT_EQ(plan.kernels.size(), 1u);
  EXPECT_EQ(dispatch::numel(plan.kernels[0].space), 1);
  EXPECT_EQ(plan.arena_bytes, 0);
  dispatch::verify_plan(plan);
  realize(x);
  EXPECT_EQ(x->storage()->host(), address);
  EXPECT_EQ(numbers_of(x), (Numbers{1, 2, 9, 4}));
}

TEST(Donation, WindowsWrittenOneAfterAnotherTakeOneBlock) {
  Value x = leaf({4}, {1, 2, 3, 4});
  for (int i = 0; i < 4; ++i) x = with_element(x, i, leaf({1}, {10.0 * i}));
  const dispatch::ExecutionGraph plan = plan_of(x);
  EXPECT_EQ(plan.kernels.size(), 4u);
  EXPECT_EQ(plan.arena_bytes, 0);
  dispatch::verify_plan(plan);
  EXPECT_EQ(numbers_of(x), (Numbers{0, 10, 20, 30}));
}

TEST(Donation, AWindowThatReadsItsBlockIsSavedFirst) {
  Value x = leaf({4}, {1, 2, 3, 4});
  x = graph::assign(x, graph::view_update(x, graph::slice(x, 0, 0, 3, 1), {1, {1}}));
  const dispatch::ExecutionGraph plan = plan_of(x);
  EXPECT_EQ(plan.kernels.size(), 2u);
  EXPECT_EQ(plan.arena_bytes, 256);
  dispatch::verify_plan(plan);
}

TEST(Donation, NotWhileSomethingNotKeptIsNeededAgain) {
  Parameter p{leaf({2}, {1, 2})};
  Value part = p.value * 3.0;
  const Value other = part + 1.0;
  p.value = graph::assign(p.value, p.value + part);
  part = {};
  EXPECT_EQ(numbers_of(p.value), (Numbers{4, 8}));
  EXPECT_EQ(numbers_of(other), (Numbers{4, 7}));
}

TEST(Donation, TwoParametersThatReadEachOther) {
  Parameter a{leaf({2}, {1, 2})};
  Parameter b{leaf({2}, {10, 20})};
  const Value new_a = graph::assign(a.value, a.value + b.value);
  const Value new_b = graph::assign(b.value, b.value - a.value);
  a.value = new_a;
  b.value = new_b;
  const std::array roots{a.value.node(), b.value.node()};
  dispatch::realize(roots);
  EXPECT_EQ(numbers_of(a.value), (Numbers{11, 22}));
  EXPECT_EQ(numbers_of(b.value), (Numbers{9, 18}));
}

TEST(Donation, AFailedIndexLeavesTheOldValue) {
  Parameter p{leaf({3}, {1, 2, 3})};
  const Value picked = graph::gather(p.value, 0, leaf({1}, {7}, DType::kI32));
  p.value = graph::assign(p.value, p.value + graph::broadcast_to(picked, List{3}));
  EXPECT_THROW(realize(p.value), IndexError);
  EXPECT_EQ(numbers_of(p.value), (Numbers{1, 2, 3}));
}

}  // namespace
