// Extents and strides of a tensor. No data, no offset.
//
// Row-major: axis 0 is outermost, as in NumPy, PyTorch and DLPack. Strides are in bytes, as in
// NumPy; a stride of 0 is a broadcast axis, a negative one a reversed axis.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "vkml/core/dtype.h"

namespace vkml {

/// Raising this taxes every kernel: three tensors' extents and strides fill 96 of the 128 bytes of
/// push constants that Vulkan promises. Change it deliberately or not at all.
inline constexpr int kMaxDims = 4;

class Shape {
 public:
  /// Rank 0: one element.
  Shape() = default;

  /// Contiguous shape. Throws ShapeError past kMaxDims, for negative extents, and when the size in
  /// bytes does not fit 63 bits; in the name of `op`, if there is one.
  Shape(std::span<const std::int64_t> extents, DType dtype, const char* op = nullptr);
  Shape(std::initializer_list<std::int64_t> extents, DType dtype)
      : Shape(std::span(extents.begin(), extents.size()), dtype) {}

  /// Any strides, in bytes.
  Shape(std::span<const std::int64_t> extents, std::span<const std::int64_t> strides);

  int rank() const { return rank_; }
  std::int64_t operator[](int axis) const { return extents_[static_cast<std::size_t>(axis)]; }
  std::int64_t stride(int axis) const { return strides_[static_cast<std::size_t>(axis)]; }
  std::span<const std::int64_t> extents() const& {
    return {extents_.data(), static_cast<std::size_t>(rank_)};
  }
  /// Of a temporary they would dangle: name the shape first, or ask the tensor.
  std::span<const std::int64_t> extents() const&& = delete;
  std::span<const std::int64_t> strides() const {
    return {strides_.data(), static_cast<std::size_t>(rank_)};
  }

  /// Number of elements: 1 for rank 0, 0 if any extent is 0.
  std::int64_t numel() const;
  /// Whether elements lie densely in row-major order (axes of extent 1 may have any stride).
  bool is_contiguous(std::size_t element_bytes) const;
  bool same_extents(const Shape& other) const;

  /// "(2, 3)", "(5,)", "()".
  std::string to_string() const;

  friend bool operator==(const Shape&, const Shape&) = default;

 private:
  std::array<std::int64_t, kMaxDims> extents_{};
  std::array<std::int64_t, kMaxDims> strides_{};
  int rank_ = 0;
};

/// "(2, 3)" from extents alone.
std::string to_string(std::span<const std::int64_t> extents);

/// Resolves a possibly negative axis. Throws ShapeError naming the operator when out of range.
int normalize_axis(const char* op, std::int64_t axis, int rank);

/// Extents that a and b broadcast to (NumPy's rule). Throws ShapeError naming the operator.
Shape broadcast_extents(const char* op, const Shape& a, const Shape& b, DType dtype);

}  // namespace vkml
