// Products of every form as matrix products: axes are permuted into (batch, rows, inner) and
// (batch, inner, columns), which costs nothing where strides allow, and merged.

#include <algorithm>
#include <map>

#include "record.h"
#include "vkml/ops/autocast.h"
#include "vkml/ops/composites.h"

namespace vkml::graph {
namespace {

void check_vectors(const char* op, const Value& a, const Value& b) {
  if (a.rank() == 1 && b.rank() == 1) return;
  throw ShapeError(fmt::format("[{}] needs two vectors, not {} and {}", op, a.shape().to_string(),
                               b.shape().to_string()));
}

/// An operand of einsum: a value and a label for each of its axes.
struct Labelled {
  Value value;
  std::string labels;

  std::int64_t extent(char label) const {
    return value.shape()[static_cast<int>(labels.find(label))];
  }
  bool has(char label) const { return labels.find(label) != std::string::npos; }
};

/// Axes in the order of `labels`, all of which the operand has.
Value in_order(const Labelled& operand, const std::string& labels) {
  ExtentList axes;
  for (const char label : labels) {
    axes.push_back(static_cast<std::int64_t>(operand.labels.find(label)));
  }
  return permute(operand.value, axes.span());
}

Labelled sum_labels(const Labelled& operand, const std::string& kept) {
  ExtentList axes;
  Labelled result;
  for (std::size_t i = 0; i < operand.labels.size(); ++i) {
    if (kept.find(operand.labels[i]) == std::string::npos) {
      axes.push_back(static_cast<std::int64_t>(i));
    } else {
      result.labels += operand.labels[i];
    }
  }
  result.value = axes.rank == 0 ? operand.value : sum(operand.value, axes.span(), false);
  return result;
}

std::int64_t extent_of(const Labelled& operand, const std::string& labels) {
  std::int64_t count = 1;
  for (const char label : labels) count *= operand.extent(label);
  return count;
}

/// The product of two operands, summed over the labels that are not in `kept`.
Labelled contract(const Labelled& left, const Labelled& right, const std::string& kept) {
  const Labelled a = sum_labels(left, kept + right.labels);
  const Labelled b = sum_labels(right, kept + left.labels);
  std::string batch, inner, rows, columns;
  for (const char label : a.labels) {
    const bool is_kept = kept.find(label) != std::string::npos;
    (b.has(label) ? (is_kept ? batch : inner) : rows) += label;
  }
  for (const char label : b.labels) {
    if (!a.has(label)) columns += label;
  }
  Labelled result;
  result.labels = batch + rows + columns;
  if (result.labels.size() > kMaxDims) {
    throw ShapeError(fmt::format("[einsum] an intermediate result of rank {} exceeds kMaxDims={}",
                                 result.labels.size(), kMaxDims));
  }
  ExtentList extents;
  for (const char label : result.labels) {
    extents.push_back(a.has(label) ? a.extent(label) : b.extent(label));
  }
  const std::int64_t batches = extent_of(a, batch);
  if (inner.empty()) {
    // Nothing is summed: an elementwise product, with axes of 1 where the other has its own.
    ExtentList shape_a, shape_b;
    for (const char label : result.labels) {
      shape_a.push_back(a.has(label) ? a.extent(label) : 1);
      shape_b.push_back(b.has(label) ? b.extent(label) : 1);
    }
    result.value = reshape(in_order(a, batch + rows), shape_a.span()) *
                   reshape(in_order(b, batch + columns), shape_b.span());
    return result;
  }
  const Value matrix_a = reshape(in_order(a, batch + rows + inner),
                                 as_span({batches, extent_of(a, rows), extent_of(a, inner)}));
  const Value matrix_b = reshape(in_order(b, batch + inner + columns),
                                 as_span({batches, extent_of(b, inner), extent_of(b, columns)}));
  result.value = reshape(matmul(matrix_a, matrix_b), extents.span());
  return result;
}

/// A parsed equation: labels of each operand and of the output. Axes under an ellipsis get labels
/// from 1 on, counted from the last of them.
struct Equation {
  std::vector<std::string> operands;
  std::string output;
};

std::string with_ellipsis(const std::string& term, int covered) {
  std::string named = term;
  const std::size_t dots = named.find("...");
  if (dots != std::string::npos) {
    std::string labels;
    for (int i = covered; i >= 1; --i) labels += static_cast<char>(i);
    named.replace(dots, 3, labels);
  }
  for (const char label : named) {
    const bool is_letter = (label >= 'a' && label <= 'z') || (label >= 'A' && label <= 'Z');
    if (!is_letter && label > static_cast<char>(kMaxDims)) {
      throw ArgumentError(fmt::format("[einsum] '{}' is no label in '{}'", label, term));
    }
  }
  return named;
}

Equation parse(const std::string& equation, std::span<const Value> operands) {
  std::string text;
  for (const char c : equation) {
    if (c != ' ') text += c;
  }
  const std::size_t arrow = text.find("->");
  std::vector<std::string> terms(1);
  for (const char c : text.substr(0, arrow)) {
    if (c == ',') {
      terms.emplace_back();
    } else {
      terms.back() += c;
    }
  }
  if (terms.size() != operands.size()) {
    throw ArgumentError(fmt::format("[einsum] '{}' names {} operands, {} are given", equation,
                                    terms.size(), operands.size()));
  }
  Equation parsed;
  int widest = 0;
  for (std::size_t i = 0; i < terms.size(); ++i) {
    const bool has_ellipsis = terms[i].find("...") != std::string::npos;
    const int named = static_cast<int>(terms[i].size()) - (has_ellipsis ? 3 : 0);
    const int covered = operands[i].rank() - named;
    if (covered < 0 || (covered > 0 && !has_ellipsis)) {
      throw ShapeError(fmt::format("[einsum] '{}' does not name the axes of shape {}", terms[i],
                                   operands[i].shape().to_string()));
    }
    widest = std::max(widest, covered);
    parsed.operands.push_back(with_ellipsis(terms[i], covered));
  }
  if (arrow != std::string::npos) {
    parsed.output = with_ellipsis(text.substr(arrow + 2), widest);
    return parsed;
  }
  // Without an arrow: the ellipsis, then labels that occur once, in alphabetical order.
  std::map<char, int> counts;
  for (const std::string& labels : parsed.operands) {
    for (const char label : labels) ++counts[label];
  }
  for (int i = widest; i >= 1; --i) parsed.output += static_cast<char>(i);
  for (const auto& [label, count] : counts) {
    if (count == 1 && label > static_cast<char>(kMaxDims)) parsed.output += label;
  }
  return parsed;
}

/// Labels that an operand repeats are read along their diagonal.
Labelled without_repeats(const Value& value, const std::string& labels) {
  Labelled operand{value, labels};
  for (std::size_t i = 0; i < operand.labels.size(); ++i) {
    const char label = operand.labels[i];
    const std::size_t again = operand.labels.find(label, i + 1);
    if (again == std::string::npos) continue;
    const Shape& shape = operand.value.shape();
    const std::int64_t first = shape[static_cast<int>(i)];
    const std::int64_t second = shape[static_cast<int>(again)];
    if (first != second) {
      throw ShapeError(
          fmt::format("[einsum] a label that stands twice names extents {} and {} of shape {}",
                      first, second, shape.to_string()));
    }
    operand.value =
        diagonal(operand.value, 0, static_cast<std::int64_t>(i), static_cast<std::int64_t>(again));
    operand.labels.erase(again, 1);
    operand.labels.erase(i, 1);
    operand.labels += label;
    i = static_cast<std::size_t>(-1);
  }
  return operand;
}

/// Axes of extent 1 repeat to the label's extent.
void broadcast_labels(std::vector<Labelled>& operands) {
  std::map<char, std::int64_t> extents;
  for (const Labelled& operand : operands) {
    for (const char label : operand.labels) {
      const std::int64_t extent = operand.extent(label);
      std::int64_t& known = extents.try_emplace(label, extent).first->second;
      if (known == 1) known = extent;
      if (extent != 1 && extent != known) {
        throw ShapeError(
            fmt::format("[einsum] the extents {} and {} have one label", known, extent));
      }
    }
  }
  for (Labelled& operand : operands) {
    ExtentList wanted;
    for (const char label : operand.labels) wanted.push_back(extents.at(label));
    operand.value = broadcast_to(operand.value, wanted.span());
  }
}

void check_output(const Equation& equation) {
  for (std::size_t i = 0; i < equation.output.size(); ++i) {
    const char label = equation.output[i];
    const bool is_known = std::ranges::any_of(equation.operands, [&](const std::string& labels) {
      return labels.find(label) != std::string::npos;
    });
    if (!is_known || equation.output.find(label, i + 1) != std::string::npos) {
      throw ArgumentError(
          fmt::format("[einsum] the output's label '{}' is unknown or repeated", label));
    }
  }
}

}  // namespace

Value dot(const Value& a, const Value& b) {
  check_vectors("dot", a, b);
  if (a.shape()[0] != b.shape()[0]) {
    throw ShapeError(fmt::format("[dot] vectors of {} and {} elements. Pass two of one length",
                                 a.shape()[0], b.shape()[0]));
  }
  return matmul(a, b);
}

Value outer(const Value& a, const Value& b) {
  check_vectors("outer", a, b);
  return unsqueeze(a, 1) * unsqueeze(b, 0);
}

Value add_product(const Value& input, const Value& a, const Value& b, double beta, double alpha) {
  const Value product = matmul(a, b);
  Value scaled = alpha == 1 ? product : product * alpha;
  if (beta == 0) return scaled;
  const Value addend = as_product_operand(input);
  return scaled + (beta == 1 ? addend : addend * beta);
}

Value tensordot(const Value& a, const Value& b, Axes axes_a, Axes axes_b) {
  if (axes_a.size() != axes_b.size()) {
    throw ArgumentError(fmt::format("[tensordot] {} axes of a and {} of b are paired",
                                    axes_a.size(), axes_b.size()));
  }
  std::string labels_a, labels_b;
  for (int i = 0; i < a.rank(); ++i) labels_a += static_cast<char>('a' + i);
  for (int i = 0; i < b.rank(); ++i) labels_b += static_cast<char>('A' + i);
  for (std::size_t i = 0; i < axes_a.size(); ++i) {
    const int of_a = normalize_axis("tensordot", axes_a[i], a.rank());
    const int of_b = normalize_axis("tensordot", axes_b[i], b.rank());
    if (a.shape()[of_a] != b.shape()[of_b]) {
      throw ShapeError(fmt::format("[tensordot] axis {} of {} and axis {} of {} differ", of_a,
                                   a.shape().to_string(), of_b, b.shape().to_string()));
    }
    labels_b[static_cast<std::size_t>(of_b)] = labels_a[static_cast<std::size_t>(of_a)];
  }
  std::string output;
  for (const char label : labels_a) {
    if (labels_b.find(label) == std::string::npos) output += label;
  }
  for (const char label : labels_b) {
    if (labels_a.find(label) == std::string::npos) output += label;
  }
  const std::array<Value, 2> operands{a, b};
  return einsum(labels_a + "," + labels_b + "->" + output, operands);
}

Value einsum(const std::string& text, std::span<const Value> given) {
  if (given.empty()) throw ArgumentError("[einsum] needs at least one operand");
  const Equation equation = parse(text, given);
  check_output(equation);
  DType dtype = given[0].dtype();
  for (const Value& operand : given) {
    check_same_device("einsum", given[0], operand);
    dtype = promote(dtype, operand.dtype());
  }
  std::vector<Labelled> operands;
  for (std::size_t i = 0; i < given.size(); ++i) {
    operands.push_back(without_repeats(cast(given[i], dtype), equation.operands[i]));
  }
  broadcast_labels(operands);
  Labelled result = operands[0];
  for (std::size_t i = 1; i < operands.size(); ++i) {
    std::string kept = equation.output;
    for (std::size_t later = i + 1; later < operands.size(); ++later)
      kept += operands[later].labels;
    result = contract(result, operands[i], kept);
  }
  return in_order(sum_labels(result, equation.output), equation.output);
}

}  // namespace vkml::graph
