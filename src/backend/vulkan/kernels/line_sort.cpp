// Merge sort of many lines at once. A value becomes a signed integer with the order of the values,
// so that one comparison decides. The first dispatch sorts runs of 16 in registers, each in one
// invocation, by odd-even transposition, which exchanges neighbours alone and so is stable. Each
// further one merges pairs of runs: an invocation finds by binary search on the merge path (Odeh,
// Green, Mwassi, Shmueli, Birk: "Merge path", 2012) where its results begin in both runs, and
// merges from there. Keys and positions lie in two halves of the scratch in turn. Bound: memory,
// log2(n / 16) passes that read and write keys and positions once.
#include "kernels/line_sort.h"

#include <array>
#include <functional>
#include <limits>

namespace vkml::vulkan {

using spirv::Value;

namespace {

constexpr std::int64_t kRun = 16;

/// Results that an invocation merges, at most two runs: few for parallelism, many on software
/// drivers, where the search for their beginning weighs more.
std::int64_t merged_at_once(const DeviceTraits& traits) { return traits.is_software ? 32 : 8; }

bool has_wide_keys(const LineSort& sort) { return size_of(sort.operand.dtype) == 8; }

std::int64_t passes_of(const LineSort& sort) {
  std::int64_t passes = 0;
  for (std::int64_t width = kRun; width < sort.length(); width *= 2) ++passes;
  return passes;
}

spirv::Type key_type_of(const LineSort& sort) {
  return has_wide_keys(sort) ? spirv::Type{spirv::Scalar::kInt64, 1} : spirv::kInt32;
}

Value largest_key(spirv::Builder& b, spirv::Type type) {
  const bool is_wide = type.scalar == spirv::Scalar::kInt64;
  return b.constant(type, is_wide ? std::uint64_t{0x7fffffffffffffffU} : 0x7fffffffU);
}

/// A signed integer in the order of the values: NaN above all, both zeros equal.
Value key_of(Value value, bool descending) {
  spirv::Builder& b = *value.builder;
  Value key = value;
  if (spirv::is_float(value.type)) {
    const bool is_wide = value.type.scalar == spirv::Scalar::kFloat64;
    const spirv::Type type{is_wide ? spirv::Scalar::kInt64 : spirv::Scalar::kInt32, 1};
    const Value bits = b.bitcast(value, type);
    const Value magnitude_mask = largest_key(b, type), zero = b.constant(type, 0);
    const Value is_zero = equal(bits & magnitude_mask, zero);
    key = b.select(signed_less(bits, zero), bits ^ magnitude_mask, bits);
    key = b.select(is_nan(value), magnitude_mask, b.select(is_zero, zero, key));
  }
  return descending ? ~key : key;
}

Touches sorting_touches(bool reads_operand) {
  Touches touches;
  touches.core_inputs = reads_operand;
  touches.loads = touches.stores = false;
  touches.reads_scratch = !reads_operand;
  touches.writes_scratch = true;
  return touches;
}

/// One invocation for so many neighbours of a line.
dispatch::Extents extents_by(const LineSort& sort, std::int64_t neighbours) {
  dispatch::Extents extents = sort.operand.extents;
  extents[sort.axis] = (extents[sort.axis] + neighbours - 1) / neighbours;
  return extents;
}

Dispatch generate_runs(const Context& context, const LineSort& sort) {
  const auto open = [&](Shader& shader) {
    const CoreInput x(shader, sort.operand);
    const SortedLines lines(shader, sort, 0);
    return [&shader, &sort, x, lines](const Coordinates& at) {
      spirv::Builder& b = shader.builder();
      const Value line = lines.line_of(at);
      const Value begin = at[sort.axis] * static_cast<std::uint32_t>(kRun);
      std::array<Value, kRun> keys, positions;
      for (std::uint32_t i = 0; i < kRun; ++i) {
        const Value slot = begin + i;
        const Value is_inside = less(slot, lines.length());
        Coordinates from = at;
        from[sort.axis] = b.select(is_inside, slot, lines.length() - 1);
        // What lies past the end stays there: it is not below anything.
        keys[i] = b.select(is_inside, key_of(x.load(from), sort.descending),
                           largest_key(b, lines.key_type()));
        positions[i] = slot;
      }
      for (std::size_t round = 0; round < kRun; ++round) {
        for (std::size_t i = round % 2; i + 1 < kRun; i += 2) {
          const Value swaps = signed_less(keys[i + 1], keys[i]);
          const auto order = [&](std::array<Value, kRun>& values) {
            const Value first = values[i], second = values[i + 1];
            values[i] = b.select(swaps, second, first);
            values[i + 1] = b.select(swaps, first, second);
          };
          order(keys);
          order(positions);
        }
      }
      for (std::uint32_t i = 0; i < kRun; ++i) {
        b.if_then(less(begin + i, lines.length()),
                  [&] { lines.set(line, begin + i, keys[i], positions[i]); });
      }
    };
  };
  return generate_per_index(context, "sort_runs", extents_by(sort, kRun), open,
                            sorting_touches(true));
}

Dispatch generate_merge(const Context& context, const LineSort& sort, std::int64_t width,
                        int from) {
  const std::int64_t at_once = merged_at_once(context.traits);
  const auto count = static_cast<std::uint32_t>(at_once);
  const auto open = [&](Shader& shader) {
    const SortedLines source(shader, sort, from), target(shader, sort, 1 - from);
    const Value run = shader.parameter(width);
    return [&shader, &sort, source, target, run, count](const Coordinates& at) {
      spirv::Builder& b = shader.builder();
      const auto smaller = [&](Value x, Value y) { return b.select(less(x, y), x, y); };
      const Value line = source.line_of(at);
      const Value length = source.length();
      const Value begin = at[sort.axis] * count;
      const Value left = begin / (run * 2U) * (run * 2U);
      const Value right = smaller(left + run, length);
      const Value end = smaller(right + run, length);
      // Of the `before` results ahead of this invocation's, `of_left` come from the left run.
      const Value before = begin - left;
      const Value lowest = b.select(less(end - right, before), before - (end - right), b.u32(0));
      const Value of_left =
          lowest + count_leading(b, lowest, smaller(before, right - left), [&](Value slot) {
            return signed_less_equal(source.key(line, left + slot),
                                     source.key(line, right + (before - slot) - 1));
          });
      const spirv::Variable i(b, spirv::kInt32), j(b, spirv::kInt32);
      const spirv::Variable left_key(b, source.key_type()), right_key(b, source.key_type());
      // Past the end of a run any key will do.
      const auto key_at = [&](Value slot) { return source.key(line, smaller(slot, length - 1)); };
      i.store(left + of_left);
      j.store(right + (before - of_left));
      left_key.store(key_at(i.load()));
      right_key.store(key_at(j.load()));
      b.for_range(begin, smaller(begin + count, end), b.u32(1), [&](Value slot) {
        const Value is_left =
            logical_and(less(i.load(), right),
                        logical_or(logical_not(less(j.load(), end)),
                                   signed_less_equal(left_key.load(), right_key.load())));
        const Value taken = b.select(is_left, i.load(), j.load());
        target.set(line, slot, b.select(is_left, left_key.load(), right_key.load()),
                   source.position(line, taken));
        const Value next = key_at(taken + 1);
        i.store(b.select(is_left, taken + 1, i.load()));
        j.store(b.select(is_left, j.load(), taken + 1));
        left_key.store(b.select(is_left, next, left_key.load()));
        right_key.store(b.select(is_left, right_key.load(), next));
      });
    };
  };
  return generate_per_index(context, "sort_merge", extents_by(sort, at_once), open,
                            sorting_touches(false));
}

}  // namespace

std::int64_t line_sort_scratch_bytes(const LineSort& sort) {
  const std::int64_t words = has_wide_keys(sort) ? 3 : 2;
  return 2 * words * 4 * dispatch::numel(sort.operand.extents);
}

SortedLines::SortedLines(Shader& shader, const LineSort& sort)
    : SortedLines(shader, sort, static_cast<int>(passes_of(sort) % 2)) {}

SortedLines::SortedLines(Shader& shader, const LineSort& sort, int half)
    : shader_(shader), key_type_(key_type_of(sort)) {
  const std::int64_t count = dispatch::numel(sort.operand.extents);
  const std::int64_t key_words = has_wide_keys(sort) ? 2 : 1;
  std::int64_t stride = sort.length();
  for (std::size_t i = strides_.size(); i-- > 0;) {
    const bool is_fixed = i == sort.axis || sort.operand.extents[i] == 1;
    strides_[i] = shader.stride_parameter(is_fixed ? 0 : stride);
    if (i != sort.axis) stride *= sort.operand.extents[i];
  }
  length_ = shader.parameter(sort.length());
  keys_ = shader.base_of(shader.scratch_buffer(), half * count * key_words);
  positions_ = shader.base_of(shader.scratch_buffer(), 2 * count * key_words + half * count);
}

Value SortedLines::line_of(const Coordinates& at) const {
  Value line = at[0] * strides_[0];
  for (std::size_t i = 1; i < at.size(); ++i) line = line + at[i] * strides_[i];
  return line;
}

Value SortedLines::key(Value line, Value slot) const {
  const Value place = line + slot;
  if (key_type_ == spirv::kInt32) {
    return shader_.load(keys_, kWord, keys_.offset + place);
  }
  const Value word = keys_.offset + place * 2U;
  const std::array<Value, 2> words{shader_.load(keys_, kWord, word),
                                   shader_.load(keys_, kWord, word + 1)};
  spirv::Builder& b = shader_.builder();
  return b.bitcast(b.compose(words), key_type_);
}

Value SortedLines::position(Value line, Value slot) const {
  return shader_.load(positions_, kWord, positions_.offset + line + slot);
}

void SortedLines::set(Value line, Value slot, Value key, Value position) const {
  const Value place = line + slot;
  if (key_type_ == spirv::kInt32) {
    shader_.store(keys_, kWord, keys_.offset + place, key);
  } else {
    spirv::Builder& b = shader_.builder();
    const Value words = b.bitcast(key, kWord2);
    const Value word = keys_.offset + place * 2U;
    shader_.store(keys_, kWord, word, b.component(words, 0));
    shader_.store(keys_, kWord, word + 1, b.component(words, 1));
  }
  shader_.store(positions_, kWord, positions_.offset + place, position);
}

Value count_leading(spirv::Builder& b, Value begin, Value end,
                    const std::function<Value(Value slot)>& comes_first) {
  const spirv::Variable low(b, spirv::kInt32), high(b, spirv::kInt32);
  low.store(begin);
  high.store(end);
  b.while_loop([&] { return less(low.load(), high.load()); },
               [&] {
                 const Value middle = low.load() + (high.load() - low.load()) / 2;
                 b.if_else(
                     comes_first(middle), [&] { low.store(middle + 1); },
                     [&] { high.store(middle); });
               });
  return low.load() - begin;
}

Touches reads_sorted_lines() {
  Touches touches;
  touches.reads_scratch = true;
  return touches;
}

std::vector<Dispatch> generate_line_sort(const Context& context, const LineSort& sort) {
  if (has_wide_keys(sort)) require_type(context, ops::ScalarType::kI64);
  std::vector<Dispatch> dispatches{generate_runs(context, sort)};
  int half = 0;
  for (std::int64_t width = kRun; width < sort.length(); width *= 2) {
    dispatches.push_back(generate_merge(context, sort, width, half));
    half = 1 - half;
  }
  return dispatches;
}

}  // namespace vkml::vulkan
