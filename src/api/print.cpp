// Tensor::to_string(): nested brackets as NumPy and PyTorch print them.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "vkml/api/functions.h"
#include "vkml/api/tensor.h"

namespace vkml {
namespace {

constexpr std::int64_t kSummaryAbove = 1000;  // elements
constexpr std::int64_t kEdge = 3;             // elements shown at each end of an axis

struct Printer {
  std::vector<double> numbers;
  std::vector<std::int64_t> integers;
  DType dtype = DType::kF32;
  std::vector<std::int64_t> extents;
  bool summarize = false;
  bool scientific = false;
  bool whole = true;
  int width = 0;

  std::string element(std::int64_t at) const {
    const auto i = static_cast<std::size_t>(at);
    if (dtype == DType::kBool) return integers[i] != 0 ? "True" : "False";
    if (!is_floating(dtype)) return fmt::format("{}", integers[i]);
    const double x = numbers[i];
    if (!std::isfinite(x)) return std::isnan(x) ? "nan" : (x < 0 ? "-inf" : "inf");
    if (scientific) return fmt::format("{:.4e}", x);
    return whole ? fmt::format("{:.0f}.", x) : fmt::format("{:.4f}", x);
  }

  template <typename Visit>
  void visit_shown(std::size_t axis, std::int64_t base, const Visit& visit) const {
    if (axis == extents.size()) {
      visit(base);
      return;
    }
    std::int64_t inner = 1;
    for (std::size_t k = axis + 1; k < extents.size(); ++k) inner *= extents[k];
    for (std::int64_t i = 0; i < extents[axis]; ++i) {
      if (summarize && extents[axis] > 2 * kEdge && i == kEdge) i = extents[axis] - kEdge;
      visit_shown(axis + 1, base + i * inner, visit);
    }
  }

  void choose_format() {
    double largest = 0;
    double smallest = INFINITY;
    visit_shown(0, 0, [&](std::int64_t at) {
      if (!is_floating(dtype)) return;
      const double x = std::fabs(numbers[static_cast<std::size_t>(at)]);
      if (!std::isfinite(x)) return;
      whole = whole && x == std::floor(x);
      largest = std::max(largest, x);
      if (x != 0) smallest = std::min(smallest, x);
    });
    scientific = largest >= 1e8 || (largest > 0 && (largest / smallest > 1000 && !whole)) ||
                 (largest > 0 && largest < 1e-4);
    visit_shown(0, 0, [&](std::int64_t at) {
      width = std::max(width, static_cast<int>(element(at).size()));
    });
  }

  void write(std::string& out, std::size_t axis, std::int64_t base, std::size_t indent) const {
    if (axis == extents.size()) {
      out += fmt::format("{:>{}}", element(base), width);
      return;
    }
    std::int64_t inner = 1;
    for (std::size_t k = axis + 1; k < extents.size(); ++k) inner *= extents[k];
    const bool last = axis + 1 == extents.size();
    const std::string separator = last ? ", "
                                       : "," + std::string(extents.size() - axis - 1, '\n') +
                                             std::string(indent + axis + 1, ' ');
    out += "[";
    for (std::int64_t i = 0; i < extents[axis]; ++i) {
      if (i > 0) out += separator;
      if (summarize && extents[axis] > 2 * kEdge && i == kEdge) {
        out += "...";
        out += separator;
        i = extents[axis] - kEdge;
      }
      write(out, axis + 1, base + i * inner, indent);
    }
    out += "]";
  }
};

template <typename T, typename U>
void unpack(const std::vector<std::byte>& bytes, std::vector<U>& values) {
  values.resize(bytes.size() / sizeof(T));
  for (std::size_t i = 0; i < values.size(); ++i) {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    values[i] = static_cast<U>(value);
  }
}

std::string text_of(const Tensor& t) {
  Printer printer;
  printer.dtype = t.dtype();
  printer.extents = t.extents();
  printer.summarize = t.numel() > kSummaryAbove;
  switch (printer.dtype) {
    case DType::kBool:
    case DType::kU8:
      unpack<std::uint8_t>(t.to_host(), printer.integers);
      break;
    case DType::kI32:
      unpack<std::int32_t>(t.to_host(), printer.integers);
      break;
    case DType::kI64:
      unpack<std::int64_t>(t.to_host(), printer.integers);
      break;
    case DType::kF64:
      unpack<double>(t.to_host(), printer.numbers);
      break;
    default:
      unpack<float>(to(t.detach(), DType::kF32).to_host(), printer.numbers);
      break;
  }
  printer.choose_format();
  constexpr std::string_view kOpening = "tensor(";
  std::string text(kOpening);
  printer.write(text, 0, 0, kOpening.size());
  const DType dtype = printer.dtype;
  if (dtype != kDefaultFloat && dtype != kDefaultInteger && dtype != DType::kBool) {
    text += fmt::format(", dtype=vkml.{}", name_of(dtype));
  }
  if (t.numel() == 0) text += fmt::format(", shape={}", t.shape().to_string());
  if (t.device() != kCpu) text += fmt::format(", device='{}'", to_string(t.device()));
  if (t.requires_grad()) text += ", requires_grad=True";
  return text + ")";
}

}  // namespace

std::string Tensor::to_string() const {
  return is_defined() ? text_of(pinned()) : "tensor(undefined)";
}

}  // namespace vkml
