// realize(): plans and their keys, donation, memory, errors.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <random>

#include "dispatch/fuse.h"
#include "dispatch/lower.h"
#include "dispatch/memory_plan.h"
#include "dispatch/plan_key.h"
#include "dispatch/schedule.h"
#include "graph_values.h"
#include "vkml/core/error.h"
#include "vkml/dispatch/verify.h"

namespace {

using namespace vkml;
using namespace vkml::values;
using graph::NodePtr;
using Numbers = std::vector<double>;

dispatch::PlanKey key_of(const Value& value) {
  return make_key(dispatch::make_schedule({&value.node(), 1}, true));
}

dispatch::ExecutionGraph plan_of(std::span<const NodePtr> roots,
                                 const dispatch::FusionOptions& options = {},
                                 std::int64_t max_block_bytes = dispatch::kAnyBlock) {
  const dispatch::Schedule schedule = dispatch::make_schedule(roots, false);
  dispatch::ExecutionGraph graph =
      dispatch::lower(schedule, dispatch::fuse(schedule, options)).graph;
  dispatch::plan_memory(graph, max_block_bytes);
  return graph;
}
dispatch::ExecutionGraph plan_of(const Value& value,
                                 std::int64_t max_block_bytes = dispatch::kAnyBlock) {
  return plan_of({&value.node(), 1}, {}, max_block_bytes);
}

/// A backend for the device name vulkan:0 that fails on demand and is the reference otherwise.
class FailingBackend final : public dispatch::Backend, public Allocator {
 public:
  int failing_allocations = 0;
  int failing_allocations_after_run = 0;
  bool fails_in_the_middle = false;
  int trims = 0;
  std::string unsupported;

  dispatch::DeviceInfo info() const override { return {}; }
  Allocator& allocator() override { return *this; }
  Allocator& staging_allocator() override { return *this; }
  bool supports(const graph::Node& node, std::string& reason) const override {
    reason = "it was told so";
    return node.op().name != unsupported;
  }
  int max_operands() const override { return dispatch::kLeastOperands; }
  std::int64_t scratch_bytes(const dispatch::Kernel&) const override { return 0; }
  std::shared_ptr<dispatch::Executable> compile(dispatch::ExecutionGraph graph) override {
    return inner_->compile(std::move(graph));
  }
  void reserve(dispatch::Executable& executable) override { inner_->reserve(executable); }
  std::shared_ptr<Submission> run(dispatch::Executable& executable,
                                  const dispatch::Bindings& bindings) override {
    if (std::exchange(fails_in_the_middle, false)) {
      throw dispatch::PartialRun{std::make_exception_ptr(OutOfMemoryError("[matmul] no scratch"))};
    }
    failing_allocations += std::exchange(failing_allocations_after_run, 0);
    return inner_->run(executable, bindings);
  }
  void upload(Storage& target, std::int64_t offset, std::span<const std::byte> bytes) override {
    inner_->upload(target, offset, bytes);
  }
  void download(const Storage& source, std::int64_t offset, std::span<std::byte> bytes) override {
    inner_->download(source, offset, bytes);
  }
  void synchronize() override {}
  void trim() override { ++trims; }
  std::int64_t allocated_bytes() const override { return 0; }

  StoragePtr allocate(std::size_t bytes) override {
    if (failing_allocations > 0) {
      --failing_allocations;
      throw OutOfMemoryError("[allocate] no memory left in this test");
    }
    StoragePtr host = inner_->allocator().allocate(bytes);
    void* address = host->host();
    return std::make_shared<Storage>(vulkan_device(), bytes, address, 0, [host](Storage&) {});
  }
  std::string_view name() const override { return "failing"; }
  Device device() const override { return vulkan_device(); }

 private:
  std::unique_ptr<dispatch::Backend> inner_ = reference::make_reference_backend();
};

FailingBackend& failing_backend() {
  dispatch::register_backend(
      DeviceKind::kVulkan,
      [](int) -> std::unique_ptr<dispatch::Backend> { return std::make_unique<FailingBackend>(); },
      [] { return 1; });
  return static_cast<FailingBackend&>(dispatch::backend_for(vulkan_device()));
}

Value failing_leaf(const Numbers& numbers, DType dtype = DType::kF32) {
  const Shape shape({static_cast<std::int64_t>(numbers.size())}, dtype);
  StoragePtr storage = failing_backend().allocate(numbers.size() * size_of(dtype));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    put_number(static_cast<std::byte*>(storage->host()), dtype, i, numbers[i]);
  }
  return Value(graph::make_leaf(std::move(storage), 0, shape, dtype));
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

TEST(Coverage, CountsWhatRan) {
  dispatch::clear_coverage();
  dispatch::set_coverage(true);
  realize(graph::tanh(leaf({2}, {1, 2})) + 1.0);
  dispatch::set_coverage(false);
  realize(graph::tanh(leaf({2}, {1, 2})));
  EXPECT_EQ(dispatch::coverage().at("cpu").at("tanh"), 1);
  dispatch::clear_coverage();
  EXPECT_TRUE(dispatch::coverage().empty());
}

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

TEST(Errors, OneDeviceForEachGraph) {
  const Value here = leaf({1}, {1});
  const Value there = failing_leaf({1});
  const std::array roots{(here + 1.0).node(), (there + 1.0).node()};
  try {
    dispatch::realize(roots);
    FAIL() << "no error";
  } catch (const DeviceError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("cpu"), std::string::npos) << text;
    EXPECT_NE(text.find("vulkan:0"), std::string::npos) << text;
  }
  EXPECT_THROW(here + there, DeviceError);
}

