// Stable sorting along an axis, and binary search in sorted lines.
//
// Positions are sorted, not values. The first dispatch puts each element of a run of 32 at its rank
// within the run; each further one merges pairs of runs: an element's place is its place in its own
// run plus the number of elements of the other that come before it, found by binary search. Equal
// values of the left run count before those of the right, which keeps the order. The runs lie in
// two halves of the scratch in turn; the last dispatch hands them to the program.
// Bound: log2(n / 32) passes over the line, each with log2(n) scattered reads for an element.
#include <array>
#include <functional>
#include <memory>

#include "kernels/kernels.h"
#include "kernels/per_element.h"

namespace vkml::vulkan {

using spirv::Value;

namespace {

constexpr std::int64_t kRun = 32;

/// The order of sorted values: NaN is above all.
Value is_before(Value a, Value b) {
  if (!spirv::is_float(a.type)) return signed_less(a, b);
  return logical_or(less(a, b), logical_and(is_nan(b), logical_not(is_nan(a))));
}

/// The lines being sorted, and the positions of their elements in the scratch.
class SortedLines {
 public:
  SortedLines(Shader& shader, const dispatch::Kernel& kernel)
      : shader_(shader),
        axis_(static_cast<std::size_t>(kernel.attributes[0])),
        is_descending_(kernel.attributes[1] != 0),
        x_(shader, kernel.core_inputs[0]) {
    std::int64_t stride = 1;
    for (std::size_t i = strides_.size(); i-- > 0;) {
      strides_[i] = shader.stride_parameter(stride);
      stride *= kernel.space[i];
    }
    length_ = shader.parameter(kernel.space[axis_]);
    for (std::size_t half = 0; half < halves_.size(); ++half) {
      halves_[half] = shader.base_of(
          shader.scratch_buffer(), static_cast<std::int64_t>(half) * dispatch::numel(kernel.space));
    }
  }

  Value length() const { return length_; }

  Value value_at(Coordinates at, Value position) const {
    at[axis_] = position;
    return x_.load(at);
  }
  Value comes_first(Value a, Value b) const {
    return is_descending_ ? is_before(b, a) : is_before(a, b);
  }

  Value position(std::size_t half, const Coordinates& at, Value slot) const {
    return shader_.load(halves_[half], kWord, word_of(half, at, slot));
  }
  void set_position(std::size_t half, const Coordinates& at, Value slot, Value position) const {
    shader_.store(halves_[half], kWord, word_of(half, at, slot), position);
  }

 private:
  Value word_of(std::size_t half, Coordinates at, Value slot) const {
    at[axis_] = slot;
    Value word = halves_[half].offset;
    for (std::size_t i = 0; i < at.size(); ++i) word = word + at[i] * strides_[i];
    return word;
  }

