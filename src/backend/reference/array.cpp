#include "array.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "vkml/core/error.h"
#include "vkml/core/half.h"

namespace vkml::reference {
namespace {

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

/// A floating format: bits of precision, exponent of the smallest subnormal, largest finite value.
struct Format {
  int precision;
  int least_exponent;
  double largest;
};

double round_to(double value, const Format& format) {
  if (value == 0 || !std::isfinite(value)) return value;
  const int quantum = std::max(std::ilogb(value) + 1 - format.precision, format.least_exponent);
  const double result = std::ldexp(std::nearbyint(std::ldexp(value, -quantum)), quantum);
  if (std::fabs(result) <= format.largest) return result;
  return std::copysign(std::numeric_limits<double>::infinity(), value);
}

template <typename Integer>
std::int64_t saturated(double value) {
  if (std::isnan(value)) return 0;
  constexpr auto kLeast = std::numeric_limits<Integer>::min();
  constexpr auto kGreatest = std::numeric_limits<Integer>::max();
  // The greatest i64 has no double: what reaches the next power of two is past it.
  if (value <= static_cast<double>(kLeast)) return kLeast;
  if (value >= std::ldexp(1.0, std::numeric_limits<Integer>::digits)) return kGreatest;
  return static_cast<std::int64_t>(std::trunc(value));
}

std::int64_t to_integer(double value, DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return value != 0 ? 1 : 0;
    case DType::kU8:
      return saturated<std::uint8_t>(value);
    case DType::kI32:
      return saturated<std::int32_t>(value);
    default:
      return saturated<std::int64_t>(value);
  }
}

double to_float(std::int64_t value, DType dtype) {
  // A double would round once more before f32 does.
  if (dtype == DType::kF32) return static_cast<double>(static_cast<float>(value));
  return rounded(static_cast<double>(value), dtype);
}

template <typename T>
T read(const std::byte* memory, std::int64_t index) {
  T value;
  std::memcpy(&value, memory + index * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
  return value;
}
template <typename T>
void write(std::byte* memory, std::int64_t index, T value) {
  std::memcpy(memory + index * static_cast<std::int64_t>(sizeof(T)), &value, sizeof(T));
}

double read_float(const std::byte* memory, DType dtype, std::int64_t index) {
  switch (dtype) {
    case DType::kF16:
      return static_cast<double>(f16_to_f32(read<std::uint16_t>(memory, index)));
    case DType::kBF16:
      return static_cast<double>(bf16_to_f32(read<std::uint16_t>(memory, index)));
    case DType::kF32:
      return static_cast<double>(read<float>(memory, index));
    default:
      return read<double>(memory, index);
  }
}
std::int64_t read_integer(const std::byte* memory, DType dtype, std::int64_t index) {
  switch (dtype) {
    case DType::kBool:
      return read<std::uint8_t>(memory, index) != 0 ? 1 : 0;
    case DType::kU8:
      return read<std::uint8_t>(memory, index);
    case DType::kI32:
      return read<std::int32_t>(memory, index);
    default:
      return read<std::int64_t>(memory, index);
  }
}

void write_element(std::byte* memory, DType dtype, std::int64_t index, double value) {
  switch (dtype) {
    case DType::kF16:
      return write(memory, index, f32_to_f16(static_cast<float>(value)));
    case DType::kBF16:
      return write(memory, index, f32_to_bf16(static_cast<float>(value)));
    case DType::kF32:
      return write(memory, index, static_cast<float>(value));
    default:
      return write(memory, index, value);
  }
}
void write_element(std::byte* memory, DType dtype, std::int64_t index, std::int64_t value) {
  switch (dtype) {
    case DType::kBool:
    case DType::kU8:
      return write(memory, index, static_cast<std::uint8_t>(value));
    case DType::kI32:
      return write(memory, index, static_cast<std::int32_t>(value));
    default:
      return write(memory, index, value);
  }
}

}  // namespace

Extents padded(const Shape& shape) {
  Extents extents{1, 1, 1, 1};
  for (int axis = 0; axis < shape.rank(); ++axis) {
    extents[at(axis + kMaxDims - shape.rank())] = shape[axis];
  }
  return extents;
}

Extents dense_strides(const Extents& extents) {
  Extents strides{};
  std::int64_t stride = 1;
  for (int axis = kMaxDims - 1; axis >= 0; --axis) {
    strides[at(axis)] = stride;
    stride *= extents[at(axis)];
  }
  return strides;
}

Extents broadcast_strides(const Extents& extents) {
  Extents strides = dense_strides(extents);
  for (int axis = 0; axis < kMaxDims; ++axis) {
    if (extents[at(axis)] == 1) strides[at(axis)] = 0;
  }
  return strides;
}

Array::Array(DType of, const Shape& shape) : dtype(of), rank(shape.rank()), extents(padded(shape)) {
  if (is_floating(dtype)) {
    floats.resize(at(numel()));
  } else {
    integers.resize(at(numel()));
  }
}

double rounded(double value, DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return round_to(value, {11, -24, 65504.0});
    case DType::kBF16:
      return round_to(value, {8, -133, 0x1.fep127});
    case DType::kF32:
      return static_cast<double>(static_cast<float>(value));
    default:
      return value;
  }
}

std::int64_t rounded(std::int64_t value, DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return value != 0 ? 1 : 0;
    case DType::kU8:
      return static_cast<std::uint8_t>(value);
    case DType::kI32:
      return static_cast<std::int32_t>(value);
    default:
      return value;
  }
}

Array cast(const Array& source, DType dtype) {
  Array result;
  result.dtype = dtype;
  result.rank = source.rank;
  result.extents = source.extents;
  if (is_floating(dtype)) {
    for (const double value : source.floats) result.floats.push_back(rounded(value, dtype));
    for (const std::int64_t value : source.integers)
      result.floats.push_back(to_float(value, dtype));
  } else {
    for (const double value : source.floats) result.integers.push_back(to_integer(value, dtype));
    for (const std::int64_t value : source.integers) {
      result.integers.push_back(rounded(value, dtype));
    }
  }
  return result;
}

Array load(const std::byte* memory, DType dtype, const Shape& shape, std::int64_t offset,
           const Extents& strides) {
  Array result(dtype, shape);
  std::int64_t next = 0;
  for_each(result.extents, [&](const Extents& index) {
    const std::int64_t from = offset + position_of(index, strides);
    if (is_floating(dtype)) {
      result.floats[at(next++)] = read_float(memory, dtype, from);
    } else {
      result.integers[at(next++)] = read_integer(memory, dtype, from);
    }
  });
  return result;
}

void store(const Array& array, std::byte* memory) {
  with_type(array.dtype, [&]<typename T>(T) {
    const auto& values = array.values<T>();
    for (std::int64_t i = 0; i < array.numel(); ++i) {
      write_element(memory, array.dtype, i, values[at(i)]);
    }
  });
}

}  // namespace vkml::reference
