// Scatter: each element of the base combines itself with the sources whose index names it, in the
// order of the source. No atomics, so that the order of every sum is fixed. A first dispatch checks
// all indices; the second leaves storage that outlives the graph alone when one was bad.
//
// Many indices are sorted first, stably: an element finds its own among them by binary search, and
// walks over them. Bound: memory, log2(indices) reads for each element and pass of the sort.
//
// Few need no sorting. Where all elements along the last axis share their indices (an embedding's
// gradient), a workgroup holds part of one such row: its invocations compare as many indices at
// once, and only when one matched do they look which. Otherwise each invocation walks over all
// indices of its line. Bound: rows times indices, divided by the workgroup's size.
#include <algorithm>
#include <optional>

#include "kernels/index_check.h"
#include "kernels/kernels.h"
#include "kernels/line_sort.h"
#include "vkml/core/error.h"
#include "vkml/ops/core_kind.h"

namespace vkml::vulkan {

using spirv::Value;

namespace {

constexpr std::size_t kLast = kMaxDims - 1;

struct Scatter {
  const dispatch::Kernel& kernel;
  std::size_t axis;
  const dispatch::Operand& base;
  const dispatch::Operand& indices;
  const dispatch::Operand& source;
};

Scatter scatter_of(const dispatch::Kernel& kernel) {
  return {kernel, static_cast<std::size_t>(kernel.attributes[0]), kernel.core_inputs[0],
          kernel.core_inputs[1], kernel.core_inputs[2]};
}

/// What becomes of the value held when a source element meets it: NaN is largest and smallest.
Value combined(const dispatch::Kernel& kernel, Value held, Value given) {
  using ops::ScatterKind;
  const auto kind = static_cast<ScatterKind>(kernel.attributes[1]);
  const auto exceeds = [](Value a, Value b) {
    return spirv::is_float(a.type) ? less(b, a) : signed_less(b, a);
  };
  switch (kind) {
    case ScatterKind::kAdd:
      return held + given;
    case ScatterKind::kReplace:
      return given;
    case ScatterKind::kMultiply:
      return held * given;
    case ScatterKind::kMax:
    case ScatterKind::kMin:
      break;
    default:
      throw InternalError("[scatter] unknown kind in a Vulkan kernel");
  }
  Value wins = kind == ScatterKind::kMax ? exceeds(given, held) : exceeds(held, given);
  if (spirv::is_float(held.type)) {
    wins = logical_or(is_nan(given), logical_and(logical_not(is_nan(held)), wins));
  }
  return held.builder->select(wins, given, held);
}

bool rows_share_indices(const Scatter& scatter) {
  const dispatch::Extents& space = scatter.kernel.space;
  if (scatter.axis == kLast || space[kLast] < 8 || scatter.indices.strides[kLast] != 0)
    return false;
  for (std::size_t i = 0; i < space.size(); ++i) {
    if (i != scatter.axis && scatter.indices.extents[i] != space[i]) return false;
  }
  return true;
}

std::uint32_t row_workgroup(const Scatter& scatter, const DeviceTraits& traits) {
  const std::uint32_t wanted = traits.is_software                   ? 32
                               : scatter.kernel.space[kLast] <= 128 ? 128
                                                                    : 256;
  return std::min(wanted, traits.max_workgroup_invocations);
}

/// The indices to sort, each line of different ones once; nothing where they are few.
std::optional<LineSort> sorted_indices(const Scatter& scatter, const DeviceTraits& traits) {
  constexpr std::int64_t kFewIndices = 32;
  constexpr std::int64_t kFewTurns = 16;  // what the reads of a binary search are worth
  const std::int64_t few =
      rows_share_indices(scatter) ? kFewTurns * row_workgroup(scatter, traits) : kFewIndices;
  if (scatter.indices.extents[scatter.axis] <= few) return std::nullopt;
  LineSort sort{scatter.indices, scatter.axis};
  for (std::size_t i = 0; i < sort.operand.extents.size(); ++i) {
    if (i != scatter.axis && sort.operand.strides[i] == 0) sort.operand.extents[i] = 1;
  }
  return sort;
}

/// Walks over the indices that name an element: `open` says which of the line's there are.
using EachIndex = std::function<void(const std::function<void(Value position)>& meet)>;
using OpenIndices = std::function<std::function<EachIndex(const Coordinates& at)>(Shader& shader)>;

Dispatch generate_by_element(const Context& context, const Scatter& scatter, const char* name,
                             const Touches& touches, const OpenIndices& open_indices) {
  const auto open = [&](Shader& shader) -> CoreAt {
    const CoreInput base(shader, scatter.base), source(shader, scatter.source);
    const auto indices_at = open_indices(shader);
    Coordinates extents;
    for (std::size_t i = 0; i < extents.size(); ++i) {
      const bool covers = scatter.indices.extents[i] == scatter.kernel.space[i];
      if (i != scatter.axis && !covers) extents[i] = shader.parameter(scatter.indices.extents[i]);
    }
    return [&shader, &scatter, base, source, indices_at, extents](const Coordinates& at) {
      spirv::Builder& b = shader.builder();
      const Value start = base.load(at);
      const spirv::Variable sum(b, start.type);
      sum.store(start);
      Value is_reached = b.boolean(true);
      for (std::size_t i = 0; i < at.size(); ++i) {
        if (extents[i]) is_reached = logical_and(is_reached, less(at[i], extents[i]));
      }
      b.if_then(is_reached, [&] {
        indices_at(at)([&](Value position) {
          Coordinates from = at;
          from[scatter.axis] = position;
          sum.store(combined(scatter.kernel, sum.load(), source.load(from)));
        });
      });
      return sum.load();
    };
  };
  return generate_per_element(context, name, open, touches);
}

/// All indices of the line, compared one by one.
Dispatch generate_by_comparison(const Context& context, const Scatter& scatter) {
  const auto open = [&](Shader& shader) -> std::function<EachIndex(const Coordinates&)> {
    const CoreInput index(shader, scatter.indices);
    const Value count = shader.parameter(scatter.indices.extents[scatter.axis]);
    return [&shader, &scatter, index, count](const Coordinates& at) -> EachIndex {
      return [&shader, &scatter, index, count, at](const std::function<void(Value)>& meet) {
        spirv::Builder& b = shader.builder();
        b.for_range(b.u32(0), count, b.u32(1), [&](Value i) {
          Coordinates from = at;
          from[scatter.axis] = i;
          const Value named = b.widen(index.load(from), spirv::Scalar::kInt32);
          b.if_then(equal(named, at[scatter.axis]), [&] { meet(i); });
        });
      };
    };
  };
  return generate_by_element(context, scatter, "scatter", {}, open);
}

/// How many indices a turn of the loop over equal ones takes: one, but for the many of which a
/// software driver executes no such number of turns.
int indices_of_a_turn(const Context& context, const Scatter& scatter) {
  constexpr int kMost = 64;  // the loop's body is written out as often
  const std::int64_t count = scatter.indices.extents[scatter.axis];
  int indices = 1;
  while (context.traits.is_software && indices < kMost && count / indices > kSoftwareTurns / 2) {
    indices *= 2;
  }
  return indices;
}

/// Those of the sorted line that are equal to the element's place.
Dispatch generate_by_search(const Context& context, const Scatter& scatter, const LineSort& sort) {
  const int indices = indices_of_a_turn(context, scatter);
  const auto open = [&](Shader& shader) -> std::function<EachIndex(const Coordinates&)> {
    const SortedLines lines(shader, sort);
    return [&shader, &scatter, lines, indices](const Coordinates& at) -> EachIndex {
      return [&shader, &scatter, lines, indices, at](const std::function<void(Value)>& meet) {
        spirv::Builder& b = shader.builder();
        const Value line = lines.line_of(at);
        const Value place = b.widen(at[scatter.axis], lines.key_type().scalar);
        const spirv::Variable slot(b, spirv::kInt32);
        slot.store(count_leading(b, b.u32(0), lines.length(), [&](Value other) {
          return signed_less(lines.key(line, other), place);
        }));
        const auto last = lines.length() - 1;
        const auto names_place = [&] {
          const Value here = slot.load();
          const Value inside = less(here, lines.length());
          const Value key = lines.key(line, b.select(inside, here, last));
          return logical_and(inside, equal(key, place));
        };
        const auto meet_next = [&] {
          meet(lines.position(line, slot.load()));
          slot.store(slot.load() + 1);
        };
        b.while_loop(names_place, [&] {
          meet_next();
          for (int i = 1; i < indices; ++i) b.if_then(names_place(), meet_next);
        });
      };
    };
  };
  return generate_by_element(context, scatter, "scatter_sorted", reads_sorted_lines(), open);
}

Dispatch generate_by_row(const Context& context, const Scatter& scatter) {
  const dispatch::Extents& space = scatter.kernel.space;
  const std::int64_t columns = space[kLast];
  const std::uint32_t size = row_workgroup(scatter, context.traits);
  const std::int64_t blocks = (columns + size - 1) / size;
  const std::int64_t groups = dispatch::numel(space) / columns * blocks;

  Shader shader(context, "scatter_rows", {size, 1, 1});
  spirv::Builder& b = shader.builder();
  const CoreInput base(shader, scatter.base), index(shader, scatter.indices),
      source(shader, scatter.source);
  Epilogue epilogue(shader);
  const Value column_count = shader.parameter(columns), block_count = shader.parameter(blocks);
  const Value group_count = shader.parameter(groups);
  const Value index_count = shader.parameter(scatter.indices.extents[scatter.axis]);
  // Whether the invocation's index matched, and the last chunk (from 1) in which any did.
  const spirv::SharedArray matches(b, spirv::kInt32, size), last_chunk(b, spirv::kInt32, 1);

  const Value local = b.local_index();
  const Value group = b.workgroup_id(1) * b.workgroup_count(0) + b.workgroup_id(0);
  b.if_then(less(group, group_count), [&] {
    const Value row = group / block_count;
    const Value column = (group - row * block_count) * size + local;
    const Value is_column = less(column, column_count);
    // Lanes past the row work on its last element, since all must reach the barriers.
    const Value used_column = b.select(is_column, column, column_count - 1);
    const Coordinates at = epilogue.coordinates_of(row * column_count + used_column);
    const Value start = base.load(at);
    const spirv::Variable sum(b, start.type);
    sum.store(start);
    b.if_then(equal(local, 0), [&] { last_chunk.store(b.u32(0), b.u32(0)); });
    b.workgroup_barrier();
    b.for_range(b.u32(0), index_count, b.u32(size), [&](Value chunk) {
      Coordinates from = at;
      const Value mine = chunk + local;
      const Value is_index = less(mine, index_count);
      from[scatter.axis] = b.select(is_index, mine, b.u32(0));
      const Value position = b.widen(index.load(from), spirv::Scalar::kInt32);
      const Value is_match = logical_and(is_index, equal(position, at[scatter.axis]));
      matches.store(local, b.select(is_match, b.u32(1), b.u32(0)));
      b.if_then(is_match, [&] { last_chunk.atomic_max(b.u32(0), chunk + 1); });
      b.workgroup_barrier();
      b.if_then(equal(last_chunk.load(b.u32(0)), chunk + 1), [&] {
        const Value rest = index_count - chunk;
        const Value count = b.select(less(rest, b.u32(size)), rest, b.u32(size));
        b.for_range(b.u32(0), count, b.u32(1), [&](Value i) {
          b.if_then(equal(matches.load(i), 1), [&] {
            from[scatter.axis] = chunk + i;
            sum.store(combined(scatter.kernel, sum.load(), source.load(from)));
          });
        });
      });
      b.workgroup_barrier();
    });
    b.if_then(is_column, [&] { epilogue.run(at, sum.load()); });
  });
  return shader.finish(shader.groups_for(groups));
}

}  // namespace

std::vector<Dispatch> generate_scatter(const Context& context) {
  const Scatter scatter = scatter_of(context.kernel);
  const std::int64_t count = scatter.indices.extents[scatter.axis];
  const std::optional<LineSort> sort = sorted_indices(scatter, context.traits);
  // Without a sort: a turn for each chunk of indices, and at most one for each index.
  require_turns(context, sort ? count / indices_of_a_turn(context, scatter) : count * 33 / 32);
  std::vector<Dispatch> dispatches;
  if (dispatch::numel(scatter.indices.extents) > 0) {
    dispatches.push_back(generate_index_check(
        context, scatter.indices, context.kernel.space[scatter.axis], context.kernel.core_site));
  }
  if (sort) {
    const std::vector<Dispatch> sorting = generate_line_sort(context, *sort);
    dispatches.insert(dispatches.end(), sorting.begin(), sorting.end());
    dispatches.push_back(generate_by_search(context, scatter, *sort));
    return dispatches;
  }
  dispatches.push_back(rows_share_indices(scatter) ? generate_by_row(context, scatter)
                                                   : generate_by_comparison(context, scatter));
  return dispatches;
}

std::int64_t scatter_scratch_bytes(const dispatch::Kernel& kernel, const DeviceTraits& traits) {
  const std::optional<LineSort> sort = sorted_indices(scatter_of(kernel), traits);
  return sort ? line_sort_scratch_bytes(*sort) : 0;
}

}  // namespace vkml::vulkan