  Shader& shader_;
  std::size_t axis_;
  bool is_descending_;
  CoreInput x_;
  Coordinates strides_;
  Value length_;
  std::array<Shader::Base, 2> halves_;
};

Touches scratch_touches() {
  Touches touches;
  touches.loads = touches.stores = false;
  touches.reads_scratch = touches.writes_scratch = true;
  return touches;
}

Dispatch generate_runs(const Context& context, std::size_t axis) {
  const auto open = [&](Shader& shader) {
    auto lines = std::make_shared<SortedLines>(shader, context.kernel);
    return [&shader, lines, axis](const Coordinates& at) {
      spirv::Builder& b = shader.builder();
      const Value here = at[axis];
      const Value begin = here - here % static_cast<std::uint32_t>(kRun);
      const Value past = begin + static_cast<std::uint32_t>(kRun);
      const Value end = b.select(less(past, lines->length()), past, lines->length());
      const Value mine = lines->value_at(at, here);
      const spirv::Variable rank(b, spirv::kInt32);
      rank.store(b.u32(0));
      b.for_range(begin, end, b.u32(1), [&](Value other) {
        const Value value = lines->value_at(at, other);
        // Of equals the earlier comes first.
        const Value counts =
            b.select(less(other, here), logical_not(lines->comes_first(mine, value)),
                     lines->comes_first(value, mine));
        rank.store(rank.load() + b.select(counts, b.u32(1), b.u32(0)));
      });
      lines->set_position(0, at, begin + rank.load(), here);
    };
  };
  return generate_per_index(context, "sort_runs", context.kernel.space, open, scratch_touches());
}

/// The number of elements in [begin, end) of a sorted half that `counts` holds for; it holds for a
/// first part of them.
Value count_leading(spirv::Builder& b, Value begin, Value end,
                    const std::function<Value(Value slot)>& counts) {
  const spirv::Variable low(b, spirv::kInt32), high(b, spirv::kInt32);
  low.store(begin);
  high.store(end);
  b.while_loop([&] { return less(low.load(), high.load()); },
               [&] {
                 const Value middle = low.load() + (high.load() - low.load()) / 2;
                 b.if_else(
                     counts(middle), [&] { low.store(middle + 1); }, [&] { high.store(middle); });
               });
  return low.load() - begin;
}

Dispatch generate_merge(const Context& context, std::size_t axis, std::int64_t width,
                        std::size_t from) {
  const auto open = [&](Shader& shader) {
    auto lines = std::make_shared<SortedLines>(shader, context.kernel);
    const Value run_width = shader.parameter(width);
    return [&shader, lines, axis, run_width, from](const Coordinates& at) {
      spirv::Builder& b = shader.builder();
      const auto limited = [&](Value slot) {
        return b.select(less(slot, lines->length()), slot, lines->length());
      };
      const Value run = at[axis] / run_width;
      const Value begin = run * run_width;
      const Value is_left = equal(run & 1U, 0);
      const Value other_begin = limited(b.select(is_left, begin + run_width, begin - run_width));
      const Value other_end = limited(other_begin + run_width);
      const Value position = lines->position(from, at, at[axis]);
      const Value mine = lines->value_at(at, position);
      const Value count = count_leading(b, other_begin, other_end, [&](Value slot) {
        const Value other = lines->value_at(at, lines->position(from, at, slot));
        return b.select(is_left, lines->comes_first(other, mine),
                        logical_not(lines->comes_first(mine, other)));
      });
      const Value pair_begin = b.select(is_left, begin, begin - run_width);
      lines->set_position(1 - from, at, pair_begin + (at[axis] - begin) + count, position);
    };
  };
  return generate_per_index(context, "sort_merge", context.kernel.space, open, scratch_touches());
}

}  // namespace

std::int64_t argsort_scratch_bytes(const dispatch::Kernel& kernel) {
  return 2 * dispatch::numel(kernel.space) * 4;
}

std::vector<Dispatch> generate_argsort(const Context& context) {
  const auto axis = static_cast<std::size_t>(context.kernel.attributes[0]);
  const std::int64_t length = context.kernel.space[axis];
  std::vector<Dispatch> dispatches{generate_runs(context, axis)};
  std::size_t half = 0;
  for (std::int64_t width = kRun; width < length; width *= 2) {
    dispatches.push_back(generate_merge(context, axis, width, half));
    half = 1 - half;
  }
  Touches touches;
  touches.reads_scratch = true;
  const auto open = [&](Shader& shader) -> CoreAt {
    auto lines = std::make_shared<SortedLines>(shader, context.kernel);
    return
        [lines, axis, half](const Coordinates& at) { return lines->position(half, at, at[axis]); };
  };
  dispatches.push_back(generate_per_element(context, "sort_result", open, touches));
  return dispatches;
}

std::vector<Dispatch> generate_search_sorted(const Context& context) {
  const dispatch::Kernel& kernel = context.kernel;
  const bool right = kernel.attributes[0] != 0;
  return {generate_per_element(context, "searchsorted", [&](Shader& shader) -> CoreAt {
    const CoreInput sorted(shader, kernel.core_inputs[0]), values(shader, kernel.core_inputs[1]);
    const Value length = shader.parameter(kernel.core_inputs[0].extents[3]);
    return [&shader, sorted, values, length, right](const Coordinates& at) {
      spirv::Builder& b = shader.builder();
      const Value value = values.load(at);
      return count_leading(b, b.u32(0), length, [&](Value slot) {
        Coordinates from = at;
        from[3] = slot;
        const Value element = sorted.load(from);
        return right ? logical_not(is_before(value, element)) : is_before(element, value);
      });
    };
  })};
}

}  // namespace vkml::vulkan
