// Matrix products and convolutions as on a machine without oneDNN. In a program of its own, since
// the library is looked for once.
#include <cstdlib>

namespace {
[[maybe_unused]] const int kWithout = setenv("VKML_ONEDNN", "0", 1);
}

#include "test_cpu_convolution.cpp"
#include "test_cpu_matmul.cpp"

namespace vkml::oracle {
namespace {

TEST(CpuWithoutOneDnn, TheDeviceSaysSo) {
  const std::vector<std::string> features = cpu_backend().info().features;
  ASSERT_EQ(features.size(), 2U);
  EXPECT_EQ(features[1].rfind("vkML's own", 0), 0U) << features[1];
}

}  // namespace
}  // namespace vkml::oracle
