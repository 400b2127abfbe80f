#include "vkml/ops/autocast.h"

#include <fmt/format.h>

#include <utility>

#include "vkml/core/error.h"
#include "vkml/ops/functions.h"

namespace vkml::graph {
namespace {

thread_local DType product_dtype = DType::kF32;

}  // namespace

DType autocast_dtype() { return product_dtype; }

DType set_autocast_dtype(DType dtype) {
  if (dtype != DType::kF32 && dtype != DType::kF16 && dtype != DType::kBF16) {
    throw DTypeError(
        fmt::format("[autocast] products cannot take their operands as {}. Use float16 or bfloat16",
                    name_of(dtype)));
  }
  return std::exchange(product_dtype, dtype);
}

Value as_product_operand(const Value& x) {
  return product_dtype == DType::kF32 || x.dtype() != DType::kF32 ? x : cast(x, product_dtype);
}

Value as_precise_operand(const Value& x) {
  const bool is_half = x.dtype() == DType::kF16 || x.dtype() == DType::kBF16;
  return product_dtype == DType::kF32 || !is_half ? x : cast(x, DType::kF32);
}

}  // namespace vkml::graph
