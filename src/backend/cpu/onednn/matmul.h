// Matrix products by oneDNN.
#pragma once

#ifdef VKML_HAVE_ONEDNN

#include <memory>

#include "compiled_kernel.h"

namespace vkml::cpu::onednn {

/// Null where oneDNN is missing or has no fast product for this one.
std::unique_ptr<CompiledKernel> compile_matmul(const dispatch::Kernel& kernel,
                                               const dispatch::ExecutionGraph& graph);

/// Scratch of the kernel that compile_matmul makes; -1 where it makes none.
std::int64_t matmul_scratch_bytes(const dispatch::Kernel& kernel);

}  // namespace vkml::cpu::onednn

#endif
