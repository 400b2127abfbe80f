// The numbered stream of random draws.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "vkml/ops/functions.h"

namespace vkml {
/// Throws in the name of `op` unless a draw of floats can have this shape and dtype.
void check_draw(const char* op, std::span<const std::int64_t> extents, DType dtype);

/// The key of the next draw: a function of the seed and of how many draws came before; or what this
/// thread's DrawTape says.
graph::RandomKey next_random_key();
/// The key of any draw of the stream.
graph::RandomKey random_key(std::uint64_t draw);

/// While it lives, this thread's draws are numbered from 0 and leave the stream alone: those of a
/// function that is recorded, which get their keys when it is replayed.
class PrivateDraws {
 public:
  PrivateDraws();
  ~PrivateDraws();
  PrivateDraws(const PrivateDraws&) = delete;
  PrivateDraws& operator=(const PrivateDraws&) = delete;
  /// How many there were.
  std::uint64_t count() const;

 private:
  std::size_t depth_;
};
}  // namespace vkml
