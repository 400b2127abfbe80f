// Turns a kernel's scalar program into steps over tiles.
#pragma once

#include <memory>

#include "tile/region_program.h"
#include "vkml/dispatch/execution_graph.h"

namespace vkml::cpu {

/// The kernel must not use kCore (replace_core in region.h makes it a load). `buffers` tell which
/// operands may share memory. Throws UnsupportedError for an instruction without a loop.
std::unique_ptr<RegionProgram> compile_region(const dispatch::Kernel& kernel,
                                              const std::vector<dispatch::Buffer>& buffers);

}  // namespace vkml::cpu
