// How a kernel divides its scratch.
#pragma once

#include <cstdint>

namespace vkml::cpu {

class ScratchLayout {
 public:
  /// The first `reserved` bytes are taken.
  explicit ScratchLayout(std::int64_t reserved) { take(reserved); }
  /// The offset of a part of `bytes` bytes, aligned to 64.
  std::int64_t take(std::int64_t bytes) {
    const std::int64_t offset = total_;
    total_ += (bytes + 63) / 64 * 64;
    return offset;
  }
  std::int64_t total() const { return total_; }

 private:
  std::int64_t total_ = 0;
};

}  // namespace vkml::cpu
