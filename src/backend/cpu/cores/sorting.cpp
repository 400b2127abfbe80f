// Stable sorting of the lines along an axis, and binary search in sorted lines.
//
// A value becomes an unsigned key with the order of the values (NaN above all, both zeros equal),
// so that one comparison of integers decides. Short lines are merged; long ones are sorted by a
// least-significant-digit radix sort over 11-bit digits, which is stable by itself and skips the
// digits that all keys share. Bound: memory, two passes over the line for each digit.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numeric>
#include <type_traits>
#include <utility>

#include "cores/core_result.h"
#include "cores/line_walk.h"
#include "cores/ordering.h"
#include "scratch.h"
#include "threads.h"
#include "tile/transfer.h"
#include "vkml/core/error.h"

namespace vkml::cpu {
namespace {

using dispatch::Kernel;
using dispatch::Operand;

constexpr std::int64_t kRadixLength = 2048;  // from here on digits beat comparisons
constexpr int kDigitBits = 11;
constexpr std::size_t kDigits = std::size_t{1} << kDigitBits;

template <typename T>
using KeyOf = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;

/// An unsigned number in the order of the values.
template <typename T>
KeyOf<T> key_of(T value) {
  using Key = KeyOf<T>;
  constexpr Key kSign = Key{1} << (sizeof(Key) * 8 - 1);
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(value)) return ~Key{0};
    const Key bits = std::bit_cast<Key>(value == 0 ? T{0} : value);
    return (bits & kSign) != 0 ? ~bits : bits | kSign;
  } else {
    return static_cast<Key>(value) ^ kSign;
  }
}

template <typename T>
T* scratch_for(ScratchPurpose purpose, std::int64_t count) {
  return reinterpret_cast<T*>(thread_scratch(purpose, static_cast<std::size_t>(count) * sizeof(T)));
}

template <typename Key>
struct Entry {
  Key key;
  std::int32_t position;
};

/// Sorts `entries`; `other` has room for as many. Returns where the sorted ones lie.
template <typename Key>
Entry<Key>* radix_sort(Entry<Key>* entries, Entry<Key>* other, std::int64_t count) {
  for (int shift = 0; shift < static_cast<int>(sizeof(Key)) * 8; shift += kDigitBits) {
    std::array<std::int64_t, kDigits> starts{};
    const auto digit = [&](const Entry<Key>& entry) {
      return static_cast<std::size_t>(entry.key >> shift) & (kDigits - 1);
    };
    for (std::int64_t i = 0; i < count; ++i) ++starts[digit(entries[i])];
    if (starts[digit(entries[0])] == count) continue;
    std::int64_t sum = 0;
    for (std::int64_t& start : starts) sum += std::exchange(start, sum);
    for (std::int64_t i = 0; i < count; ++i) other[starts[digit(entries[i])]++] = entries[i];
    std::swap(entries, other);
  }
  return entries;
}

class ArgSort final : public CompiledKernel {
 public:
  ArgSort(const Kernel& kernel, const dispatch::ExecutionGraph& graph)
      : lines_(kernel.space, static_cast<std::size_t>(kernel.attributes[0])),
        descending_(kernel.attributes[1] != 0),
        x_(kernel.core_inputs[0]),
        result_(kernel, graph.buffers, TargetLayout::kAnyStrides) {}

  void run(const RunContext& run) override {
    switch (ops::compute_type(x_.dtype)) {
      case ops::ScalarType::kF32:
        sort_lines<float>(run);
        break;
      case ops::ScalarType::kF64:
        sort_lines<double>(run);
        break;
      case ops::ScalarType::kI32:
        sort_lines<std::int32_t>(run);
        break;
      case ops::ScalarType::kI64:
        sort_lines<std::int64_t>(run);
        break;
      case ops::ScalarType::kBool:
        throw UnsupportedError("[argsort] the CPU sorts numbers, not booleans");
    }
    result_.finish(run);
  }

