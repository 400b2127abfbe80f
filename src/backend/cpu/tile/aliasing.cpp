#include "tile/aliasing.h"

namespace vkml::cpu {
namespace {

using dispatch::Buffer;
using dispatch::BufferKind;

bool overwrites(const Buffer& result, const Buffer& input) {
  return result.kind == BufferKind::kResult && input.kind == BufferKind::kInput &&
         result.donor == input.binding;
}

}  // namespace

bool may_overlap(const std::vector<Buffer>& buffers, int a, int b) {
  if (a == b) return true;
  const Buffer& first = buffers[static_cast<std::size_t>(a)];
  const Buffer& second = buffers[static_cast<std::size_t>(b)];
  if (overwrites(first, second) || overwrites(second, first)) return true;
  if (first.kind != BufferKind::kTemporary || second.kind != BufferKind::kTemporary) return false;
  return first.arena_offset < second.arena_offset + second.bytes &&
         second.arena_offset < first.arena_offset + first.bytes;
}

}  // namespace vkml::cpu
