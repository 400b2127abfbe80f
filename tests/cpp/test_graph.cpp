// Nodes: lifetime, the two edges of a view, realisation state, flags.

#include <gtest/gtest.h>

#include <array>
#include <memory>

#include "graph_values.h"
#include "vkml/autograd/backward.h"
#include "vkml/core/error.h"

namespace {

using namespace vkml;
using namespace vkml::values;
using graph::NodePtr;
using Numbers = std::vector<double>;

TEST(NodeLifetime, AChainOfAMillionNodesIsTornDownWithoutRecursion) {
  const std::int64_t before = graph::live_node_count();
  {
    Value x = leaf({1}, {1});
    for (int i = 0; i < 1'000'000; ++i) x = graph::neg(x);
    EXPECT_EQ(graph::live_node_count(), before + 1'000'001);
  }
  EXPECT_EQ(graph::live_node_count(), before);
}

TEST(NodeLifetime, AChainOfViewsIsTornDownWithoutRecursion) {
  const std::int64_t before = graph::live_node_count();
  {
    Value x = leaf({2, 2}, count_up(4)) + 0.0;
    for (int i = 0; i < 300'000; ++i) x = graph::transpose(x, 0, 1);
  }
  EXPECT_EQ(graph::live_node_count(), before);
}

TEST(NodeLifetime, SharedSourcesGoWithTheirLastUser) {
  const std::int64_t before = graph::live_node_count();
  Value x = leaf({1}, {1});
  const std::weak_ptr<graph::Node> watched = x.node();
  Value a = graph::neg(x);
  Value b = graph::abs(x);
  x = Value();
  a = Value();
  EXPECT_FALSE(watched.expired());
  b = Value();
  EXPECT_TRUE(watched.expired());
  EXPECT_EQ(graph::live_node_count(), before);
}

TEST(NodeLifetime, DoublingSixtyTimesIsLinear) {
  Value x = leaf({1}, {1}, DType::kI64);
  const std::int64_t before = graph::live_node_count();
  for (int i = 0; i < 60; ++i) x = x + x;
  EXPECT_EQ(graph::live_node_count(), before + 60);
  EXPECT_EQ(numbers_of(x), Numbers{0x1p60});
}

TEST(NodeLifetime, ALoopThatReadsItsResultStaysFlat) {
  Value x = leaf({4}, {1, 2, 3, 4});
  realize(x = x * 0.5);
  const std::int64_t nodes = graph::live_node_count();
  const std::int64_t bytes = dispatch::backend_for(kCpu).allocated_bytes();
  for (int i = 0; i < 1000; ++i) realize(x = x * 0.5 + 1.0);
  EXPECT_EQ(graph::live_node_count(), nodes);
  EXPECT_EQ(dispatch::backend_for(kCpu).allocated_bytes(), bytes);
}

TEST(Node, DepthCountsTheLongestPendingPath) {
  Value x = leaf({1}, {1});
  const Value once = graph::neg(x);
  const Value thrice = graph::add(graph::neg(graph::neg(x)), once);
  EXPECT_EQ(once->depth() + 2, thrice->depth());
  realize(thrice);
  EXPECT_EQ(graph::neg(thrice)->depth(), 1u);
}

TEST(Node, ManySourcesKeepTheirOrder) {
  std::vector<Value> parts;
  for (int i = 0; i < 10; ++i) parts.push_back(leaf({1}, {static_cast<double>(i)}));
  const Value joined = graph::concat(parts, 0);
  ASSERT_EQ(joined->sources().size(), 10u);
  EXPECT_EQ(joined->source(7), parts[7].node());
  EXPECT_EQ(numbers_of(joined), count_up(10));
}

TEST(Node, AttributesHaveALimitThatIsChecked) {
  graph::Attributes attributes;
  for (int i = 0; i < graph::Attributes::kCapacity; ++i) attributes.push_back(i);
  EXPECT_THROW(attributes.push_back(0), InternalError);
}

TEST(View, KeepsTheRootAndTheImmediateBase) {
  const Value x = leaf({2, 3}, count_up(6)) + 0.0;
  const Value transposed = graph::transpose(x, 0, 1);
  const Value wide = graph::broadcast_to(graph::unsqueeze(transposed, 0), List{4, 3, 2});
  const Value part = graph::slice(wide, 1, 1, 3, 1);
  EXPECT_EQ(part->view_src(), x.node());
  EXPECT_EQ(part->source(0), wide.node());
  EXPECT_EQ(transposed->view_src(), x.node());
  EXPECT_EQ(transposed->source(0), x.node());
  EXPECT_EQ(part->view_offset(), 4);
  EXPECT_FALSE(x->is_view());
}

// With only the collapsed edge the rule would see (2, 3) where it needs (3, 2), and the gradient
// would come out transposed.
TEST(View, GradientsFollowTheImmediateBase) {
  const Value w = parameter({2, 3}, count_up(6));
  const Value y = graph::broadcast_to(graph::transpose(w, 0, 1), List{2, 3, 2});
  const Value upstream = leaf({2, 3, 2}, count_up(12));
  const auto pass = autograd::backward(y, upstream, false);
  ASSERT_EQ(pass.leaves.size(), 1u);
  EXPECT_EQ(pass.leaves[0].second.shape().to_string(), "(2, 3)");
  EXPECT_EQ(numbers_of(pass.leaves[0].second), (Numbers{6, 10, 14, 8, 12, 16}));
}

TEST(View, OfAComputedValueNeedsNoRun) {
  const Value x = leaf({2, 3}, count_up(6));
  const auto before = dispatch::cache_statistics(kCpu);
  const Value row = graph::slice(x, 0, 1, 2, 1);
  realize(row);
  EXPECT_EQ(row->storage(), x->storage());
  EXPECT_EQ(row->storage_offset(), 12);
  const auto after = dispatch::cache_statistics(kCpu);
  EXPECT_EQ(after.hits + after.misses, before.hits + before.misses);
}

TEST(View, ReshapesWithoutACopyWhereStridesAllow) {
  const Value x = leaf({4, 6}, count_up(24));
  EXPECT_TRUE(graph::reshape(x, List{2, 2, 6})->is_view());
  const Value columns = graph::slice(x, 1, 0, 6, 2);
  EXPECT_EQ(graph::reshape(columns, List{2, 2, 3})->view_src(), x.node());
  const Value turned = graph::transpose(x, 0, 1);
  EXPECT_NE(graph::reshape(turned, List{24})->view_src(), x.node());
  EXPECT_EQ(numbers_of(graph::reshape(columns, List{12})),
            (Numbers{0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22}));
  EXPECT_THROW(graph::reshape(x, List{5, -1}), ShapeError);
}

TEST(State, BoundAndComputedComeWithTheRun) {
  const Value x = leaf({2}, {1, 2});
  const Value y = x + 1.0;
  EXPECT_FALSE(y->is_bound());
  EXPECT_FALSE(y->is_computed());
  realize(y);
  EXPECT_TRUE(y->is_bound());
  EXPECT_TRUE(y->is_computed());
}

TEST(State, FusedAwayNodesStayUnbound) {
  const Value x = leaf({2}, {1, 2});
  const Value middle = x + 1.0;
  const Value y = middle * 2.0;
  realize(y);
  EXPECT_FALSE(middle->is_bound());
  EXPECT_FALSE(middle->is_computed());
  EXPECT_EQ(numbers_of(middle), (Numbers{2, 3}));
}

TEST(State, NodesThatATensorShowsAreKept) {
  const Value x = leaf({2}, {1, 2});
  const Value middle = x + 1.0;
  middle.node()->add_slot();
  realize(middle * 2.0);
  EXPECT_TRUE(middle->is_computed());
  middle.node()->remove_slot();
}

TEST(State, ComputingReleasesTheSources) {
  const Value x = leaf({2}, {1, 2});
  const Value y = x + 1.0;
  EXPECT_EQ(y->sources().size(), 2u);
  realize(y);
  EXPECT_TRUE(y->sources().empty());
  EXPECT_FALSE(y->is_released()) << "only a backward pass makes a second one an error";
}

TEST(State, SourcesThatAGradientNeedsStay) {
  const Value x = parameter({2}, {1, 2});
  const Value y = x * x;
  realize(y);
  EXPECT_EQ(y->sources().size(), 2u);
  const auto pass = autograd::backward(y, leaf({2}, {1, 1}), false);
  EXPECT_EQ(numbers_of(pass.leaves[0].second), (Numbers{2, 4}));
  autograd::release(pass.visited);
  EXPECT_TRUE(y->is_released());
  EXPECT_THROW(autograd::backward(y, leaf({2}, {1, 1}), false), AutogradError);
}

TEST(Flags, RequiresGradIsCapturedAtConstruction) {
  const Value x = parameter({1}, {3});
  const bool before = graph::set_grad_enabled(false);
  const Value silent = x * 2.0;
  graph::set_grad_enabled(before);
  EXPECT_FALSE(silent->requires_grad());
  EXPECT_TRUE((x * 2.0)->requires_grad());
  EXPECT_FALSE(graph::detach(x)->requires_grad());
  EXPECT_FALSE(graph::gt(x, 0.0)->requires_grad()) << "bools have no gradient";
}

TEST(Flags, PythonNumbersYield) {
  const Value half = leaf({1}, {2}, DType::kF16);
  EXPECT_EQ((half * 3.0).dtype(), DType::kF16);
  const Value integer = leaf({1}, {2}, DType::kI64);
  EXPECT_EQ(graph::add(integer, graph::weak_scalar(std::int64_t{1}, kCpu)).dtype(), DType::kI64);
  EXPECT_EQ((integer * 0.5).dtype(), DType::kF32);
  const Value both = graph::weak_scalar(1.0, kCpu) + 2.0;
  EXPECT_TRUE(both->is_weak());
  EXPECT_EQ((half + both).dtype(), DType::kF16);
  EXPECT_FALSE((half + both)->is_weak());
}

TEST(Flags, ScalarsHaveValuesOfTheirDtype) {
  // 0.1 has no f16 of its own: the product is with the nearest one.
  const Value half = leaf({1}, {1}, DType::kF16);
  EXPECT_EQ(numbers_of(graph::eq(half * 0.1, leaf({1}, {0.1}, DType::kF16))), Numbers{1});
  EXPECT_EQ(numbers_of(graph::scalar(3e9, DType::kI32, kCpu)), Numbers{2147483647});
  EXPECT_EQ(numbers_of(graph::scalar(-1.0, DType::kU8, kCpu)), Numbers{0});
  EXPECT_EQ(graph::scalar((std::int64_t{1} << 60) + 1, DType::kI64, kCpu)->attributes()[0],
            (std::int64_t{1} << 60) + 1);
  EXPECT_THROW(graph::scalar(-1, DType::kU8, kCpu), ArgumentError);
}

TEST(Backward, EachNodeOnceAndAncestorsOnly) {
  const Value x = parameter({1}, {3});
  const Value unrelated = parameter({1}, {5});
  const Value other = unrelated * x;
  Value y = x;
  for (int i = 0; i < 30; ++i) y = y + y;
  const auto pass = autograd::backward(y, leaf({1}, {1}), false);
  EXPECT_EQ(pass.visited.size(), 30u);
  ASSERT_EQ(pass.leaves.size(), 1u);
  EXPECT_EQ(numbers_of(pass.leaves[0].second), Numbers{0x1p30});
  EXPECT_FALSE(other->is_computed());
}

TEST(Backward, ADeepChainNeedsNoStack) {
  const Value x = parameter({1}, {1});
  Value y = x;
  for (int i = 0; i < 200'000; ++i) y = graph::neg(y);
  const auto pass = autograd::backward(y, leaf({1}, {1}), false);
  EXPECT_EQ(pass.visited.size(), 200'000u);
}

TEST(Backward, SecondDerivatives) {
  const Value x = parameter({2}, {2, 3});
  const Value y = x * x * x;
  const Value ones = leaf({2}, {1, 1});
  const std::array inputs{x};
  const Value first = autograd::gradients(y, ones, inputs, true)[0];
  EXPECT_EQ(numbers_of(first), (Numbers{12, 27}));
  const Value second = autograd::gradients(first, ones, inputs, true)[0];
  EXPECT_EQ(numbers_of(second), (Numbers{12, 18}));
}

TEST(Backward, OfAnIntermediateValue) {
  const Value x = parameter({1}, {2});
  const Value middle = x * x;
  const Value y = middle * 5.0;
  const std::array inputs{middle, parameter({1}, {1})};
  const auto found = autograd::gradients(y, leaf({1}, {1}), inputs, false);
  EXPECT_EQ(numbers_of(found[0]), Numbers{5});
  EXPECT_FALSE(found[1]) << "y does not depend on it";
}

}  // namespace
