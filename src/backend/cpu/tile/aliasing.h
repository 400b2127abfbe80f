// Which operands of a kernel may lie in the same memory.
#pragma once

#include <vector>

#include "vkml/dispatch/execution_graph.h"

namespace vkml::cpu {

/// Whether buffers a and b may overlap: the same, a result and the input that it overwrites, or
/// temporaries whose bytes in the arena meet.
bool may_overlap(const std::vector<dispatch::Buffer>& buffers, int a, int b);

}  // namespace vkml::cpu
