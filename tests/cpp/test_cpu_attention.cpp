// Kernels of attention on the CPU backend.
#include "cpu_kernel_check.h"
#include "kernel_attention_cases.h"

namespace vkml::oracle {
namespace {

TEST(CpuAttention, AgreesWithItsDefinition) {
  for (const KernelCase& test : attention_cases()) {
    SCOPED_TRACE(test.name);
    check(test.graph, memory_of(test), std::max(test.relative, test.absolute));
  }
}

}  // namespace
}  // namespace vkml::oracle
