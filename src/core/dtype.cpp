#include "vkml/core/dtype.h"

#include <limits>

namespace vkml {

std::string_view name_of(DType dtype) {
  constexpr std::string_view kNames[kDTypeCount] = {"bool",    "uint8",    "int32",   "int64",
                                                    "float16", "bfloat16", "float32", "float64"};
  return kNames[static_cast<int>(dtype)];
}

double largest_number(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return 65504;
    case DType::kBF16:
      return 0x1.fep127;
    case DType::kF32:
      return std::numeric_limits<float>::max();
    default:
      return std::numeric_limits<double>::max();
  }
}

DType promote(DType a, DType b) {
  if (a == b) return a;
  const DType low = a < b ? a : b;
  const DType high = a < b ? b : a;
  const bool halves_differ = low == DType::kF16 && high == DType::kBF16;
  return halves_differ ? DType::kF32 : high;
}

namespace {
int kind_rank(DType dtype) {
  if (dtype == DType::kBool) return 0;
  return is_integer(dtype) ? 1 : 2;
}
}  // namespace

DType promote_weak(DType strong, DType weak_scalar) {
  if (kind_rank(strong) >= kind_rank(weak_scalar)) return strong;
  if (kind_rank(weak_scalar) == 2) return kDefaultFloat;
  return kDefaultInteger;
}

void Promotion::add(DType dtype, bool is_weak) {
  DType& met = is_weak ? weak_ : strong_;
  bool& has_met = is_weak ? has_weak_ : has_strong_;
  met = has_met ? promote(met, dtype) : dtype;
  has_met = true;
}

DType Promotion::dtype() const {
  if (!has_strong_) return weak_;
  return has_weak_ ? promote_weak(strong_, weak_) : strong_;
}

}  // namespace vkml
