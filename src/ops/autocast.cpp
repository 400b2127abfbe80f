#include "vkml/ops/autocast.h"

#include <fmt/format.h>

#include <optional>

#include "vkml/core/error.h"
#include "vkml/ops/functions.h"

namespace vkml::graph {
namespace {

/// Half precision; none while the mode is off.
thread_local std::optional<DType> t_product_dtype;

}  // namespace

bool is_autocast_enabled() { return t_product_dtype.has_value(); }

DType autocast_dtype() { return t_product_dtype.value_or(DType::kF32); }

DType set_autocast_dtype(DType dtype) {
  if (dtype != DType::kF32 && dtype != DType::kF16 && dtype != DType::kBF16) {
    throw DTypeError(
        fmt::format("[autocast] products cannot take their operands as {}. Use float16 or bfloat16",
                    name_of(dtype)));
  }
  const DType before = autocast_dtype();
  t_product_dtype = dtype == DType::kF32 ? std::nullopt : std::optional(dtype);
  return before;
}

Value as_product_operand(const Value& x) {
  return t_product_dtype && x.dtype() == DType::kF32 ? cast(x, *t_product_dtype) : x;
}

Value as_precise_operand(const Value& x) {
  const bool is_half = x.dtype() == DType::kF16 || x.dtype() == DType::kBF16;
  return t_product_dtype && is_half ? cast(x, DType::kF32) : x;
}

}  // namespace vkml::graph
