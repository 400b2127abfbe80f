#include "vkml/core/number.h"

#include <limits>
#include <string>

#include "vkml/core/error.h"

namespace vkml {
namespace {

struct Range {
  std::int64_t least, greatest;
};

template <typename Integer>
constexpr Range range() {
  return {std::numeric_limits<Integer>::min(), std::numeric_limits<Integer>::max()};
}

Range range_of(DType dtype) {
  if (dtype == DType::kU8) return range<std::uint8_t>();
  if (dtype == DType::kI32) return range<std::int32_t>();
  return range<std::int64_t>();
}

}  // namespace

bool fits(std::int64_t value, DType dtype) {
  const Range range = range_of(dtype);
  return value >= range.least && value <= range.greatest;
}

void check_fits(const char* op, std::int64_t value, DType dtype) {
  if (fits(value, dtype)) return;
  const Range range = range_of(dtype);
  throw ArgumentError("[" + std::string(op) + "] " + std::to_string(value) + " does not fit " +
                      std::string(name_of(dtype)) + ", which holds " + std::to_string(range.least) +
                      " to " + std::to_string(range.greatest) + ". Use a wider dtype: vkml.int64");
}

}  // namespace vkml
