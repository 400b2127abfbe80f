#include "vkml/core/shape.h"

#include <algorithm>
#include <limits>

#include "vkml/core/error.h"

namespace vkml {
namespace {

[[noreturn]] void refuse(const char* op, const std::string& text) {
  throw ShapeError(op == nullptr ? text : "[" + std::string(op) + "] " + text);
}

void check_extents(std::span<const std::int64_t> extents, const char* op) {
  if (extents.size() > kMaxDims) {
    refuse(op, "rank " + std::to_string(extents.size()) +
                   " exceeds kMaxDims=" + std::to_string(kMaxDims));
  }
  for (const std::int64_t extent : extents) {
    if (extent < 0)
      refuse(op, "negative extent in " + to_string(extents) + ". An extent is 0 or more");
  }
}

}  // namespace

Shape::Shape(std::span<const std::int64_t> extents, DType dtype, const char* op)
    : rank_(static_cast<int>(extents.size())) {
  check_extents(extents, op);
  std::ranges::copy(extents, extents_.begin());
  std::int64_t stride = static_cast<std::int64_t>(size_of(dtype));
  for (std::size_t axis = extents.size(); axis-- > 0;) {
    strides_[axis] = stride;
    // An empty tensor keeps the strides of a tensor with one element there, as NumPy does.
    const std::int64_t extent = std::max<std::int64_t>(extents[axis], 1);
    if (stride > std::numeric_limits<std::int64_t>::max() / extent) {
      refuse(op, "shape " + vkml::to_string(extents) + " of " + std::string(name_of(dtype)) +
                     " needs more than 2^63 bytes. Use smaller extents");
    }
    stride *= extent;
  }
}

Shape::Shape(std::span<const std::int64_t> extents, std::span<const std::int64_t> strides)
    : rank_(static_cast<int>(extents.size())) {
  check_extents(extents, nullptr);
  std::ranges::copy(extents, extents_.begin());
  std::ranges::copy(strides, strides_.begin());
}

std::int64_t Shape::numel() const {
  std::int64_t count = 1;
  for (int axis = 0; axis < rank_; ++axis) count *= (*this)[axis];
  return count;
}

bool Shape::is_contiguous(std::size_t element_bytes) const {
  if (numel() == 0) return true;
  auto expected = static_cast<std::int64_t>(element_bytes);
  for (int axis = rank_ - 1; axis >= 0; --axis) {
    if ((*this)[axis] == 1) continue;
    if (stride(axis) != expected) return false;
    expected *= (*this)[axis];
  }
  return true;
}

bool Shape::same_extents(const Shape& other) const {
  return std::ranges::equal(extents(), other.extents());
}

std::string Shape::to_string() const { return vkml::to_string(extents()); }

std::string to_string(std::span<const std::int64_t> extents) {
  std::string text = "(";
  for (std::size_t axis = 0; axis < extents.size(); ++axis) {
    if (axis > 0) text += ", ";
    text += std::to_string(extents[axis]);
  }
  if (extents.size() == 1) text += ",";
  return text + ")";
}

int normalize_axis(const char* op, std::int64_t axis, int rank) {
  const std::int64_t resolved = axis < 0 ? axis + rank : axis;
  if (resolved < 0 || resolved >= rank) {
    throw ShapeError("[" + std::string(op) + "] axis " + std::to_string(axis) +
                     " is out of range for rank " + std::to_string(rank) +
                     (rank == 0
                          ? ". It has no axes"
                          : ". Use " + std::to_string(-rank) + " to " + std::to_string(rank - 1)));
  }
  return static_cast<int>(resolved);
}

Shape broadcast_extents(const char* op, const Shape& a, const Shape& b, DType dtype) {
  const int rank = std::max(a.rank(), b.rank());
  std::array<std::int64_t, kMaxDims> extents{};
  for (int axis = 0; axis < rank; ++axis) {
    const int axis_a = axis - (rank - a.rank());
    const int axis_b = axis - (rank - b.rank());
    const std::int64_t extent_a = axis_a < 0 ? 1 : a[axis_a];
    const std::int64_t extent_b = axis_b < 0 ? 1 : b[axis_b];
    if (extent_a != extent_b && extent_a != 1 && extent_b != 1) {
      throw ShapeError("[" + std::string(op) + "] shapes " + a.to_string() + " and " +
                       b.to_string() + " do not broadcast: axis " + std::to_string(axis - rank) +
                       " has extents " + std::to_string(extent_a) + " and " +
                       std::to_string(extent_b) + ". Make them equal, or one of them 1");
    }
    extents[static_cast<std::size_t>(axis)] = extent_a == 1 ? extent_b : extent_a;
  }
  return Shape(std::span(extents.data(), static_cast<std::size_t>(rank)), dtype, op);
}

}  // namespace vkml
