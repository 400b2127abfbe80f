#include "rollback.h"

#include <algorithm>
#include <cstring>

namespace vkml::cpu {
namespace {

using dispatch::ExecutionGraph;
using dispatch::Kernel;
using dispatch::KernelKind;

bool checks_in_program(const Kernel& kernel) {
  const auto& code = kernel.program.code;
  return std::any_of(code.begin(), code.end(),
                     [](const auto& i) { return i.op == ops::Opcode::kCheckIndex; });
}

// Gather and scatter check all indices before they write; a program checks as it goes.
bool may_fail(const Kernel& kernel) {
  return kernel.kind == KernelKind::kGather || kernel.kind == KernelKind::kScatter ||
         checks_in_program(kernel);
}

}  // namespace

Rollback::Rollback(const ExecutionGraph& graph) {
  std::size_t writers = 0;  // kernels whose writes a later failure would leave behind
  for (std::size_t i = 0; i < graph.kernels.size(); ++i) {
    if (may_fail(graph.kernels[i])) writers = checks_in_program(graph.kernels[i]) ? i + 1 : i;
  }
  std::vector<bool> is_kept(graph.buffers.size(), false);
  for (std::size_t i = 0; i < writers; ++i) {
    for (const dispatch::Operand& store : graph.kernels[i].stores) {
      const auto index = static_cast<std::size_t>(store.buffer);
      const dispatch::Buffer& buffer = graph.buffers[index];
      if (buffer.kind != dispatch::BufferKind::kResult || buffer.donor < 0 || is_kept[index]) {
        continue;
      }
      is_kept[index] = true;
      blocks_.push_back({index, static_cast<std::size_t>(buffer.bytes), nullptr});
    }
  }
}

void Rollback::save(const std::vector<std::byte*>& addresses, Allocator& allocator) {
  for (Block& block : blocks_) {
    block.copy = allocator.allocate(block.bytes);
    std::memcpy(block.copy->host(), addresses[block.buffer], block.bytes);
  }
}

void Rollback::restore(const std::vector<std::byte*>& addresses) const {
  for (const Block& block : blocks_) {
    std::memcpy(addresses[block.buffer], block.copy->host(), block.bytes);
  }
}

void Rollback::discard() {
  for (Block& block : blocks_) block.copy.reset();
}

}  // namespace vkml::cpu
