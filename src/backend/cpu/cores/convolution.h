// Convolution of images with its gradients.
#pragma once

#include <memory>

#include "compiled_kernel.h"

namespace vkml::cpu {

std::unique_ptr<CompiledKernel> compile_convolution(const dispatch::Kernel& kernel,
                                                    const dispatch::ExecutionGraph& graph);

}  // namespace vkml::cpu
