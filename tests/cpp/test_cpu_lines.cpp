// Kernels that walk along lines (scatters, scans, sorts, searches) on the CPU backend.
#include "cpu_kernel_check.h"
#include "kernel_line_cases.h"

namespace vkml::oracle {
namespace {

void expect_agreement(const std::vector<KernelCase>& cases) {
  for (const KernelCase& test : cases) {
    SCOPED_TRACE(test.name);
    check(test.graph, memory_of(test), std::max(test.relative, test.absolute));
  }
}

TEST(CpuLines, Scatters) { expect_agreement(scatter_cases()); }
TEST(CpuLines, Scans) { expect_agreement(scan_cases()); }
TEST(CpuLines, Sorts) { expect_agreement(sort_cases()); }
TEST(CpuLines, Searches) { expect_agreement(search_cases()); }

}  // namespace
}  // namespace vkml::oracle
