// How Vulkan behaves at the edges of a process: no driver, exit with work in flight, fork, damaged
// caches. Each case runs in a process of its own.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "vkml/core/error.h"
#include "vulkan_plans.h"

#ifndef _WIN32
#include <sys/wait.h>
#include <unistd.h>

namespace vkml::vulkan {
namespace {

class VulkanProcess : public testing::Test {
 protected:
  VulkanProcess() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

dispatch::ExecutionGraph long_graph(std::int64_t count) {
  dispatch::ExecutionGraph graph;
  graph.input_count = 1;
  graph.result_count = 1;
  graph.buffers = {test::input_buffer(0), test::result_buffer(0, count * 4)};
  for (int i = 0; i < 30; ++i) graph.kernels.push_back(test::add_constant(0, 1, count, 1.0F));
  return graph;
}

[[noreturn]] void exit_with_work_in_flight() {
  if (test::backend() == nullptr) std::exit(0);
  constexpr std::int64_t kCount = 1 << 20;
  static const auto input = test::upload(std::vector<float>(kCount));
  static const auto result = test::backend()->allocator().allocate(kCount * 4);
  test::run(long_graph(kCount), {input}, {result});
  std::exit(0);
}

TEST_F(VulkanProcess, ExitsWithWorkInFlight) {
  EXPECT_EXIT(exit_with_work_in_flight(), testing::ExitedWithCode(0), "");
}

[[noreturn]] void exit_unused() {
  static_cast<void>(Instance::get().devices().size());
  std::exit(0);
}

TEST_F(VulkanProcess, ExitsAfterLookingForDevices) {
  EXPECT_EXIT(exit_unused(), testing::ExitedWithCode(0), "");
}

[[noreturn]] void use_without_driver() {
  setenv("VK_ICD_FILENAMES", "/nonexistent/driver.json", 1);
  setenv("VK_DRIVER_FILES", "/nonexistent/driver.json", 1);
  if (!Instance::get().devices().empty()) std::exit(1);
  try {
    VulkanBackend backend(0);
  } catch (const DeviceError& error) {
    const std::string message = error.what();
    std::exit(message.find("vkml.cpu") == std::string::npos ? 2 : 0);
  }
  std::exit(3);
}

TEST_F(VulkanProcess, WithoutADriverThereIsAClearError) {
  EXPECT_EXIT(use_without_driver(), testing::ExitedWithCode(0), "");
}

[[noreturn]] void fork_before_use() {
  // Vulkan has not been used: the child may.
  const pid_t child = fork();
  if (child == 0) {
    if (test::backend() == nullptr) _exit(0);
    const auto values = test::download<float>(*test::upload(std::vector<float>(10, 3.0F)), 10);
    _exit(values[9] == 3.0F ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  std::exit(WEXITSTATUS(status));
}

TEST_F(VulkanProcess, AForkedChildMayUseItFirst) {
  EXPECT_EXIT(fork_before_use(), testing::ExitedWithCode(0), "");
}

/// Compiles and runs in a backend of its own, which reads the cache first and writes it last.
std::vector<float> run_with_own_backend() {
  constexpr std::int64_t kCount = 1000;
  VulkanBackend backend(0);
  const std::vector<float> ones(kCount, 1.0F);
  std::vector<float> values(kCount);
  const auto input = backend.allocator().allocate(kCount * 4);
  const auto result = backend.allocator().allocate(kCount * 4);
  backend.upload(*input, 0, std::as_bytes(std::span(ones)));
  const auto executable = backend.compile(long_graph(kCount));
  dispatch::Bindings bindings;
  bindings.inputs = {{input.get(), 0}};
  bindings.results = {{result.get(), 0}};
  result->set_writer(backend.run(*executable, bindings));
  backend.download(*result, 0, std::as_writable_bytes(std::span(values)));
  return values;
}

TEST(VulkanCache, IsKeptAndRebuiltWhenDamaged) {
  if (Instance::get().devices().empty()) GTEST_SKIP() << Instance::get().reason();
  const std::string folder =
      (std::filesystem::temp_directory_path() / ("vkml_pipelines_" + std::to_string(::getpid())))
          .string();
  setenv("VKML_CACHE_DIR", folder.c_str(), 1);
  const PipelineCacheFile file(folder, Instance::get().devices()[0]);
  const std::vector<float> expected(1000, 2.0F);
  EXPECT_EQ(run_with_own_backend(), expected);
  ASSERT_TRUE(file.read());

  std::filesystem::resize_file(file.path(), std::filesystem::file_size(file.path()) - 3);
  EXPECT_EQ(run_with_own_backend(), expected);
  EXPECT_TRUE(file.read()) << "rebuilt";

  std::ofstream(file.path(), std::ios::binary) << "something else, longer than a header would be";
  EXPECT_EQ(run_with_own_backend(), expected);
  EXPECT_TRUE(file.read()) << "rebuilt";

  // Nowhere to write: nothing happens.
  setenv("VKML_CACHE_DIR", "/dev/null/vkml", 1);
  EXPECT_EQ(run_with_own_backend(), expected);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace vkml::vulkan
#endif
