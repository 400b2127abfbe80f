// Leaves from numbers and numbers from values, on the reference backend, for tests that stay below
// the api layer.
#pragma once

#include <bit>
#include <cstring>
#include <utility>
#include <vector>

#include "vkml/backend/reference/register.h"
#include "vkml/core/half.h"
#include "vkml/dispatch/backend.h"
#include "vkml/dispatch/executor.h"
#include "vkml/ops/functions.h"

namespace vkml::values {

using graph::Value;
using List = std::vector<std::int64_t>;

/// vkml.cpu is the reference from here on.
inline void use_reference() {
  static const bool once = [] {
    reference::register_reference_backend();
    return true;
  }();
  static_cast<void>(once);
}

template <typename T>
void put(std::byte* memory, std::size_t index, T value) {
  std::memcpy(memory + index * sizeof(T), &value, sizeof(T));
}
template <typename T>
T get(const std::byte* memory, std::size_t index) {
  T value;
  std::memcpy(&value, memory + index * sizeof(T), sizeof(T));
  return value;
}

inline void put_number(std::byte* memory, DType dtype, std::size_t index, double value) {
  switch (dtype) {
    case DType::kBool:
    case DType::kU8:
      return put(memory, index, static_cast<std::uint8_t>(value));
    case DType::kI32:
      return put(memory, index, static_cast<std::int32_t>(value));
    case DType::kI64:
      return put(memory, index, static_cast<std::int64_t>(value));
    case DType::kF16:
      return put(memory, index, f32_to_f16(static_cast<float>(value)));
    case DType::kBF16:
      return put(memory, index, f32_to_bf16(static_cast<float>(value)));
    case DType::kF32:
      return put(memory, index, static_cast<float>(value));
    case DType::kF64:
      return put(memory, index, value);
  }
}
inline double get_number(const std::byte* memory, DType dtype, std::size_t index) {
  switch (dtype) {
    case DType::kBool:
    case DType::kU8:
      return get<std::uint8_t>(memory, index);
    case DType::kI32:
      return get<std::int32_t>(memory, index);
    case DType::kI64:
      return static_cast<double>(get<std::int64_t>(memory, index));
    case DType::kF16:
      return static_cast<double>(f16_to_f32(get<std::uint16_t>(memory, index)));
    case DType::kBF16:
      return static_cast<double>(bf16_to_f32(get<std::uint16_t>(memory, index)));
    case DType::kF32:
      return static_cast<double>(get<float>(memory, index));
    case DType::kF64:
      return get<double>(memory, index);
  }
  return 0;
}

/// A computed leaf.
inline Value leaf(const List& extents, const std::vector<double>& numbers,
                  DType dtype = DType::kF32, std::uint32_t flags = 0) {
  use_reference();
  const Shape shape(extents, dtype);
  StoragePtr storage =
      dispatch::backend_for(kCpu).allocator().allocate(numbers.size() * size_of(dtype));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    put_number(static_cast<std::byte*>(storage->host()), dtype, i, numbers[i]);
  }
  return Value(graph::make_leaf(std::move(storage), 0, shape, dtype, flags));
}
/// One that collects gradients.
inline Value parameter(const List& extents, const std::vector<double>& numbers,
                       DType dtype = DType::kF32) {
  return leaf(extents, numbers, dtype, graph::kFlagRequiresGrad | graph::kFlagGradientStop);
}

/// 0, 1, 2, ...
inline std::vector<double> count_up(std::int64_t count) {
  std::vector<double> numbers;
  for (std::int64_t i = 0; i < count; ++i) numbers.push_back(static_cast<double>(i));
  return numbers;
}

inline void realize(const Value& value) {
  use_reference();
  dispatch::realize({&value.node(), 1});
}

/// The elements in row-major order.
inline std::vector<double> numbers_of(const Value& value) {
  const Value dense = graph::contiguous(value);
  realize(dense);
  dense->storage()->wait();
  std::vector<double> numbers;
  const auto* memory =
      static_cast<const std::byte*>(dense->storage()->host()) + dense->storage_offset();
  for (std::int64_t i = 0; i < dense->numel(); ++i) {
    numbers.push_back(get_number(memory, dense.dtype(), static_cast<std::size_t>(i)));
  }
  return numbers;
}

}  // namespace vkml::values
