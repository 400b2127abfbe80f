// What a KernelTimer is told of Vulkan plans: one time for each kernel, in order, told once.
#include <gtest/gtest.h>

#include <cmath>

#include "backend/vulkan/kernel_timing.h"
#include "vkml/core/error.h"
#include "vulkan_plans.h"

namespace vkml::vulkan {
namespace {

using dispatch::ExecutionGraph;
using dispatch::KernelTime;
using dispatch::TimeSource;

class Listener final : public dispatch::KernelTimer {
 public:
  void finished(std::span<const KernelTime> kernels, TimeSource from) noexcept override {
    ++calls;
    times.assign(kernels.begin(), kernels.end());
    source = from;
  }
  int calls = 0;
  std::vector<KernelTime> times;
  TimeSource source = TimeSource::kDevice;
};

/// Input + 1 -> temporary + 1 -> ... -> result, with a kernel over no elements in the middle.
ExecutionGraph chain(std::int64_t count, int kernels) {
  ExecutionGraph graph;
  graph.input_count = 1;
  graph.result_count = 1;
  graph.arena_bytes = 2 * count * 4;
  graph.buffers = {test::input_buffer(0), test::temporary_buffer(0, count * 4),
                   test::temporary_buffer(count * 4, count * 4), test::result_buffer(0, count * 4)};
  for (int i = 0; i < kernels; ++i) {
    const int from = i == 0 ? 0 : 1 + i % 2;
    const int to = i + 1 == kernels ? 3 : 1 + (i + 1) % 2;
    graph.kernels.push_back(test::add_constant(from, to, count, 1.0F));
    if (i == kernels / 2) graph.kernels.push_back(test::add_constant(from, to, 0, 1.0F));
  }
  return graph;
}

class VulkanTiming : public testing::Test {
 protected:
  void SetUp() override { VKML_REQUIRE_VULKAN(); }

  /// Runs the chain on `count` zeros, and checks its result.
  void run(std::int64_t count, int kernels, std::shared_ptr<Listener> listener) {
    const auto input = test::upload(std::vector<float>(static_cast<std::size_t>(count)));
    const auto result = test::backend()->allocator().allocate(static_cast<std::size_t>(count) * 4);
    dispatch::Bindings bindings;
    bindings.inputs = {{input.get(), 0}};
    bindings.results = {{result.get(), 0}};
    bindings.timer = std::move(listener);
    if (!executable_) executable_ = test::backend()->compile(chain(count, kernels));
    result->set_writer(test::backend()->run(*executable_, bindings));
    const auto values = test::download<float>(*result, static_cast<std::size_t>(count));
    ASSERT_EQ(values.back(), static_cast<float>(kernels));
  }

  std::shared_ptr<dispatch::Executable> executable_;
};

TEST_F(VulkanTiming, EachKernelHasATimeOfItsOwn) {
  const auto listener = std::make_shared<Listener>();
  const std::int64_t before = dispatch::steady_now();
  run(5000, 6, listener);
  test::backend()->synchronize();
  const std::int64_t after = dispatch::steady_now();
  ASSERT_EQ(listener->calls, 1);
  ASSERT_EQ(listener->times.size(), 7U);
  constexpr std::int64_t kClocksAgree = 50'000'000;
  std::int64_t last = before - kClocksAgree;
  for (std::size_t i = 0; i < listener->times.size(); ++i) {
    const KernelTime& time = listener->times[i];
    EXPECT_GE(time.begin, last) << i;
    if (i == 4) {
      EXPECT_EQ(time.end, time.begin) << "a kernel over no elements";
    } else {
      EXPECT_GT(time.end, time.begin) << i;
    }
    last = time.end;
  }
  EXPECT_LE(last, after + kClocksAgree);
  const bool has_timestamps = test::backend()->context().profile().timestamp_bits > 0;
  EXPECT_EQ(listener->source, has_timestamps ? TimeSource::kDevice : TimeSource::kHost);
}

TEST_F(VulkanTiming, KeptCommandsAreNotUsed) {
  for (int i = 0; i < 5; ++i) run(100, 3, nullptr);
  const auto listener = std::make_shared<Listener>();
  for (int i = 0; i < 3; ++i) run(100, 3, listener);
  for (int i = 0; i < 3; ++i) run(100, 3, nullptr);
  test::backend()->synchronize();
  EXPECT_EQ(listener->calls, 3);
  EXPECT_EQ(listener->times.size(), 4U);
}

TEST_F(VulkanTiming, RunsInFlightAreToldWhenTheDeviceIsWaitedFor) {
  const auto input = test::upload(std::vector<float>(64));
  const auto result = test::backend()->allocator().allocate(256);
  const auto executable = test::backend()->compile(chain(64, 2));
  dispatch::Bindings bindings;
  bindings.inputs = {{input.get(), 0}};
  bindings.results = {{result.get(), 0}};
  std::vector<std::shared_ptr<Listener>> listeners;
  for (int i = 0; i < 5; ++i) {
    listeners.push_back(std::make_shared<Listener>());
    bindings.timer = listeners.back();
    result->set_writer(test::backend()->run(*executable, bindings));
  }
  test::backend()->synchronize();
  for (const auto& listener : listeners) EXPECT_EQ(listener->calls, 1);
}

TEST(DeviceClock, TimestampsThatWrapAreTheNearestToNow) {
  constexpr std::int64_t kKnown = 1'000'000'000'000;
  // 36 bits of a nanosecond wrap after 68.7 s.
  constexpr std::uint64_t kWrap = std::uint64_t{1} << 36;
  const auto at = [&](std::int64_t later, std::int64_t now_later) {
    const std::uint64_t known_ticks = kWrap - 500;
    const auto ticks = (known_ticks + static_cast<std::uint64_t>(later)) % kWrap;
    return host_time_of(ticks, known_ticks, kKnown, kKnown + now_later, 36, 1.0) - kKnown;
  };
  EXPECT_EQ(at(300, 1000), 300);
  EXPECT_EQ(at(700, 1000), 700);
  EXPECT_EQ(at(200'000'000'000, 201'000'000'000), 200'000'000'000);
  // Before the clocks were compared.
  EXPECT_EQ(host_time_of(kWrap - 600, kWrap - 500, kKnown, kKnown + 1000, 36, 1.0) - kKnown, -100);
}

TEST(DeviceClock, TicksLastAsLongAsThePeriodSays) {
  EXPECT_EQ(host_time_of(1120, 1000, 5000, 20000, 64, 52.0833), 5000 + 6250);
  EXPECT_EQ(host_time_of(10, 0, 0, 20, 64, 1.0), 10);
}

}  // namespace
}  // namespace vkml::vulkan

#include "validation_end.h"
