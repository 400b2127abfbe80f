#include "scratch.h"

#include <fmt/format.h>

#include <array>
#include <cstdlib>

#include "vkml/core/error.h"

namespace vkml::cpu {
namespace {

struct Block {
  std::byte* memory = nullptr;
  std::size_t bytes = 0;
  ~Block() { std::free(memory); }
};

}  // namespace

std::byte* thread_scratch(ScratchPurpose purpose, std::size_t bytes) {
  constexpr std::size_t kGranule = 4096;
  static thread_local std::array<Block, kScratchPurposes> blocks;
  Block& block = blocks[static_cast<std::size_t>(purpose)];
  if (bytes <= block.bytes) return block.memory;
  const std::size_t rounded = (bytes + kGranule - 1) / kGranule * kGranule;
  auto* memory = static_cast<std::byte*>(std::aligned_alloc(kGranule, rounded));
  if (memory == nullptr) {
    throw OutOfMemoryError(fmt::format("[cpu] cannot allocate {} bytes of scratch", bytes));
  }
  std::free(block.memory);
  block.memory = memory;
  block.bytes = rounded;
  return memory;
}

}  // namespace vkml::cpu
