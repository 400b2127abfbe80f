// Pipelines: shared between executables, gone with them, and none left behind by a failure.
#include <gtest/gtest.h>

#include "vkml/core/error.h"
#include "vulkan_plans.h"

namespace vkml::vulkan {
namespace {

constexpr std::int64_t kCount = 100;

/// result = input + value; each value is a shader of its own.
dispatch::ExecutionGraph adding(float value) {
  dispatch::ExecutionGraph graph;
  graph.input_count = 1;
  graph.result_count = 1;
  graph.buffers = {test::input_buffer(0), test::result_buffer(0, kCount * 4)};
  graph.kernels = {test::add_constant(0, 1, kCount, value)};
  return graph;
}

std::shared_ptr<const ShaderCode> shader_adding(float value) {
  DeviceTraits traits = test::backend()->context().profile().traits;
  traits.use_addresses = false;
  const dispatch::ExecutionGraph graph = adding(value);
  return generate(graph.kernels[0], graph, traits)[0].code;
}

TEST(VulkanPipelines, AFailedRequestLeavesNothingBehind) {
  VKML_REQUIRE_VULKAN();
  Pipelines& pipelines = test::backend()->pipelines();
  const auto good = shader_adding(0.125F);
  const auto too_large = std::make_shared<ShaderCode>(*good);
  too_large->buffer_count = test::backend()->context().profile().limits.max_stage_buffers + 1;
  const std::size_t before = pipelines.count();
  const std::array<Pipelines::Request, 2> both{{{good, false}, {too_large, false}}};
  EXPECT_THROW(pipelines.get(both), Error);
  EXPECT_EQ(pipelines.count(), before);
  EXPECT_NE(pipelines.get(std::span(both).first(1))[0]->handle, VK_NULL_HANDLE);
}

TEST(VulkanPipelines, GoWithTheLastExecutable) {
  VKML_REQUIRE_VULKAN();
  Pipelines& pipelines = test::backend()->pipelines();
  const std::size_t before = pipelines.count();
  auto first = test::backend()->compile(adding(0.25F));
  auto second = test::backend()->compile(adding(0.25F));
  EXPECT_EQ(pipelines.count(), before + 1);
  first.reset();
  EXPECT_EQ(pipelines.count(), before + 1);
  second.reset();
  EXPECT_EQ(pipelines.count(), before);
}

TEST(VulkanPipelines, OutliveTheWorkThatWasSubmitted) {
  VKML_REQUIRE_VULKAN();
  StoragePtr value = test::upload(std::vector<float>(kCount, 0.0F));
  for (int i = 1; i <= 50; ++i) {
    StoragePtr next = test::backend()->allocator().allocate(kCount * 4);
    test::run(adding(static_cast<float>(i)), {value}, {next});  // drops the executable
    value = std::move(next);
  }
  EXPECT_EQ(test::download<float>(*value, kCount), std::vector<float>(kCount, 1275.0F));
}

}  // namespace
}  // namespace vkml::vulkan
