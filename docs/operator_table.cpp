// Writes docs/operators.md from the rows of the elementwise table and the list of other operators:
//   build/release/tests/cpp/operator_table > docs/operators.md
// A test compares the two.
#include <fmt/format.h>

#include <cstdio>
#include <string>

#include "vkml/ops/elementwise.h"

namespace {

using vkml::ops::ElementwiseRow;
using vkml::ops::Operand;

/// "(input, beta=1, threshold=20)"; for the formulas, x stands for one operand, a, b, ... for
/// several.
std::string operands_of(const ElementwiseRow& row) {
  std::string text;
  for (int i = 0; i < row.arity; ++i) {
    const Operand& operand = row.operands[static_cast<std::size_t>(i)];
    text += fmt::format("{}{}", i > 0 ? ", " : "", operand.name);
    if (!operand.is_required()) text += fmt::format("={}", operand.default_value);
  }
  return text;
}

/// "[-20, 80]", and operands that differ from the first by name.
std::string domains_of(const ElementwiseRow& row) {
  const vkml::ops::Domain& usual = row.operands[0].domain;
  std::string text = fmt::format("[{}, {}]", usual.low, usual.high);
  for (int i = 1; i < row.arity; ++i) {
    const Operand& operand = row.operands[static_cast<std::size_t>(i)];
    if (operand.domain.low == usual.low && operand.domain.high == usual.high) continue;
    text += fmt::format("; {} [{}, {}]", operand.name, operand.domain.low, operand.domain.high);
  }
  return text;
}

std::string names_of(const ElementwiseRow& row) {
  std::string text = fmt::format("`{}({})`", row.name, operands_of(row));
  for (const char* alias : row.aliases) {
    if (alias != nullptr) text += fmt::format(", `{}`", alias);
  }
  return text;
}

const char* description_of(vkml::ops::DTypeRule rule) {
  using vkml::ops::DTypeRule;
  switch (rule) {
    case DTypeRule::kSame:
      return "the promoted dtype";
    case DTypeRule::kFloat:
      return "the promoted dtype; integers and bools give float32";
    case DTypeRule::kCompare:
    case DTypeRule::kPredicate:
    case DTypeRule::kLogical:
      return "bool";
    case DTypeRule::kBits:
      return "the promoted dtype; integers and bools only";
    case DTypeRule::kSelect:
      return "the promoted dtype of the last two";
    case DTypeRule::kRandom:
      return "float32";
  }
  return "";
}

void print_others() {
  constexpr int kAnyArity = -1;
  const auto print = [](const char* name, int inputs, bool is_parametric) {
    fmt::print("| `{}` | {} | {} |\n", name,
               is_parametric || inputs == kAnyArity ? "any" : std::to_string(inputs),
               is_parametric ? "no" : "yes");
  };
  fmt::print(
      "\n# Other operators\n\n"
      "From `include/vkml/ops/operators.def.h`: the names that errors and the record of calls\n"
      "(`vkml.autograd`) use. Those without parameters, or with defaults for all of them, the\n"
      "record applies by name.\n\n"
      "| operator | inputs | by name alone |\n"
      "|---|---|---|\n");
#define VKML_OPERATOR(name, inputs, ...) print(#name, inputs, false);
#define VKML_PARAMETRIC_OPERATOR(name) print(#name, kAnyArity, true);
#include "vkml/ops/operators.def.h"
}

}  // namespace

int main() {
  fmt::print(
      "# Elementwise operators\n\n"
      "Written by `docs/operator_table.cpp` from the rows of "
      "`include/vkml/ops/elementwise.def.h`.\n"
      "In the second column x is the first operand; a and b are the first and the second.\n"
      "Operands broadcast as in NumPy. The error is the largest in units of the last place, in\n"
      "float32 and float64, against a reference in double precision, on the given domain; it is "
      "the\n"
      "bound of the tests on every device.\n\n"
      "| operator | meaning | result | gradient | domain | error |\n"
      "|---|---|---|---|---|---|\n");
  for (const ElementwiseRow& row : vkml::ops::elementwise_rows()) {
    std::string meaning(row.documentation);
    for (std::size_t at = 0; (at = meaning.find('|', at)) != std::string::npos; at += 2) {
      meaning.insert(at, 1, '\\');  // a bar would end the cell
    }
    fmt::print("| {} | {} | {} | {} | {} | {} |\n", names_of(row), meaning,
               description_of(row.rule), row.gradient == nullptr ? "none" : "yes", domains_of(row),
               row.max_ulp);
  }
  print_others();
  return 0;
}
