// vkml::Profile: what it holds, and that one is open at a time.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "vkml/api/vkml.h"
#include "vkml/core/error.h"

namespace vkml {
namespace {

TEST(Profile, HoldsKernelsWithTheirTrafficAndOperations) {
  const Tensor a = ones({32, 48}).realize();
  const Tensor b = ones({48, 16}).realize();
  const auto combined = [&] { return a * 2.0 + a; };  // keeps no tensor for its product
  Profile profile;
  matmul(a, b).realize();
  for (int i = 0; i < 3; ++i) combined().realize();
  profile.close();
  EXPECT_EQ(profile.runs().size(), 4U);
  const std::vector<KernelSummary> kernels = profile.kernels(false);
  ASSERT_EQ(kernels.size(), 2U);
  const KernelSummary& product = kernels[kernels[0].cost.name == "matmul" ? 0 : 1];
  EXPECT_EQ(product.cost.name, "matmul");
  EXPECT_EQ(product.count, 1);
  EXPECT_EQ(product.cost.bytes_read, 4 * (32 * 48 + 48 * 16));
  EXPECT_EQ(product.cost.bytes_written, 4 * 32 * 16);
  EXPECT_EQ(product.cost.flops, 2.0 * 32 * 48 * 16);
  EXPECT_EQ(product.cost.product, DType::kF32);
  EXPECT_FALSE(product.share_of_roof.has_value());
  const KernelSummary& chain = kernels[kernels[0].cost.name == "matmul" ? 1 : 0];
  EXPECT_EQ(chain.count, 3);
  EXPECT_EQ(chain.cost.bytes_read, 4 * 32 * 48);
  EXPECT_EQ(chain.cost.flops, 2.0 * 32 * 48);
  EXPECT_FALSE(chain.cost.product.has_value());
  EXPECT_GE(chain.seconds, 3 * chain.shortest);
  EXPECT_DOUBLE_EQ(chain.bytes_per_second(), 3 * 2 * 4 * 32 * 48 / chain.seconds);
  const std::vector<HostSummary> host = profile.host();
  ASSERT_FALSE(host.empty());
  EXPECT_EQ(host.front().work, HostWork::kRealize);
  EXPECT_EQ(host.front().count, 4);
}

TEST(Profile, OneIsOpenAtATime) {
  {
    const Profile outer;
    EXPECT_THROW(Profile{}, ArgumentError);
    EXPECT_THROW(outer.runs(), ArgumentError);
  }
  Profile again;
  again.close();
  again.close();
  EXPECT_TRUE(again.runs().empty());
}

TEST(Profile, AnExceptionClosesIt) {
  try {
    const Profile profile;
    throw std::runtime_error("of the block");
  } catch (const std::runtime_error&) {
  }
  EXPECT_NO_THROW(Profile{});
}

TEST(Profile, WritesTraces) {
  Profile profile;
  (ones({8}) * 3.0).realize();
  profile.close();
  const std::string path = testing::TempDir() + "vkml_trace.json";
  profile.write_trace(path);
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  EXPECT_NE(text.str().find(R"("cat":"kernel")"), std::string::npos);
  EXPECT_NE(text.str().find(R"("name":"realize")"), std::string::npos);
  std::filesystem::remove(path);
  EXPECT_THROW(profile.write_trace(testing::TempDir() + "missing/folder/trace.json"), FileError);
}

}  // namespace
}  // namespace vkml
