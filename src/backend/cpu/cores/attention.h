// Attention and its gradients in tiles, with an epilogue.
#pragma once

#include <memory>

#include "compiled_kernel.h"

namespace vkml::cpu {

std::unique_ptr<CompiledKernel> compile_attention(const dispatch::Kernel& kernel,
                                                  const dispatch::ExecutionGraph& graph);

/// Scratch of the kernel: its result, where an epilogue follows, and packed operands.
std::int64_t attention_scratch_bytes(const dispatch::Kernel& kernel);

}  // namespace vkml::cpu
