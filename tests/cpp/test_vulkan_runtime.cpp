// The Vulkan runtime with plans built by hand: results, hazards, failures, memory, transfers.
#include <gtest/gtest.h>

#ifndef _WIN32
#include <sys/wait.h>
#include <unistd.h>
#endif

#include <numeric>
#include <thread>

#include "vkml/core/error.h"
#include "vulkan_plans.h"

namespace vkml::vulkan {
namespace {

using dispatch::ExecutionGraph;
using ops::Opcode;
using ops::ScalarType;
using test::download;
using test::upload;

std::vector<float> iota(std::size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 0.0F);
  return values;
}

StoragePtr allocate(std::size_t bytes) { return test::backend()->allocator().allocate(bytes); }

TEST(VulkanRuntime, DescribesItsDevice) {
  VKML_REQUIRE_VULKAN();
  const dispatch::DeviceInfo info = test::backend()->info();
  EXPECT_EQ(info.device, vulkan_device(0));
  EXPECT_FALSE(info.name.empty());
  EXPECT_FALSE(info.driver.empty());
  EXPECT_GT(info.memory_bytes, 0);
  EXPECT_FALSE(info.features.empty());
}

TEST(VulkanRuntime, MissingDeviceIsAnError) { EXPECT_THROW(VulkanBackend(97), DeviceError); }

TEST(VulkanRuntime, MapsElements) {
  VKML_REQUIRE_VULKAN();
  constexpr std::int64_t kCount = 1003;
  ExecutionGraph graph;
  graph.input_count = 2;
  graph.result_count = 1;
  graph.buffers = {test::input_buffer(0), test::input_buffer(1),
                   test::result_buffer(0, kCount * 4)};
  graph.kernels = {test::map(kCount, {test::row(0, kCount), test::row(1, kCount)},
                             {test::row(2, kCount)},
                             {test::load(0),
                              test::load(1),
                              {Opcode::kMul, ScalarType::kF32, 0, 1},
                              {Opcode::kAdd, ScalarType::kF32, 2, 0}},
                             {3})};
  const auto a = upload(iota(kCount));
  const auto b = upload(std::vector<float>(kCount, 2.0F));
  const auto result = allocate(kCount * 4);
  test::run(graph, {a, b}, {result});
  const auto values = download<float>(*result, kCount);
  for (std::size_t i = 0; i < kCount; ++i) ASSERT_EQ(values[i], 3.0F * static_cast<float>(i)) << i;
}

TEST(VulkanRuntime, ScalarsAreReadAtRunTime) {
  VKML_REQUIRE_VULKAN();
  constexpr std::int64_t kCount = 8;
  ExecutionGraph graph;
  graph.input_count = 1;
  graph.result_count = 1;
  graph.scalars = {ScalarType::kF32, ScalarType::kF32};
  graph.buffers = {test::input_buffer(0), test::result_buffer(0, kCount * 4)};
  graph.kernels = {test::map(kCount, {test::row(0, kCount)}, {test::row(1, kCount)},
                             {test::load(0),
                              {Opcode::kScalar, ScalarType::kF32, 0, 0, 0, 1},
                              {Opcode::kMul, ScalarType::kF32, 0, 1}},
                             {2})};
  const auto input = upload(iota(kCount));
  const auto executable = test::backend()->compile(graph);
  for (const float factor : {2.0F, -0.5F}) {
    const auto result = allocate(kCount * 4);
    dispatch::Bindings bindings;
    bindings.inputs = {{input.get(), 0}};
    bindings.results = {{result.get(), 0}};
    bindings.scalars = {99, std::bit_cast<std::uint32_t>(factor)};
    result->set_writer(test::backend()->run(*executable, bindings));
    EXPECT_EQ(download<float>(*result, kCount)[7], 7.0F * factor);
  }
}

TEST(VulkanRuntime, DependentKernelsRunInOrder) {
  VKML_REQUIRE_VULKAN();
  constexpr std::int64_t kCount = 300;
  constexpr int kSteps = 1000;
  ExecutionGraph graph;
  graph.input_count = 1;
  graph.result_count = 1;
  graph.buffers = {test::input_buffer(0), test::result_buffer(0, kCount * 4),
                   test::temporary_buffer(0, kCount * 4), test::temporary_buffer(2048, kCount * 4)};
  graph.arena_bytes = 4096;
  graph.arena_segment_bytes = 2048;  // each temporary in a block of its own
  for (int i = 0; i < kSteps; ++i) {
    const int from = i == 0 ? 0 : 2 + (i - 1) % 2;
    const int to = i == kSteps - 1 ? 1 : 2 + i % 2;
    graph.kernels.push_back(test::add_constant(from, to, kCount, 1.0F));
  }
  const auto input = upload(std::vector<float>(kCount, 0.0F));
  const auto result = allocate(kCount * 4);
  test::run(graph, {input}, {result});
  EXPECT_EQ(download<float>(*result, kCount), std::vector<float>(kCount, 1000.0F));
}

TEST(VulkanRuntime, SubmissionsRunInOrder) {
  VKML_REQUIRE_VULKAN();
  constexpr std::int64_t kCount = 5000;
  ExecutionGraph graph;
  graph.input_count = 1;
  graph.result_count = 1;
  graph.buffers = {test::input_buffer(0), test::result_buffer(0, kCount * 4)};
  graph.kernels = {test::add_constant(0, 1, kCount, 1.0F)};
  const auto executable = test::backend()->compile(graph);
  StoragePtr value = upload(std::vector<float>(kCount, 0.0F));
  // Each old value is freed while the device may still read it.
  for (int i = 0; i < 200; ++i) {
    StoragePtr next = allocate(kCount * 4);
    dispatch::Bindings bindings;
    bindings.inputs = {{value.get(), 0}};
    bindings.results = {{next.get(), 0}};
    next->set_writer(test::backend()->run(*executable, bindings));
    value = std::move(next);
  }
  EXPECT_EQ(download<float>(*value, kCount), std::vector<float>(kCount, 200.0F));
}

TEST(VulkanRuntime, WritesDonatedStorageInPlace) {
  VKML_REQUIRE_VULKAN();
  constexpr std::int64_t kCount = 64;
  ExecutionGraph graph;
  graph.input_count = 1;
  graph.result_count = 2;
  // The first kernel reads what the second overwrites.
  graph.buffers = {test::input_buffer(0), test::result_buffer(0, kCount * 4),
                   test::result_buffer(1, kCount * 4, 0)};
  graph.kernels = {test::add_constant(0, 1, kCount, 10.0F), test::add_constant(0, 2, kCount, 1.0F)};
  const auto value = upload(std::vector<float>(kCount, 1.0F));
  const auto other = allocate(kCount * 4);
  test::run(graph, {value}, {other, value});
  EXPECT_EQ(download<float>(*other, kCount), std::vector<float>(kCount, 11.0F));
  EXPECT_EQ(download<float>(*value, kCount), std::vector<float>(kCount, 2.0F));
}

TEST(VulkanRuntime, SlidesOverAnInput) {
  VKML_REQUIRE_VULKAN();
  constexpr std::int64_t kCount = 7;
  ExecutionGraph graph;
  graph.input_count = 1;
  graph.result_count = 1;
  graph.buffers = {test::input_buffer(0), test::result_buffer(0, kCount * 4)};
  graph.kernels = {test::add_constant(0, 1, kCount, 0.5F)};
  const auto executable = test::backend()->compile(graph);
  const auto input = upload(iota(100));
  for (const std::int64_t start : {0, 1, 2, 3, 50, 93}) {
    const auto result = allocate(kCount * 4);
    dispatch::Bindings bindings;
    bindings.inputs = {{input.get(), start * 4}};
    bindings.results = {{result.get(), 0}};
    result->set_writer(test::backend()->run(*executable, bindings));
    EXPECT_EQ(download<float>(*result, kCount)[6], static_cast<float>(start + 6) + 0.5F);
  }
}

TEST(VulkanRuntime, ReversedAndStridedInputs) {
  VKML_REQUIRE_VULKAN();
  constexpr std::int64_t kCount = 6;
  ExecutionGraph graph;
  graph.input_count = 1;
  graph.result_count = 1;
  graph.buffers = {test::input_buffer(0), test::result_buffer(0, kCount * 4)};
  dispatch::Kernel kernel = test::add_constant(0, 1, kCount, 0.0F);
  kernel.loads[0].strides[3] = -2;
  graph.kernels = {kernel};
  const auto executable = test::backend()->compile(graph);
  const auto input = upload(iota(100));
  const auto result = allocate(kCount * 4);
  dispatch::Bindings bindings;
  bindings.inputs = {{input.get(), 99 * 4}};
  bindings.results = {{result.get(), 0}};
  result->set_writer(test::backend()->run(*executable, bindings));
  EXPECT_EQ(download<float>(*result, kCount), (std::vector<float>{99, 97, 95, 93, 91, 89}));
}

/// result 0 = table[index], with the index checked against the extent; result 1 = input 1 + 1.
ExecutionGraph checked_graph(std::int64_t count, std::int64_t extent) {
  ExecutionGraph graph;
  graph.input_count = 2;
  graph.result_count = 2;
  graph.sites = {{"gather", extent}};
  graph.buffers = {test::input_buffer(0), test::input_buffer(1), test::result_buffer(0, count * 4),
                   test::result_buffer(1, count * 4, 1)};
  graph.kernels = {
      test::map(count, {test::row(0, count, 0, DType::kI32)}, {test::row(2, count, 0, DType::kI32)},
                {test::load(0, ScalarType::kI32),
                 {Opcode::kConstant, ScalarType::kI32, 0, 0, 0, extent},
                 {Opcode::kCheckIndex, ScalarType::kI32, 0, 1, 0, 0}},
                {2}),
      test::add_constant(1, 3, count, 1.0F)};
  return graph;
}

template <typename Function>
std::string index_error_of(Function function) {
  try {
    function();
  } catch (const IndexError& error) {
    return error.what();
  }
  return "no IndexError";
}

TEST(VulkanRuntime, BadIndexRaisesAndLeavesStorageAlone) {
  VKML_REQUIRE_VULKAN();
  constexpr std::int64_t kCount = 32;
  const ExecutionGraph graph = checked_graph(kCount, 10);
  std::vector<std::int32_t> indices(kCount, 3);
  const auto parameter = upload(std::vector<float>(kCount, 5.0F));
  const auto result = allocate(kCount * 4);

  test::run(graph, {upload(indices), parameter}, {result, parameter});
  EXPECT_EQ(download<std::int32_t>(*result, kCount), indices);
  EXPECT_EQ(download<float>(*parameter, kCount), std::vector<float>(kCount, 6.0F));

  indices[17] = 12;
  const auto failed = test::run(graph, {upload(indices), parameter}, {result, parameter});
  const std::string expected = "[gather] index 12 is out of bounds for an axis of extent 10";
  EXPECT_EQ(index_error_of([&] { failed->wait(); }).substr(0, expected.size()), expected);
  // Again, and through the storage.
  EXPECT_THROW(failed->wait(), IndexError);
  EXPECT_THROW(download<std::int32_t>(*result, kCount), IndexError);
  parameter->set_writer(nullptr);
  EXPECT_EQ(download<float>(*parameter, kCount), std::vector<float>(kCount, 6.0F));
}

TEST(VulkanRuntime, WorkOnAFailedResultFailsAsWell) {
  VKML_REQUIRE_VULKAN();
  constexpr std::int64_t kCount = 32;
  std::vector<std::int32_t> indices(kCount, -1);
  const auto first = allocate(kCount * 4);
  const auto parameter = upload(std::vector<float>(kCount, 5.0F));
  test::run(checked_graph(kCount, 10), {upload(indices), parameter}, {first, parameter});

  // Read before anybody has looked at the first submission.
  ExecutionGraph graph;
  graph.input_count = 1;
  graph.result_count = 1;
  graph.buffers = {test::input_buffer(0), test::result_buffer(0, kCount * 4)};
  graph.kernels = {test::add_constant(0, 1, kCount, 1.0F)};
  const auto second = allocate(kCount * 4);
  std::shared_ptr<Submission> submission;
  std::string message = index_error_of([&] {
    submission = test::run(graph, {parameter}, {second});
    submission->wait();
  });
  EXPECT_NE(message.find("[gather] index -1"), std::string::npos) << message;

  // A submission that has nothing to do with it succeeds.
  const auto other = allocate(kCount * 4);
  test::run(graph, {upload(std::vector<float>(kCount, 1.0F))}, {other});
  EXPECT_EQ(download<float>(*other, kCount), std::vector<float>(kCount, 2.0F));
}

/// Runs an update of a parameter right behind a submission that fails and whose result it reads;
/// `finish` lets the first submission end before, without anybody looking at its status.
void expect_update_fails(bool finish) {
  // Long enough that the second submission is handed over while the first still runs.
  constexpr std::int64_t kCount = 1 << 18;
  ExecutionGraph slow = checked_graph(kCount, 10);
  for (int i = 0; i < 20; ++i) slow.kernels.push_back(slow.kernels[1]);
  std::vector<std::int32_t> indices(kCount, 3);
  indices.back() = 10;
  const auto first = allocate(kCount * 4);
  const auto between = upload(std::vector<float>(kCount, 0.0F));
  const auto parameter = upload(std::vector<float>(kCount, 5.0F));
  const auto index_storage = upload(indices);
  const auto good_indices = upload(std::vector<std::int32_t>(kCount, 3));
  const auto second = allocate(kCount * 4);

  ExecutionGraph update = checked_graph(kCount, 100);
  update.input_count = 3;
  update.buffers.push_back(test::input_buffer(2));
  update.kernels.push_back(test::add_constant(4, 2, kCount, 0.0F));
  const auto executable = test::backend()->compile(update);
  dispatch::Bindings bindings;
  bindings.inputs = {{good_indices.get(), 0}, {parameter.get(), 0}, {between.get(), 0}};
  bindings.results = {{second.get(), 0}, {parameter.get(), 0}};

  test::run(slow, {index_storage, between}, {first, between});
  Queue& queue = test::backend()->context().queue();
  if (finish) queue.wait(queue.submitted());
  const std::string message =
      index_error_of([&] { test::backend()->run(*executable, bindings)->wait(); });
  EXPECT_NE(message.find("[gather] index 10 is out of bounds for an axis of extent 10"),
            std::string::npos)
      << message;
  EXPECT_EQ(download<float>(*parameter, kCount), std::vector<float>(kCount, 5.0F));
}

TEST(VulkanRuntime, FailureReachesWorkSubmittedBehindIt) {
  VKML_REQUIRE_VULKAN();
  expect_update_fails(false);
}

TEST(VulkanRuntime, FailureThatNobodySawReachesLaterWork) {
  VKML_REQUIRE_VULKAN();
  expect_update_fails(true);
}

TEST(VulkanRuntime, FailureKeepsLaterUpdatesInPlaceFromHappening) {
  VKML_REQUIRE_VULKAN();
  // As in training: gradients from a submission with a bad index, then an update that checks
  // nothing.
  constexpr std::int64_t kCount = 1 << 18;
  ExecutionGraph slow = checked_graph(kCount, 10);
  for (int i = 0; i < 20; ++i) slow.kernels.push_back(slow.kernels[1]);
  ExecutionGraph update;
  update.input_count = 2;
  update.result_count = 1;
  update.buffers = {test::input_buffer(0), test::input_buffer(1),
                    test::result_buffer(0, kCount * 4, 0)};
  update.kernels = {
      test::map(kCount, {test::row(0, kCount), test::row(1, kCount)}, {test::row(2, kCount)},
                {test::load(0), test::load(1), {Opcode::kSub, ScalarType::kF32, 0, 1}}, {2})};
  const auto executable = test::backend()->compile(update);
  std::vector<std::int32_t> indices(kCount, 3);
  indices.front() = -1;
  const auto index_storage = upload(indices);
  const auto first = allocate(kCount * 4);
  const auto gradient = upload(std::vector<float>(kCount, 1.0F));
  const auto parameter = upload(std::vector<float>(kCount, 5.0F));
  test::run(slow, {index_storage, gradient}, {first, gradient});
  dispatch::Bindings bindings;
  bindings.inputs = {{parameter.get(), 0}, {gradient.get(), 0}};
  bindings.results = {{parameter.get(), 0}};
  EXPECT_NE(index_error_of([&] {
              test::backend()->run(*executable, bindings)->wait();
            }).find("[gather] index -1"),
            std::string::npos);
  EXPECT_EQ(download<float>(*parameter, kCount), std::vector<float>(kCount, 5.0F));
}

TEST(VulkanRuntime, ManyRunsKeepMemoryFlat) {
  VKML_REQUIRE_VULKAN();
  constexpr std::int64_t kCount = 10000;
  ExecutionGraph graph;
  graph.input_count = 1;
  graph.result_count = 1;
  graph.buffers = {test::input_buffer(0), test::result_buffer(0, kCount * 4)};
  graph.kernels = {test::add_constant(0, 1, kCount, 1.0F)};
  const auto executable = test::backend()->compile(graph);
  StoragePtr value = upload(std::vector<float>(kCount, 0.0F));
  std::int64_t after_warming = 0;
  for (int i = 0; i < 300; ++i) {
    StoragePtr next = allocate(kCount * 4);
    dispatch::Bindings bindings;
    bindings.inputs = {{value.get(), 0}};
    bindings.results = {{next.get(), 0}};
    next->set_writer(test::backend()->run(*executable, bindings));
    value = std::move(next);
    if (i == 10) after_warming = test::backend()->allocated_bytes();
  }
  EXPECT_EQ(test::backend()->allocated_bytes(), after_warming);
}

TEST(VulkanRuntime, UploadsIntoMemoryInUse) {
  VKML_REQUIRE_VULKAN();
  constexpr std::int64_t kCount = 200000;
  ExecutionGraph graph;
  graph.input_count = 1;
  graph.result_count = 1;
  graph.buffers = {test::input_buffer(0), test::result_buffer(0, kCount * 4)};
  graph.kernels = {test::add_constant(0, 1, kCount, 1.0F)};
  const auto executable = test::backend()->compile(graph);
  const auto input = allocate(kCount * 4);
  std::vector<StoragePtr> results;
  for (int i = 0; i < 8; ++i) {
    const std::vector<float> values(kCount, static_cast<float>(i));
    test::backend()->upload(*input, 0, std::as_bytes(std::span(values)));
    results.push_back(allocate(kCount * 4));
    dispatch::Bindings bindings;
    bindings.inputs = {{input.get(), 0}};
    bindings.results = {{results.back().get(), 0}};
    results.back()->set_writer(test::backend()->run(*executable, bindings));
  }
  for (std::size_t i = 0; i < results.size(); ++i) {
    EXPECT_EQ(download<float>(*results[i], kCount),
              std::vector<float>(kCount, static_cast<float>(i + 1)));
  }
}

TEST(VulkanRuntime, TransfersAnySizeAndOffset) {
  VKML_REQUIRE_VULKAN();
  for (const std::size_t bytes :
       {std::size_t{1}, std::size_t{4097}, std::size_t{9'000'001}, std::size_t{40'000'003}}) {
    std::vector<std::uint8_t> values(bytes);
    for (std::size_t i = 0; i < bytes; ++i) values[i] = static_cast<std::uint8_t>(i * 7 + i / 251);
    const auto storage = allocate(bytes + 5);
    test::backend()->upload(*storage, 5, std::as_bytes(std::span(values)));
    std::vector<std::uint8_t> back(bytes);
    test::backend()->download(*storage, 5, std::as_writable_bytes(std::span(back)));
    EXPECT_EQ(back, values) << bytes;
  }
}

TEST(VulkanRuntime, StagingMemoryIsVisibleToTheHost) {
  VKML_REQUIRE_VULKAN();
  const auto storage = test::backend()->staging_allocator().allocate(100);
  ASSERT_NE(storage->host(), nullptr);
  static_cast<std::uint8_t*>(storage->host())[99] = 42;
  EXPECT_EQ(download<std::uint8_t>(*storage, 100)[99], 42);
}

TEST(VulkanRuntime, TooLargeABlockNamesTheLimit) {
  VKML_REQUIRE_VULKAN();
  try {
    allocate(std::size_t{1} << 50);
    FAIL() << "2^50 bytes were allocated";
  } catch (const OutOfMemoryError& error) {
    EXPECT_NE(std::string(error.what()).find("maxMemoryAllocationSize"), std::string::npos)
        << error.what();
  }
  EXPECT_EQ(download<float>(*upload(iota(5)), 5), iota(5));
}

TEST(VulkanRuntime, TrimGivesMemoryBack) {
  VKML_REQUIRE_VULKAN();
  const auto kept = upload(iota(5));
  test::backend()->trim();
  const std::int64_t before = test::backend()->allocated_bytes();
  allocate(64u << 20).reset();
  EXPECT_GE(test::backend()->allocated_bytes(), before + (64 << 20));
  test::backend()->trim();
  EXPECT_EQ(test::backend()->allocated_bytes(), before);
  EXPECT_EQ(download<float>(*kept, 5), iota(5));
}

TEST(VulkanRuntime, StoragesAreFreedFromAnyThread) {
  VKML_REQUIRE_VULKAN();
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 8; ++t) {
    threads.emplace_back([t] {
      for (std::size_t i = 0; i < 200; ++i) {
        const std::vector<std::uint32_t> values(t * 100 + i + 1, static_cast<std::uint32_t>(t));
        const auto storage = upload(values);
        ASSERT_EQ(download<std::uint32_t>(*storage, values.size()), values);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

#ifndef _WIN32
TEST(VulkanRuntime, ForkedChildGetsAClearError) {
  VKML_REQUIRE_VULKAN();
  StoragePtr storage = upload(iota(5));
  const pid_t child = fork();
  if (child == 0) {
    int status = 1;
    try {
      download<float>(*storage, 5);
    } catch (const DeviceError& error) {
      status = std::string(error.what()).find("fork") == std::string::npos ? 2 : 0;
    }
    storage.reset();
    _exit(status);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(download<float>(*storage, 5), iota(5));
}
#endif

TEST(VulkanRuntime, ASecondBackendOfADeviceComesAndGoes) {
  VKML_REQUIRE_VULKAN();
  StoragePtr survivor;
  {
    VulkanBackend other(0);
    survivor = other.allocator().allocate(1000);
    EXPECT_GE(other.allocated_bytes(), 1000);
  }
  EXPECT_EQ(survivor->bytes(), 1000U);
  survivor.reset();
  // The first backend works as before.
  EXPECT_EQ(download<float>(*upload(iota(5)), 5), iota(5));
}

}  // namespace
}  // namespace vkml::vulkan

#include "validation_end.h"
