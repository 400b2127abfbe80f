// Writes docs/operators.md from the rows of the elementwise table:
//   build/release/tests/cpp/operator_table > docs/operators.md
// A test compares the two.
#include <fmt/format.h>

#include <cstdio>

#include "vkml/ops/elementwise.h"

namespace {

const char* operands_of(int arity) {
  constexpr const char* kOperands[] = {"()", "(x)", "(a, b)", "(a, b, c)"};
  return kOperands[arity];
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

}  // namespace

int main() {
  fmt::print(
      "# Elementwise operators\n\n"
      "Written by `docs/operator_table.cpp` from the rows of "
      "`include/vkml/ops/elementwise.def.h`.\n"
      "Operands broadcast as in NumPy. The error is the largest in units of the last place, in\n"
      "float32 and float64, against a reference in double precision, on the given domain; it is "
      "the\n"
      "bound of the tests on every device.\n\n"
      "| operator | meaning | result | gradient | domain | error |\n"
      "|---|---|---|---|---|---|\n");
  for (const vkml::ops::ElementwiseRow& row : vkml::ops::elementwise_rows()) {
    std::string meaning(row.documentation);
    for (std::size_t at = 0; (at = meaning.find('|', at)) != std::string::npos; at += 2) {
      meaning.insert(at, 1, '\\');  // a bar would end the cell
    }
    fmt::print("| `{}{}` | {} | {} | {} | [{}, {}] | {} |\n", row.name, operands_of(row.arity),
               meaning, description_of(row.rule), row.gradient == nullptr ? "none" : "yes",
               row.domain.low, row.domain.high, row.max_ulp);
  }
  return 0;
}