 private:
  template <typename T>
  void sort_lines(const RunContext& run) const {
    constexpr double kNanosecondsPerElement = 20;
    const std::int64_t elements = lines_.count() * lines_.length();
    const bool parallel = worth_threads(kNanosecondsPerElement * static_cast<double>(elements));
    parallel_shares(lines_.count(), parallel, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t line = begin; line < end; ++line) sort_line<T>(run, line);
    });
  }

  template <typename T>
  void sort_line(const RunContext& run, std::int64_t line) const {
    using Key = KeyOf<T>;
    const std::int64_t count = lines_.length();
    const std::size_t axis = lines_.axis();
    T* values = scratch_for<T>(ScratchPurpose::kPlane, count);
    load_elements(values, element_at(x_, run, lines_.start(x_, line)), x_.dtype, count,
                  x_.strides[axis]);
    auto* entries = scratch_for<Entry<Key>>(ScratchPurpose::kPatches, count);
    for (std::int64_t i = 0; i < count; ++i) {
      const Key key = key_of(values[i]);
      entries[i] = {descending_ ? static_cast<Key>(~key) : key, static_cast<std::int32_t>(i)};
    }
    if (count >= kRadixLength) {
      entries = radix_sort(entries, scratch_for<Entry<Key>>(ScratchPurpose::kPanelA, count), count);
    } else {
      // The position decides between equal keys, so that no buffer is needed to be stable.
      std::sort(entries, entries + count, [](const Entry<Key>& a, const Entry<Key>& b) {
        return a.key != b.key ? a.key < b.key : a.position < b.position;
      });
    }
    const Operand& target = result_.target();
    auto* out =
        reinterpret_cast<std::int32_t*>(element_at(target, run, lines_.start(target, line)));
    for (std::int64_t i = 0; i < count; ++i) out[i * target.strides[axis]] = entries[i].position;
  }

  Lines lines_;
  bool descending_;
  Operand x_;
  CoreResult result_;
};

class SearchSorted final : public CompiledKernel {
 public:
  SearchSorted(const Kernel& kernel, const dispatch::ExecutionGraph& graph)
      : lines_(kernel.space, 3),
        right_(kernel.attributes[0] != 0),
        sorted_(kernel.core_inputs[0]),
        values_(kernel.core_inputs[1]),
        result_(kernel, graph.buffers, TargetLayout::kAnyStrides) {}

  void run(const RunContext& run) override {
    switch (ops::compute_type(values_.dtype)) {
      case ops::ScalarType::kF32:
        search_lines<float>(run);
        break;
      case ops::ScalarType::kF64:
        search_lines<double>(run);
        break;
      case ops::ScalarType::kI32:
        search_lines<std::int32_t>(run);
        break;
      case ops::ScalarType::kI64:
        search_lines<std::int64_t>(run);
        break;
      case ops::ScalarType::kBool:
        throw UnsupportedError("[searchsorted] the CPU searches numbers, not booleans");
    }
    result_.finish(run);
  }

 private:
  template <typename T>
  void search_lines(const RunContext& run) const {
    const std::int64_t elements = lines_.count() * lines_.length();
    const auto steps =
        static_cast<double>(std::bit_width(static_cast<std::uint64_t>(sorted_.extents[3]) + 1));
    const bool parallel = worth_threads(2 * steps * static_cast<double>(elements));
    // Single elements are divided: there may be one long line.
    parallel_shares(elements, parallel, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) search<T>(run, i);
    });
  }

  template <typename T>
  void search(const RunContext& run, std::int64_t element) const {
    const std::int64_t line = element / lines_.length();
    const std::int64_t i = element % lines_.length();
    const auto key =
        key_of(read<T>(values_, run, lines_.start(values_, line) + i * values_.strides[3]));
    const std::int64_t first = lines_.start(sorted_, line);
    std::int64_t low = 0;
    std::int64_t high = sorted_.extents[3];
    while (low < high) {
      const std::int64_t middle = low + (high - low) / 2;
      const auto other = key_of(read<T>(sorted_, run, first + middle * sorted_.strides[3]));
      if (right_ ? other <= key : other < key) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    const Operand& target = result_.target();
    *reinterpret_cast<std::int32_t*>(
        element_at(target, run, lines_.start(target, line) + i * target.strides[3])) =
        static_cast<std::int32_t>(low);
  }

  template <typename T>
  static T read(const Operand& operand, const RunContext& run, std::int64_t position) {
    T value;
    load_elements(&value, element_at(operand, run, position), operand.dtype, 1, 1);
    return value;
  }

  Lines lines_;
  bool right_;
  Operand sorted_, values_;
  CoreResult result_;
};

}  // namespace

std::unique_ptr<CompiledKernel> compile_argsort(const Kernel& kernel,
                                                const dispatch::ExecutionGraph& graph) {
  return std::make_unique<ArgSort>(kernel, graph);
}

std::unique_ptr<CompiledKernel> compile_search_sorted(const Kernel& kernel,
                                                      const dispatch::ExecutionGraph& graph) {
  return std::make_unique<SearchSorted>(kernel, graph);
}

}  // namespace vkml::cpu
