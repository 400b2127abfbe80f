// Element types: their sizes, names and promotion.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace vkml {

enum class DType : std::uint8_t { kBool, kU8, kI32, kI64, kF16, kBF16, kF32, kF64 };

inline constexpr int kDTypeCount = 8;
inline constexpr DType kDefaultFloat = DType::kF32;
inline constexpr DType kDefaultInteger = DType::kI32;

/// Bytes of one element.
constexpr std::size_t size_of(DType dtype) {
  constexpr std::size_t kSizes[kDTypeCount] = {1, 1, 4, 8, 2, 2, 4, 8};
  return kSizes[static_cast<int>(dtype)];
}

constexpr bool is_floating(DType dtype) { return dtype >= DType::kF16; }
constexpr bool is_integer(DType dtype) {
  return dtype == DType::kU8 || dtype == DType::kI32 || dtype == DType::kI64;
}

/// Full name, as in Python: "float32", "bool".
std::string_view name_of(DType dtype);

/// The largest finite number of a floating type.
double largest_number(DType dtype);

/// The type two strong operands meet in (Array API and PyTorch): bool < u8 < i32 < i64 < floats,
/// f16 with bf16 gives f32.
DType promote(DType a, DType b);

/// The type of a strong operand meeting a weak (Python) scalar: the scalar changes the type only
/// when its kind (bool < integer < float) is higher than the operand's.
DType promote_weak(DType strong, DType weak_scalar);

/// Where any number of operands meet, in whichever order they come: strong ones among themselves,
/// then with the weak ones.
class Promotion {
 public:
  void add(DType dtype, bool is_weak);
  /// Of at least one operand.
  DType dtype() const;
  bool is_weak() const { return !has_strong_; }

 private:
  DType strong_ = DType::kBool, weak_ = DType::kBool;
  bool has_strong_ = false, has_weak_ = false;
};

}  // namespace vkml
