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

struct SharedStream {
  std::mutex mutex;
  RandomStream stream{.seed = 0x853c49e6748fea9b};
};
SharedStream& shared() {
  static SharedStream instance;
  return instance;
}

/// SplitMix64's finaliser (Steele, Lea and Flood, OOPSLA 2014).
std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

graph::RandomKey key_of(const RandomStream& stream, std::uint64_t draw) {
  const std::uint64_t word =
      mix(mix(stream.seed + 0x9e3779b97f4a7c15u) + (draw + 1) * 0x9e3779b97f4a7c15u);
  return {{static_cast<std::uint32_t>(word), static_cast<std::uint32_t>(word >> 32)}, draw};
}

/// What a thread draws from instead of the shared stream.
struct Drawing {
  enum class Kind { kNote, kRepeat, kPrivate, kStream };
  Kind kind = Kind::kNote;
  std::shared_ptr<DrawTape> tape = {};        // of kNote and kRepeat
  std::shared_ptr<RandomStream> stream = {};  // of kStream
  std::size_t next = 0;
};
/// The innermost one last.
thread_local std::vector<Drawing> drawing;

graph::RandomKey draw_from_shared_stream() {
  SharedStream& s = shared();
  const std::scoped_lock lock(s.mutex);
  return key_of(s.stream, s.stream.draws++);
}

DrawTape::Draw noted(const graph::RandomKey& key) {
  return {std::uint64_t{key.words[1]} << 32 | key.words[0], key.draw};
}
graph::RandomKey key_of(const DrawTape::Draw& draw) {
  return {{static_cast<std::uint32_t>(draw.key), static_cast<std::uint32_t>(draw.key >> 32)},
          draw.number};
}

/// From the innermost of the first `depth`: a tape that notes asks the next one out. The innermost
/// stream among them, or the shared one, gives what no tape repeats.
graph::RandomKey draw(std::size_t depth, RandomStream* stream) {
  if (depth == 0) return stream ? key_of(*stream, stream->draws++) : draw_from_shared_stream();
  Drawing& innermost = drawing[depth - 1];
  switch (innermost.kind) {
    case Drawing::Kind::kPrivate:
      return random_key(innermost.next++);
    case Drawing::Kind::kStream:
      return draw(depth - 1, stream ? stream : innermost.stream.get());
    case Drawing::Kind::kNote: {
      const graph::RandomKey key = draw(depth - 1, stream);
      innermost.tape->draws.push_back(noted(key));
      return key;
    }
    case Drawing::Kind::kRepeat:
      break;
  }
  if (innermost.next == innermost.tape->draws.size()) {
    throw AutogradError(
        "[checkpoint] the function drew more random numbers when it was called again. It must do "
        "the same each time");
  }
  return key_of(innermost.tape->draws[innermost.next++]);
}

}  // namespace

graph::RandomKey random_key(std::uint64_t draw) {
  SharedStream& s = shared();
  const std::scoped_lock lock(s.mutex);
  return key_of(s.stream, draw);
}

void check_draw(const char* op, std::span<const std::int64_t> extents, DType dtype) {
  const Shape possible(extents, dtype, op);
  if (is_floating(dtype)) return;
  throw DTypeError(fmt::format("[{}] draws floats, not {}. Use randint, or {}(...).to({})", op,
                               name_of(dtype), op, name_of(dtype)));
}

graph::RandomKey next_random_key() { return draw(drawing.size(), nullptr); }

void begin_draws(std::shared_ptr<RandomStream> stream) {
  if (RecordingMark::current() != 0) {
    throw ArgumentError(
        "[Generator] a function that is recorded draws new numbers at each call, from vkML's own "
        "stream. Leave generator out, or draw outside and pass the result");
  }
  drawing.push_back({.kind = Drawing::Kind::kStream, .stream = std::move(stream)});
}
void begin_draws(std::shared_ptr<DrawTape> tape, bool replay) {
  const auto kind = replay ? Drawing::Kind::kRepeat : Drawing::Kind::kNote;
  drawing.push_back({.kind = kind, .tape = std::move(tape)});
}
void end_draws() { drawing.pop_back(); }

PrivateDraws::PrivateDraws() : depth_(drawing.size()) {
  drawing.push_back({.kind = Drawing::Kind::kPrivate});
}
PrivateDraws::~PrivateDraws() { drawing.resize(depth_); }
std::uint64_t PrivateDraws::count() const { return drawing[depth_].next; }

void manual_seed(std::uint64_t seed) {
  if (RecordingMark::current() != 0) {
    throw ArgumentError(
        "[manual_seed] a function that is recorded cannot seed the stream. Seed it outside");
  }
  SharedStream& s = shared();
  const std::scoped_lock lock(s.mutex);
  s.stream = {.seed = seed};
}

std::uint64_t initial_seed() {
  SharedStream& s = shared();
  const std::scoped_lock lock(s.mutex);
  return s.stream.seed;
}

}  // namespace vkml
