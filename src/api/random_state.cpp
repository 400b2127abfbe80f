#include "random_state.h"

#include <fmt/format.h>

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "slot.h"
#include "vkml/api/context.h"
#include "vkml/api/random.h"
#include "vkml/core/error.h"

namespace vkml {
namespace {

struct Stream {
  std::mutex mutex;
  std::uint64_t seed = 0x853c49e6748fea9b;
  std::uint64_t draws = 0;
};
Stream& stream() {
  static Stream instance;
  return instance;
}

/// SplitMix64's finaliser (Steele, Lea and Flood, OOPSLA 2014).
std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

graph::RandomKey key_of(std::uint64_t seed, std::uint64_t draw) {
  const std::uint64_t word =
      mix(mix(seed + 0x9e3779b97f4a7c15u) + (draw + 1) * 0x9e3779b97f4a7c15u);
  return {{static_cast<std::uint32_t>(word), static_cast<std::uint32_t>(word >> 32)}, draw};
}

struct Drawing {
  enum class Kind { kNote, kRepeat, kPrivate };
  Kind kind = Kind::kNote;
  std::shared_ptr<DrawTape> tape;  // null of private draws
  std::size_t next = 0;
};
/// The innermost one last.
thread_local std::vector<Drawing> drawing;

graph::RandomKey draw_from_stream() {
  Stream& s = stream();
  const std::scoped_lock lock(s.mutex);
  return key_of(s.seed, s.draws++);
}

/// From the innermost of the first `depth`: a tape that notes asks the next one out.
graph::RandomKey draw(std::size_t depth) {
  if (depth == 0) return draw_from_stream();
  Drawing& innermost = drawing[depth - 1];
  if (innermost.kind == Drawing::Kind::kPrivate) return random_key(innermost.next++);
  if (innermost.kind == Drawing::Kind::kNote) {
    const graph::RandomKey key = draw(depth - 1);
    innermost.tape->draws.push_back(key.draw);
    return key;
  }
  if (innermost.next == innermost.tape->draws.size()) {
    throw AutogradError(
        "[checkpoint] the function drew more random numbers when it was called again. It must do "
        "the same each time");
  }
  return random_key(innermost.tape->draws[innermost.next++]);
}

}  // namespace

graph::RandomKey random_key(std::uint64_t draw) {
  Stream& s = stream();
  const std::scoped_lock lock(s.mutex);
  return key_of(s.seed, draw);
}

void check_draw(const char* op, std::span<const std::int64_t> extents, DType dtype) {
  const Shape possible(extents, dtype, op);
  if (is_floating(dtype)) return;
  throw DTypeError(fmt::format("[{}] draws floats, not {}. Use randint, or {}(...).to({})", op,
                               name_of(dtype), op, name_of(dtype)));
}

graph::RandomKey next_random_key() { return draw(drawing.size()); }

void begin_draws(std::shared_ptr<DrawTape> tape, bool replay) {
  drawing.push_back({replay ? Drawing::Kind::kRepeat : Drawing::Kind::kNote, std::move(tape), 0});
}
void end_draws() { drawing.pop_back(); }

PrivateDraws::PrivateDraws() : depth_(drawing.size()) {
  drawing.push_back({Drawing::Kind::kPrivate, nullptr, 0});
}
PrivateDraws::~PrivateDraws() { drawing.resize(depth_); }
std::uint64_t PrivateDraws::count() const { return drawing[depth_].next; }

void manual_seed(std::uint64_t seed) {
  if (RecordingMark::current() != 0) {
    throw ArgumentError(
        "[manual_seed] a function that is recorded cannot seed the stream. Seed it outside");
  }
  Stream& s = stream();
  const std::scoped_lock lock(s.mutex);
  s.seed = seed;
  s.draws = 0;
}

std::uint64_t initial_seed() {
  Stream& s = stream();
  const std::scoped_lock lock(s.mutex);
  return s.seed;
}

}  // namespace vkml