TEST(Errors, UnsupportedOperatorsNameTheRemedy) {
  failing_backend().unsupported = "tan";
  const Value y = graph::tan(failing_leaf({1})) + 1.0;
  try {
    realize(y);
    FAIL() << "no error";
  } catch (const UnsupportedError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("[tan] is not available on vulkan:0"), std::string::npos) << text;
    EXPECT_NE(text.find("vkml.tensor(t.numpy(), device=vkml.cpu)"), std::string::npos) << text;
  }
  failing_backend().unsupported.clear();
  realize(y);
  EXPECT_TRUE(y->is_computed());
}

TEST(Errors, OutOfMemoryIsTriedOnceMoreAfterTrimming) {
  FailingBackend& backend = failing_backend();
  const Value y = failing_leaf({1, 2}) + 1.0;
  const int trims = backend.trims;
  backend.failing_allocations = 1;
  realize(y);
  EXPECT_TRUE(y->is_computed());
  EXPECT_EQ(backend.trims, trims + 1);
}

TEST(Errors, OutOfMemoryLeavesTheGraphToBeRealisedLater) {
  FailingBackend& backend = failing_backend();
  const Value y = failing_leaf({1, 2}) + 1.0;
  backend.failing_allocations = 2;
  EXPECT_THROW(realize(y), OutOfMemoryError);
  EXPECT_FALSE(y->is_computed());
  EXPECT_FALSE(y->is_bound());
  backend.failing_allocations = 0;
  realize(y);
  EXPECT_EQ(get_number(static_cast<std::byte*>(y->storage()->host()), DType::kF32, 1), 3);
}

TEST(Errors, AFailureWhileOverwritingPoisonsWhatWasOverwritten) {
  FailingBackend& backend = failing_backend();
  Value parameter = failing_leaf({1, 2});
  Value fresh = failing_leaf({3, 4}) * 2.0;
  backend.fails_in_the_middle = true;
  realize(fresh);  // nothing is overwritten: it is run again
  EXPECT_EQ(get_number(static_cast<std::byte*>(fresh->storage()->host()), DType::kF32, 1), 8);

  parameter = graph::assign(parameter, parameter + 1.0);
  Storage* block = parameter->source(0)->storage().get();
  backend.fails_in_the_middle = true;
  EXPECT_THROW(realize(parameter), OutOfMemoryError);
  EXPECT_THROW(block->wait(), OutOfMemoryError)
      << "a value between old and new is never handed out";
}

TEST(Errors, AFailureWhileOneAssignmentIsRestoredLeavesTheOthersAndTheFirstError) {
  FailingBackend& backend = failing_backend();
  const Value x = failing_leaf({1, 2});
  const Value bad = graph::gather(x, 0, failing_leaf({9, 0}, DType::kI32));
  const std::array<Value, 2> old{x + 1.0, x * 3.0};
  const std::array<NodePtr, 2> assigned{graph::assign(old[0], bad).node(),
                                        graph::assign(old[1], bad).node()};
  backend.failing_allocations_after_run = 2;
  EXPECT_THROW(dispatch::realize(assigned), IndexError);
  EXPECT_EQ(backend.failing_allocations, 0);
  ASSERT_TRUE(assigned[1]->is_computed());
  EXPECT_EQ(get_number(static_cast<std::byte*>(assigned[1]->storage()->host()), DType::kF32, 1), 6);
  EXPECT_FALSE(assigned[0]->is_computed());
  EXPECT_THROW(dispatch::realize(std::span(assigned).first(1)), IndexError);
  ASSERT_TRUE(assigned[0]->is_computed());
  EXPECT_EQ(get_number(static_cast<std::byte*>(assigned[0]->storage()->host()), DType::kF32, 1), 3);
}

TEST(Random, TheOrderOfReadingChangesNothing) {
  use_reference();
  const auto draw = [](std::uint32_t key) {
    return graph::random_normal(List{100}, {{key, 42}}, kCpu);
  };
  const Value first = draw(1);
  const Value second = draw(2);
  const Numbers second_read_first = numbers_of(second);
  const Numbers then_first = numbers_of(first);
  EXPECT_NE(then_first, second_read_first);
  EXPECT_EQ(numbers_of(draw(1)), then_first);
  EXPECT_EQ(numbers_of(draw(2)), second_read_first);
}

}  // namespace
