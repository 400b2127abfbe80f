// Max and average pooling of images, with their gradients.
#pragma once

#include <memory>

#include "compiled_kernel.h"

namespace vkml::cpu {

std::unique_ptr<CompiledKernel> compile_pooling(const dispatch::Kernel& kernel,
                                                const dispatch::ExecutionGraph& graph);

}  // namespace vkml::cpu
