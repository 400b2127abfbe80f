#include "reductions.h"

#include <cmath>
#include <limits>

#include "vkml/core/error.h"
#include "vkml/ops/scalar_program.h"

namespace vkml::reference {
namespace {

using ops::ReduceKind;

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

double sum(double a, double b) { return a + b; }
std::int64_t sum(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}
double product(double a, double b) { return a * b; }
std::int64_t product(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
}
bool is_nan(double x) { return std::isnan(x); }
bool is_nan(std::int64_t) { return false; }

/// Position within the row of its first largest (or smallest) element; the first NaN, if any.
template <typename T>
std::size_t extreme(const std::vector<T>& row, bool largest) {
  std::size_t best = 0;
  for (std::size_t k = 0; k < row.size(); ++k) {
    if (is_nan(row[k])) return k;
    if (largest ? row[k] > row[best] : row[k] < row[best]) best = k;
  }
  return best;
}

/// What an extreme of no elements is.
double identity(double, bool largest) {
  const double infinity = std::numeric_limits<double>::infinity();
  return largest ? -infinity : infinity;
}
std::int64_t identity(std::int64_t, bool largest) {
  using Limits = std::numeric_limits<std::int64_t>;
  return largest ? Limits::min() : Limits::max();
}

template <typename T>
T reduced(ReduceKind kind, const std::vector<T>& row) {
  const bool largest = kind == ReduceKind::kMax || kind == ReduceKind::kArgMax;
  T result = kind == ReduceKind::kProd || kind == ReduceKind::kAll ? T{1} : T{0};
  switch (kind) {
    case ReduceKind::kSum:
      for (const T value : row) result = sum(result, value);
      return result;
    case ReduceKind::kProd:
      for (const T value : row) result = product(result, value);
      return result;
    case ReduceKind::kMax:
    case ReduceKind::kMin:
      return row.empty() ? identity(T{}, largest) : row[extreme(row, largest)];
    case ReduceKind::kArgMax:
    case ReduceKind::kArgMin:
      return static_cast<T>(extreme(row, largest));
    case ReduceKind::kAny:
      for (const T value : row) result = value != 0 ? T{1} : result;
      return result;
    case ReduceKind::kAll:
      for (const T value : row) result = value == 0 ? T{0} : result;
      return result;
  }
  throw InternalError("unknown reduction");
}

}  // namespace

Array evaluate_reduction(const dispatch::PlanNode& node, const Array& x) {
  // Extents and strides of the axes that stay, and of those that form a row.
  Extents outer = x.extents;
  Extents row_extents{1, 1, 1, 1};
  for (int axis = 0; axis < x.rank; ++axis) {
    if (((node.attributes[0] >> axis) & 1) == 0) continue;
    const std::size_t place = at(axis + kMaxDims - x.rank);
    std::swap(outer[place], row_extents[place]);
  }
  const Extents strides = dense_strides(x.extents);
  Array out(node.dtype, node.shape);
  std::size_t next = 0;
  with_type(x.dtype, [&]<typename T>(T) {
    std::vector<T> row;
    for_each(outer, [&](const Extents& i) {
      row.clear();
      for_each(row_extents, [&](const Extents& k) {
        row.push_back(x.values<T>()[at(position_of(i, strides) + position_of(k, strides))]);
      });
      const T value = reduced(static_cast<ReduceKind>(node.op->id), row);
      if (is_floating(out.dtype)) {
        out.floats[next++] = rounded(static_cast<double>(value), out.dtype);
      } else {
        out.integers[next++] = rounded(static_cast<std::int64_t>(value), out.dtype);
      }
    });
  });
  return out;
}

}  // namespace vkml::reference
