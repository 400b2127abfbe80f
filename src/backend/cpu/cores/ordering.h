// Kernels that walk along an axis in order: scans, stable sorting, searches in sorted values.
#pragma once

#include <memory>

#include "compiled_kernel.h"

namespace vkml::cpu {

std::unique_ptr<CompiledKernel> compile_scan(const dispatch::Kernel& kernel,
                                             const dispatch::ExecutionGraph& graph);
std::unique_ptr<CompiledKernel> compile_argsort(const dispatch::Kernel& kernel,
                                                const dispatch::ExecutionGraph& graph);
std::unique_ptr<CompiledKernel> compile_search_sorted(const dispatch::Kernel& kernel,
                                                      const dispatch::ExecutionGraph& graph);

}  // namespace vkml::cpu
