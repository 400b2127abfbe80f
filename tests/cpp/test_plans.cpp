// Plans: which operators share kernels, where buffers lie, what the verifier refuses.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <random>

#include "graph_values.h"
#include "planned.h"
#include "vkml/core/error.h"
#include "vkml/dispatch/verify.h"

namespace {

using namespace vkml;
using namespace vkml::values;
using graph::NodePtr;

TEST(Fusion, OneKernelForAnExpressionOverOneSpace) {
  const Value a = leaf({8}, count_up(8));
  const Value b = leaf({8}, count_up(8));
  const Value y = graph::sigmoid(a * b + a) * graph::tanh(b) - a / 2.0;
  EXPECT_EQ(plan_of(y).kernels.size(), 1u);
  EXPECT_EQ(plan_of(graph::softmax(leaf({4, 8}, count_up(32)), 1)).kernels.size(), 1u);
  const List last{1};
  EXPECT_EQ(plan_of(graph::normalize(leaf({4, 8}, count_up(32)), last, 1e-5)).kernels.size(), 1u);
}

TEST(Fusion, AnyNumberOfPartsIsJoined) {
  for (const std::size_t parts : {1u, 12u, 13u, 1000u}) {
    const std::vector<Value> values(parts, leaf({2}, {1, 2}));
    EXPECT_EQ(numbers_of(graph::concat(values, 0)).size(), 2 * parts);
  }
}

TEST(Fusion, EpiloguesJoinTheirProduct) {
  const Value a = leaf({4, 8}, count_up(32));
  const Value b = leaf({8, 2}, count_up(16));
  const Value bias = leaf({2}, {1, 2});
  EXPECT_EQ(plan_of(graph::relu(graph::matmul(a, b) + bias)).kernels.size(), 1u);
  EXPECT_EQ(plan_of(graph::matmul(graph::relu(a), b)).kernels.size(), 2u);
}

/// A graph of matrix products, reductions, maps and views over squares.
Value random_graph(std::mt19937& generator, int operators) {
  constexpr std::int64_t kSide = 8;
  const Value square_of_numbers = leaf({kSide, kSide}, count_up(kSide * kSide));
  std::vector<Value> values{square_of_numbers, square_of_numbers * 0.5};
  const auto pick = [&] { return values[generator() % values.size()]; };
  const List last{1};
  const List square{kSide, kSide};
  for (int i = 0; i < operators; ++i) {
    switch (generator() % 7) {
      case 0:
        values.push_back(graph::matmul(pick(), pick()));
        break;
      case 1:
        values.push_back(graph::softmax(pick(), 1));
        break;
      case 2:
        values.push_back(graph::transpose(pick(), 0, 1));
        break;
      case 3:
        values.push_back(graph::tanh(pick()) * pick());
        break;
      case 4:
        values.push_back(graph::broadcast_to(graph::sum(pick(), last, true), square));
        break;
      case 5: {
        const Value joined = graph::concat(std::array{pick(), pick()}, 0);
        values.push_back(graph::slice(joined, 0, 2, 2 + kSide, 1));
        break;
      }
      default:
        values.push_back(graph::slice(pick() + pick(), 0, std::nullopt, std::nullopt, -1));
        break;
    }
  }
  return values.back() + pick();
}

TEST(MemoryPlan, LiveBuffersNeverOverlap) {
  std::mt19937 generator(7);
  for (int round = 0; round < 200; ++round) {
    SCOPED_TRACE(round);
    const dispatch::ExecutionGraph graph = plan_of(random_graph(generator, 4 + round % 30));
    dispatch::verify_plan(graph);
    for (const dispatch::Buffer& buffer : graph.buffers) EXPECT_EQ(buffer.arena_offset % 256, 0);
  }
}

TEST(MemoryPlan, ThousandsOfBuffersNeverOverlap) {
  std::mt19937 generator(11);
  dispatch::verify_plan(plan_of(random_graph(generator, 20000)));
  const Value w = leaf({4, 4}, count_up(16));
  std::vector<Value> states{w};
  for (int i = 0; i < 5000; ++i) states.push_back(graph::matmul(states.back(), w));
  Value back = w;  // reads every state again, the last first
  for (std::size_t i = states.size(); i-- > 0;) back = graph::matmul(back, states[i]);
  const dispatch::ExecutionGraph graph = plan_of(back);
  dispatch::verify_plan(graph);
  EXPECT_LE(graph.arena_bytes, 5010 * 256);
}

TEST(MemoryPlan, NoBufferCrossesABlock) {
  std::mt19937 generator(13);
  constexpr std::int64_t kBlock = 800;  // three squares, or one of two joined and a square
  for (const int operators : {10, 30, 300, 20000}) {
    SCOPED_TRACE(operators);
    const dispatch::ExecutionGraph graph = plan_of(random_graph(generator, operators), kBlock);
    EXPECT_EQ(graph.arena_segment_bytes, 768);
    dispatch::verify_plan(graph);
  }
}

/// Seconds to plan a recurrent network of so many steps, forward and what a backward pass reads.
double planning_time(int steps) {
  const Value w = leaf({4, 4}, count_up(16));
  std::vector<Value> states{w};
  for (int i = 0; i < steps; ++i) states.push_back(graph::tanh(graph::matmul(states.back(), w)));
  Value back = w;
  for (std::size_t i = states.size(); i-- > 0;) {
    back = graph::matmul(back * (1.0 - states[i] * states[i]), w);
  }
  const auto start = std::chrono::steady_clock::now();
  plan_of(back);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

TEST(Fusion, PlanningTimeIsNearLinear) {
  const auto best = [](int steps) {
    return std::min({planning_time(steps), planning_time(steps), planning_time(steps)});
  };
  // A quadratic pass would need 64 times as long.
  EXPECT_LT(best(8000), 24 * best(1000));
}

TEST(Verifier, FindsWhatIsWrongWithAPlan) {
  const Value w = leaf({16, 16}, count_up(256));
  Value x = w;
  for (int i = 0; i < 4; ++i) x = graph::matmul(x, w);
  const dispatch::ExecutionGraph sound = plan_of(x);
  dispatch::verify_plan(sound);
  const auto expect_refused = [&](const char* what, auto&& damage) {
    dispatch::ExecutionGraph graph = sound;
    damage(graph);
    try {
      dispatch::verify_plan(graph);
      ADD_FAILURE() << "accepted: " << what;
    } catch (const InternalError& error) {
      EXPECT_NE(std::string(error.what()).find(what), std::string::npos) << error.what();
    }
  };
  expect_refused("reads unwritten",
                 [](auto& graph) { std::swap(graph.kernels[0], graph.kernels[1]); });
  expect_refused("reads overwritten", [](auto& graph) {
    for (dispatch::Buffer& buffer : graph.buffers) buffer.arena_offset = 0;
    graph.kernels[2].core_inputs[0] = graph.kernels[1].core_inputs[0];
  });
  expect_refused("leaves its bounds", [](auto& graph) { graph.kernels[0].stores[0].offset = 8; });
  expect_refused("writes input", [](auto& graph) {
    graph.kernels[0].stores[0].buffer = graph.kernels[0].core_inputs[0].buffer;
  });
}

TEST(Verifier, RefusesWhatMayFailAfterABlockIsOverwritten) {
  Value p = leaf({3}, {1, 2, 3});
  const Value picked = graph::gather(leaf({3}, {4, 5, 6}), 0, leaf({1}, {2}, DType::kI32));
  p = graph::assign(p, p * 2.0);
  const std::array roots{p.node(), picked.node()};
  const dispatch::ExecutionGraph sound = plan_of(roots);
  dispatch::verify_plan(sound);
  ASSERT_EQ(sound.kernels.size(), 2u);
  ASSERT_EQ(dispatch::sites_of(sound.kernels[0]), std::vector<int>{0});
  EXPECT_TRUE(dispatch::sites_of(sound.kernels[1]).empty());
  dispatch::ExecutionGraph late = sound;
  std::swap(late.kernels[0], late.kernels[1]);
  EXPECT_THROW(dispatch::verify_plan(late), InternalError);
  for (dispatch::Buffer& buffer : late.buffers) buffer.donor_is_dead = buffer.donor >= 0;
  dispatch::verify_plan(late);
}

TEST(Fusion, ADevicesLimitOnOperandsSplitsKernels) {
  Value sum = leaf({3}, {1, 2, 3});
  for (int i = 0; i < 9; ++i) sum = sum + leaf({3}, {1, 1, 1});
  const auto plan_with = [&](int most) {
    return plan_of(std::array{sum.node()}, {.max_operands = most});
  };
  EXPECT_EQ(plan_with(dispatch::kMaxOperands).kernels.size(), 1u);
  const dispatch::ExecutionGraph split = plan_with(dispatch::kLeastOperands);
  EXPECT_GT(split.kernels.size(), 1u);
  for (const dispatch::Kernel& kernel : split.kernels) {
    EXPECT_LE(kernel.loads.size() + kernel.stores.size(), dispatch::kLeastOperands);
  }
}

TEST(MemoryPlan, AChainOfProductsNeedsTwoBuffers) {
  Value x = leaf({16, 16}, count_up(256));
  const Value w = leaf({16, 16}, count_up(256));
  for (int i = 0; i < 20; ++i) x = graph::matmul(x, w);
  EXPECT_EQ(plan_of(x).arena_bytes, 2 * 16 * 16 * 4);
}

}  // namespace
