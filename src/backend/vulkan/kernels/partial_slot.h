// Partial results of reductions in scratch, where the parts of a long row leave them for the kernel
// that combines the parts. A slot is four words: the value (of 8 bytes: words 0 and 1; a
// compensated sum's rest in word 1), the position in word 2, one unused.
#pragma once

#include <cstdint>

#include "kernels/reduction.h"

namespace vkml::vulkan {

inline constexpr std::int64_t kPartialBytes = 16;

/// One slot, at a word of a buffer.
class PartialSlot {
 public:
  PartialSlot(Shader& shader, const Shader::Base& scratch, spirv::Value number);

  void store(const Reduction& reduction, const Partial& partial) const;
  Partial load(const Reduction& reduction) const;

 private:
  spirv::Value load_word(std::uint32_t word) const;
  void store_word(std::uint32_t word, spirv::Value value) const;

  Shader& shader_;
  const Shader::Base& scratch_;
  spirv::Value first_word_;
};

}  // namespace vkml::vulkan
