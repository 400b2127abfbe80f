#include "ordering.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "vkml/ops/core_kind.h"

namespace vkml::reference {
namespace {

using ops::ScanKind;

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

/// Integers wrap: they are combined in the unsigned type.
double add(double a, double b) { return a + b; }
double multiply(double a, double b) { return a * b; }
std::int64_t add(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}
std::int64_t multiply(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
}

bool is_nan(double x) { return std::isnan(x); }
bool is_nan(std::int64_t) { return false; }

/// The order of sorted values: NaN is above all.
template <typename T>
bool is_before(T a, T b) {
  return a < b || (is_nan(b) && !is_nan(a));
}

/// Calls visit(first, stride) for every line along `axis` of a dense array.
template <typename Visit>
void for_each_line(const Extents& extents, std::size_t axis, Visit visit) {
  const Extents strides = dense_strides(extents);
  Extents starts = extents;
  starts[axis] = std::min<std::int64_t>(starts[axis], 1);
  for_each(starts, [&](const Extents& i) { visit(position_of(i, strides), strides[axis]); });
}

template <typename T>
void scan_values(ScanKind kind, std::span<const Array* const> sources, std::size_t axis,
                 Array& out) {
  const auto& a = sources[0]->values<T>();
  const auto& b = sources.back()->values<T>();
  for_each_line(out.extents, axis, [&](std::int64_t first, std::int64_t stride) {
    T carried = kind == ScanKind::kProduct ? T{1} : T{0};
    for (std::int64_t i = 0; i < out.extents[axis]; ++i) {
      const std::size_t here = at(first + i * stride);
      switch (kind) {
        case ScanKind::kProduct:
          carried = multiply(carried, a[here]);
          break;
        case ScanKind::kLinear:
          carried = add(multiply(a[here], carried), b[here]);
          break;
        default:
          carried = add(carried, a[here]);
      }
      out.values<T>()[here] = rounded(carried, out.dtype);
    }
  });
}

template <typename T>
void scan_positions(ScanKind kind, const Array& x, std::size_t axis, Array& out) {
  for_each_line(out.extents, axis, [&](std::int64_t first, std::int64_t stride) {
    T best{};
    std::int64_t position = 0;
    for (std::int64_t i = 0; i < out.extents[axis]; ++i) {
      const T value = x.values<T>()[at(first + i * stride)];
      const bool reaches = kind == ScanKind::kArgMax ? value >= best : value <= best;
      if (i == 0 || is_nan(value) || (!is_nan(best) && reaches)) {
        best = value;
        position = i;
      }
      out.integers[at(first + i * stride)] = position;
    }
  });
}

}  // namespace

void scan(const dispatch::PlanNode& node, std::span<const Array* const> sources, Array& out) {
  const std::size_t axis = at(node.attributes[0] + kMaxDims - out.rank);
  const auto kind = static_cast<ScanKind>(node.attributes[1]);
  with_type(sources[0]->dtype, [&]<typename T>(T) {
    if (kind == ScanKind::kArgMax || kind == ScanKind::kArgMin) {
      scan_positions<T>(kind, *sources[0], axis, out);
    } else {
      scan_values<T>(kind, sources, axis, out);
    }
  });
}

void argsort(const dispatch::PlanNode& node, const Array& x, Array& out) {
  const std::size_t axis = at(node.attributes[0] + kMaxDims - out.rank);
  const bool descending = node.attributes[1] != 0;
  with_type(x.dtype, [&]<typename T>(T) {
    for_each_line(out.extents, axis, [&](std::int64_t first, std::int64_t stride) {
      const auto value = [&](std::int64_t i) { return x.values<T>()[at(first + i * stride)]; };
      std::vector<std::int64_t> order(at(out.extents[axis]));
      std::iota(order.begin(), order.end(), 0);
      std::ranges::stable_sort(order, [&](std::int64_t i, std::int64_t j) {
        return descending ? is_before(value(j), value(i)) : is_before(value(i), value(j));
      });
      for (std::size_t i = 0; i < order.size(); ++i) {
        out.integers[at(first + static_cast<std::int64_t>(i) * stride)] = order[i];
      }
    });
  });
}

void search_sorted(const dispatch::PlanNode& node, const Array& sorted, const Array& values,
                   Array& out) {
  const bool right = node.attributes[0] != 0;
  const Extents strides = broadcast_strides(sorted.extents);
  with_type(values.dtype, [&]<typename T>(T) {
    std::size_t next = 0;
    for_each(out.extents, [&](const Extents& i) {
      const T value = values.values<T>()[next];
      std::int64_t count = 0;
      for (std::int64_t k = 0; k < sorted.extents[3]; ++k) {
        const T element = sorted.values<T>()[at(position_of({i[0], i[1], i[2], k}, strides))];
        const bool counts = right ? !is_before(value, element) : is_before(element, value);
        count += counts ? 1 : 0;
      }
      out.integers[next++] = count;
    });
  });
}

}  // namespace vkml::reference
