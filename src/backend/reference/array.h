// A value of the reference: dense, row-major, held in double (floats) or 64 bits (integers and
// bools), each element one that its dtype can represent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "vkml/dispatch/execution_graph.h"

namespace vkml::reference {

using dispatch::Extents;

/// Extents padded on the left with 1.
Extents padded(const Shape& shape);
/// Row-major strides in elements.
Extents dense_strides(const Extents& extents);
/// The same, but 0 along axes of extent 1: reads the array at the elements of a shape that it
/// broadcasts to.
Extents broadcast_strides(const Extents& extents);

inline std::int64_t position_of(const Extents& index, const Extents& strides) {
  return index[0] * strides[0] + index[1] * strides[1] + index[2] * strides[2] +
         index[3] * strides[3];
}

/// Calls visit(index) for every element, the last axis fastest.
template <typename Visit>
void for_each(const Extents& extents, Visit visit) {
  Extents i{};
  for (i[0] = 0; i[0] < extents[0]; ++i[0]) {
    for (i[1] = 0; i[1] < extents[1]; ++i[1]) {
      for (i[2] = 0; i[2] < extents[2]; ++i[2]) {
        for (i[3] = 0; i[3] < extents[3]; ++i[3]) visit(i);
      }
    }
  }
}

struct Array {
  DType dtype = DType::kF32;
  int rank = 0;  // of the node; the extents are padded
  Extents extents{1, 1, 1, 1};
  std::vector<double> floats;  // one of the two holds the elements
  std::vector<std::int64_t> integers;

  Array() = default;
  /// Zeros.
  Array(DType dtype, const Shape& shape);

  std::int64_t numel() const { return dispatch::numel(extents); }

  /// The elements as double or std::int64_t, whichever the dtype is held in.
  template <typename T>
  auto& values() {
    if constexpr (std::is_same_v<T, double>) {
      return floats;
    } else {
      return integers;
    }
  }
  template <typename T>
  const auto& values() const {
    return const_cast<Array*>(this)->values<T>();
  }
};

/// Calls action(T{}) with the type that elements of `dtype` are held in.
template <typename Action>
void with_type(DType dtype, Action action) {
  if (is_floating(dtype)) {
    action(double{});
  } else {
    action(std::int64_t{});
  }
}

/// The nearest value of a floating dtype, ties to even, in one rounding.
double rounded(double value, DType dtype);
/// The value of an integer dtype with the same low bits; of bool, whether it is not 0.
std::int64_t rounded(std::int64_t value, DType dtype);

/// Another dtype: floats become integers by truncation, limited to the dtype's range, NaN gives 0.
Array cast(const Array& source, DType dtype);

/// Reads the elements of a strided window (offset and strides in elements) on memory.
Array load(const std::byte* memory, DType dtype, const Shape& shape, std::int64_t offset,
           const Extents& strides);
/// Writes the elements densely.
void store(const Array& array, std::byte* memory);

}  // namespace vkml::reference
