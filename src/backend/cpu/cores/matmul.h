// Batched matrix products with an epilogue.
#pragma once

#include <memory>

#include "compiled_kernel.h"

namespace vkml::cpu {

std::unique_ptr<CompiledKernel> compile_matmul(const dispatch::Kernel& kernel,
                                               const dispatch::ExecutionGraph& graph);

}  // namespace vkml::cpu
