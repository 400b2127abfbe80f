#include "kernels/partial_slot.h"

#include <array>

namespace vkml::vulkan {
namespace {

constexpr std::uint32_t kHighWord = 1;  // of a wide value
constexpr std::uint32_t kRestWord = 1;  // sums of f32 alone have a rest, and are not wide
constexpr std::uint32_t kPositionWord = 2;

bool is_wide(spirv::Type type) { return spirv::component_bytes(type.scalar) == 8; }

}  // namespace

PartialSlot::PartialSlot(Shader& shader, const Shader::Base& scratch, spirv::Value number)
    : shader_(shader),
      scratch_(scratch),
      first_word_(scratch.offset + number * static_cast<std::uint32_t>(kPartialBytes / 4)) {}

spirv::Value PartialSlot::load_word(std::uint32_t word) const {
  return shader_.load(scratch_, kWord, first_word_ + word);
}

void PartialSlot::store_word(std::uint32_t word, spirv::Value value) const {
  shader_.store(scratch_, kWord, first_word_ + word, value);
}

void PartialSlot::store(const Reduction& reduction, const Partial& partial) const {
  spirv::Builder& b = shader_.builder();
  if (is_wide(partial.value.type)) {
    const spirv::Value words = b.bitcast(partial.value, kWord2);
    store_word(0, b.component(words, 0));
    store_word(kHighWord, b.component(words, 1));
  } else {
    store_word(0, b.bitcast(partial.value, kWord));
  }
  if (reduction.is_compensated())
    store_word(kRestWord, partial.rest ? b.bitcast(partial.rest, kWord) : b.u32(0));
  if (reduction.has_position()) store_word(kPositionWord, partial.position);
}

Partial PartialSlot::load(const Reduction& reduction) const {
  spirv::Builder& b = shader_.builder();
  const spirv::Type type = reduction.type(1);
  spirv::Value bits = load_word(0);
  if (is_wide(type)) bits = b.compose(std::array<spirv::Value, 2>{bits, load_word(kHighWord)});
  Partial partial{b.bitcast(bits, type), {}, {}};
  if (reduction.is_compensated()) partial.rest = b.bitcast(load_word(kRestWord), type);
  if (reduction.has_position()) partial.position = load_word(kPositionWord);
  return partial;
}

}  // namespace vkml::vulkan
