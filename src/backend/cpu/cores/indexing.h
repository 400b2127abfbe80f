// Gather and scatter: data movement by index, checked before anything is written.
#pragma once

#include <memory>

#include "compiled_kernel.h"

namespace vkml::cpu {

std::unique_ptr<CompiledKernel> compile_gather(const dispatch::Kernel& kernel,
                                               const dispatch::ExecutionGraph& graph);
std::unique_ptr<CompiledKernel> compile_scatter(const dispatch::Kernel& kernel,
                                                const dispatch::ExecutionGraph& graph);
std::int64_t gather_scratch_bytes(const dispatch::Kernel& kernel);

}  // namespace vkml::cpu
