// The elementwise table: every row is complete, and its program is as accurate as the row states,
// in f32 and f64, against the independent formula in double.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "scalar_interpreter.h"
#include "vkml/core/error.h"
#include "vkml/ops/elementwise.h"

namespace {

using namespace vkml;
using interpreter::Column;
using ops::DTypeRule;
using ops::ElementwiseRow;
using ops::ScalarProgram;
using ops::ScalarType;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Draws samples, the same ones every time.
class Samples {
 public:
  double uniform(double low, double high) { return low + (high - low) * unit_(generator_); }
  /// Half of them spread evenly, half over the magnitudes: near 0 is where cancellation shows.
  double in(const ops::Domain& domain) {
    if (unit_(generator_) < 0.5) return uniform(domain.low, domain.high);
    const double end = unit_(generator_) < 0.5 ? domain.low : domain.high;
    const double value = end * std::exp2(-uniform(0, 24));
    return std::clamp(value, domain.low, domain.high);
  }

 private:
  std::mt19937_64 generator_{20240229};
  std::uniform_real_distribution<double> unit_{0, 1};
};

ScalarType result_type(const ScalarProgram& program) {
  return program.code[program.outputs[0]].type;
}

/// The type in which the row computes for operands of `type`, and whether it takes it at all.
bool takes(const ElementwiseRow& row, ScalarType type) {
  switch (row.rule) {
    case DTypeRule::kFloat:
      return ops::is_floating(type);
    case DTypeRule::kLogical:
      return type == ScalarType::kBool;
    case DTypeRule::kBits:
      return !ops::is_floating(type);
    case DTypeRule::kRandom:
      return type == ScalarType::kI32;
    default:
      return true;
  }
}

ScalarProgram program_of(const ElementwiseRow& row, ScalarType type) {
  ScalarProgram program;
  row.record(ops::storage_type(type), program);
  return program;
}

/// Distance in units of T's last place at the expected value.
template <typename T>
double ulps_between(double actual, double expected) {
  if (std::isnan(expected) || std::isnan(actual)) {
    return std::isnan(expected) == std::isnan(actual) ? 0 : kInfinity;
  }
  const auto nearest = static_cast<double>(static_cast<T>(expected));
  if (actual == nearest) return 0;
  using Limits = std::numeric_limits<T>;
  if (std::isinf(actual) || std::isinf(nearest)) {
    // One side rounded to infinity: measured from the largest finite value.
    if (std::isinf(expected) || std::signbit(actual) != std::signbit(expected)) return kInfinity;
    const double ulp = std::ldexp(1.0, Limits::max_exponent - Limits::digits);
    const double largest = static_cast<double>(Limits::max());
    const double a = std::min(std::fabs(actual), largest + ulp);
    return std::fabs(a - std::min(std::fabs(expected), largest + ulp)) / ulp;
  }
  const int exponent = std::max(std::ilogb(expected), Limits::min_exponent - 1);
  return std::fabs(actual - expected) / std::ldexp(1.0, exponent - Limits::digits + 1);
}

/// Arguments for which a row's documentation states another value than the formula's.
template <typename T>
bool is_out_of_reach(const std::string& name, const double* operands) {
  if (name != "lerp" && name != "addcmul" && name != "addcdiv") return false;
  // A product on the way that overflows, in a sum that cancels it.
  const double huge = std::is_same_v<T, float> ? 0x1p62 : 0x1p510;
  return std::any_of(operands, operands + 3, [huge](double operand) {
    const double size = std::fabs(operand);
    return size > huge || (size != 0 && size < 1 / huge);
  });
}

struct Worst {
  double ulps = 0;
  std::string where = "nowhere";
};

template <typename T>
Worst worst_error(const ElementwiseRow& row, const std::vector<std::vector<T>>& arguments) {
  const ScalarType type = std::is_same_v<T, float> ? ScalarType::kF32 : ScalarType::kF64;
  const ScalarProgram program = program_of(row, type);
  std::vector<Column> columns;
  for (std::size_t k = 0; k < arguments.size(); ++k) {
    const bool is_condition = row.rule == DTypeRule::kSelect && k == 0;
    Column column;
    for (const T value : arguments[k]) {
      column.push_back(is_condition ? interpreter::to_bits(value != 0)
                                    : interpreter::to_bits(value));
    }
    columns.push_back(std::move(column));
  }
  const Column results = interpreter::run_program(program, columns);
  Worst worst;
  for (std::size_t i = 0; i < results.size(); ++i) {
    double operands[ops::kMaxOperands] = {};
    for (std::size_t k = 0; k < arguments.size(); ++k) operands[k] = arguments[k][i];
    double expected = row.oracle(operands);
    if (row.dtype_oracle != nullptr) {
      const DType dtype = ops::storage_type(type);
      expected = row.dtype_oracle(dtype, operands);
    }
    const bool is_truth = result_type(program) == ScalarType::kBool;
    const double actual = is_truth ? static_cast<double>(results[i])
                                   : static_cast<double>(interpreter::from_bits<T>(results[i]));
    if (is_out_of_reach<T>(row.name, operands)) continue;
    const double ulps = ulps_between<T>(actual, expected);
    if (ulps > worst.ulps || std::isnan(ulps)) {
      worst.ulps = ulps;
      worst.where = std::string(row.name) + "(";
      for (std::size_t k = 0; k < arguments.size(); ++k) {
        worst.where += (k > 0 ? ", " : "") + std::to_string(operands[k]);
      }
      char text[96];
      std::snprintf(text, sizeof(text), ") = %.17g, not %.17g, at %a", actual, expected,
                    operands[0]);
      worst.where += text;
    }
  }
  return worst;
}

template <typename T>
Worst worst_in_domain(const ElementwiseRow& row, int count) {
  constexpr int kBatch = 1024;  // stays in the cache
  Samples samples;
  Worst worst;
  for (int done = 0; done < count; done += kBatch) {
    std::vector<std::vector<T>> arguments(static_cast<std::size_t>(row.arity));
    for (int i = 0; i < kBatch; ++i) {
      for (std::size_t k = 0; k < arguments.size(); ++k) {
        arguments[k].push_back(static_cast<T>(samples.in(row.operands[k].domain)));
      }
    }
    const Worst here = worst_error(row, arguments);
    if (here.ulps > worst.ulps) worst = here;
  }
  return worst;
}

/// How many there are of `count` values for each operand without a default.
std::size_t combinations(const ElementwiseRow& row, std::size_t count) {
  std::size_t total = 1;
  for (int k = 0; k < row.arity; ++k) {
    if (row.operands[static_cast<std::size_t>(k)].is_required()) total *= count;
  }
  return total;
}

/// Zeros, infinities, NaN, subnormals, extremes, and small numbers: every combination of operands,
/// with those that have a default at it.
template <typename T>
std::vector<std::vector<T>> edge_arguments(const ElementwiseRow& row) {
  using Limits = std::numeric_limits<T>;
  std::vector<T> edges{T(0),
                       T(1),
                       T(0.5),
                       T(1.5),
                       T(2),
                       T(3),
                       T(4.25),
                       Limits::min(),
                       Limits::denorm_min(),
                       Limits::min() / 8,
                       Limits::max(),
                       Limits::epsilon(),
                       Limits::infinity()};
  const std::size_t positive = edges.size();
  for (std::size_t i = 0; i < positive; ++i) edges.push_back(-edges[i]);
  edges.push_back(Limits::quiet_NaN());
  std::vector<std::vector<T>> arguments(static_cast<std::size_t>(row.arity));
  const std::size_t total = combinations(row, edges.size());
  for (std::size_t i = 0; i < total; ++i) {
    std::size_t rest = i;
    for (std::size_t k = 0; k < arguments.size(); ++k) {
      if (!row.operands[k].is_required()) {
        arguments[k].push_back(static_cast<T>(row.operands[k].default_value));
        continue;
      }
      arguments[k].push_back(edges[rest % edges.size()]);
      rest /= edges.size();
    }
  }
  return arguments;
}

bool is_float_row(const ElementwiseRow& row) { return takes(row, ScalarType::kF32); }

TEST(ElementwiseTable, EveryRowIsComplete) {
  std::set<std::string> names;
  for (const ElementwiseRow& row : ops::elementwise_rows()) {
    SCOPED_TRACE(row.name);
    EXPECT_TRUE(names.insert(row.name).second) << "two rows of one name";
    const std::string documentation = row.documentation;
    ASSERT_FALSE(documentation.empty());
    EXPECT_EQ(documentation.back(), '.');
    EXPECT_NE(row.oracle, nullptr);
    EXPECT_GE(row.arity, 1);
    EXPECT_LE(row.arity, ops::kMaxOperands);
    for (int i = 0; i < row.arity; ++i) {
      const ops::Operand& operand = row.operands[static_cast<std::size_t>(i)];
      ASSERT_NE(operand.name, nullptr);
      EXPECT_LT(operand.domain.low, operand.domain.high);
      EXPECT_TRUE(std::isfinite(operand.domain.low) && std::isfinite(operand.domain.high));
    }
    EXPECT_GE(row.max_ulp, 0);
    EXPECT_LE(row.max_ulp, 64);
    const bool keeps_integers = row.rule == DTypeRule::kSame || row.rule == DTypeRule::kBits ||
                                row.rule == DTypeRule::kSelect;
    if (keeps_integers) {
      EXPECT_NE(row.integer_oracle, nullptr) << "integers have no formula";
    }
  }
  EXPECT_GE(names.size(), 40u);
}

TEST(ElementwiseTable, ProgramsAreWellFormedInEveryType) {
  for (const ElementwiseRow& row : ops::elementwise_rows()) {
    for (const ScalarType type : {ScalarType::kBool, ScalarType::kI32, ScalarType::kI64,
                                  ScalarType::kF32, ScalarType::kF64}) {
      if (!takes(row, type)) continue;
      SCOPED_TRACE(std::string(row.name) + " in " + ops::name_of(type));
      ScalarProgram program;
      try {
        program = program_of(row, type);
      } catch (const DTypeError& error) {
        EXPECT_EQ(type, ScalarType::kBool) << error.what();
        continue;
      }
      ASSERT_EQ(program.outputs.size(), 1u);
      ASSERT_LT(program.outputs[0], program.code.size());
      for (std::size_t i = 0; i < program.code.size(); ++i) {
        const ops::Instruction& in = program.code[i];
        const std::uint16_t operands[] = {in.a, in.b, in.c};
        const int count = ops::operand_count(in.op);
        for (int k = 0; k < count; ++k) ASSERT_LT(operands[k], i) << "an operand is defined later";
        if (in.op == ops::Opcode::kSelect) {
          EXPECT_EQ(program.code[in.a].type, ScalarType::kBool);
          EXPECT_EQ(program.code[in.b].type, in.type);
          EXPECT_EQ(program.code[in.c].type, in.type);
        } else if (count >= 2) {
          EXPECT_EQ(program.code[in.a].type, program.code[in.b].type) << ops::name_of(in.op);
        }
      }
      const bool gives_bool = row.rule == DTypeRule::kCompare ||
                              row.rule == DTypeRule::kPredicate || row.rule == DTypeRule::kLogical;
      const ScalarType expected = gives_bool
                                      ? ScalarType::kBool
                                      : (row.rule == DTypeRule::kRandom ? ScalarType::kF32 : type);
      EXPECT_EQ(result_type(program), expected);
    }
  }
}

TEST(ElementwiseAccuracy, F32WithinTheStatedBound) {
  for (const ElementwiseRow& row : ops::elementwise_rows()) {
    if (!is_float_row(row)) continue;
    const Worst worst = worst_in_domain<float>(row, 200'000);
    EXPECT_LE(worst.ulps, row.max_ulp) << worst.where;
  }
}

// The formulas are doubles too: their own error, up to two units, is allowed for.
TEST(ElementwiseAccuracy, F64WithinTheStatedBound) {
  for (const ElementwiseRow& row : ops::elementwise_rows()) {
    if (!is_float_row(row)) continue;
    const Worst worst = worst_in_domain<double>(row, 100'000);
    EXPECT_LE(worst.ulps, row.max_ulp == 0 ? 0 : row.max_ulp + 2) << worst.where;
  }
}

TEST(ElementwiseAccuracy, EdgesInF32) {
  for (const ElementwiseRow& row : ops::elementwise_rows()) {
    if (!is_float_row(row)) continue;
    const Worst worst = worst_error(row, edge_arguments<float>(row));
    EXPECT_LE(worst.ulps, row.max_ulp) << worst.where;
  }
}

TEST(ElementwiseAccuracy, EdgesInF64) {
  for (const ElementwiseRow& row : ops::elementwise_rows()) {
    if (!is_float_row(row)) continue;
    const Worst worst = worst_error(row, edge_arguments<double>(row));
    EXPECT_LE(worst.ulps, row.max_ulp == 0 ? 0 : row.max_ulp + 2) << worst.where;
  }
}

/// Numbers of every exponent, in both signs.
template <typename T>
std::vector<T> numbers_of_every_size(std::uint64_t seed) {
  std::mt19937_64 generator(seed);
  std::uniform_real_distribution<double> mantissa(1, 2);
  using Limits = std::numeric_limits<T>;
  std::vector<T> numbers;
  for (int repeat = 0; repeat < 20'000; ++repeat) {
    std::uniform_int_distribution<int> exponent(Limits::min_exponent - Limits::digits,
                                                Limits::max_exponent - 1);
    const double value = std::ldexp(mantissa(generator), exponent(generator));
    const double limited = std::min(value, static_cast<double>(Limits::max()));
    numbers.push_back(static_cast<T>(repeat % 2 == 0 ? limited : -limited));
  }
  numbers.push_back(T(16367173.0 * 0x1p72));  // next to a multiple of pi/2
  return numbers;
}

template <typename T>
void check_every_size() {
  for (const ElementwiseRow& row : ops::elementwise_rows()) {
    const std::string name = row.name;
    const bool divides = name == "remainder" || name == "fmod";
    if (!divides && name != "sin" && name != "cos" && name != "tan") continue;
    std::vector<std::vector<T>> arguments{numbers_of_every_size<T>(1)};
    if (divides) arguments.push_back(numbers_of_every_size<T>(2));
    const Worst worst = worst_error(row, arguments);
    // The formulas are doubles too.
    EXPECT_LE(worst.ulps, row.max_ulp + (sizeof(T) == 8 && !divides ? 2 : 0)) << worst.where;
  }
}
TEST(ElementwiseAccuracy, AnglesAndQuotientsOfEverySizeInF32) { check_every_size<float>(); }
TEST(ElementwiseAccuracy, AnglesAndQuotientsOfEverySizeInF64) { check_every_size<double>(); }

// The double that is nearest to a multiple of pi/2, relative to its size (Muller, Elementary
// Functions, 2nd edition, section 11.3).
TEST(ElementwiseAccuracy, TheHardestAngle) {
  for (const ElementwiseRow& row : ops::elementwise_rows()) {
    if (std::string(row.name) != "cos") continue;
    const Column angle{interpreter::to_bits(6381956970095103.0 * 0x1p797)};
    const Column result = interpreter::run_program(program_of(row, ScalarType::kF64), {angle});
    EXPECT_DOUBLE_EQ(interpreter::from_bits<double>(result[0]), -4.68716592425462761112e-19);
  }
}

/// Extremes and small numbers of an integer type: every combination of operands.
template <typename T>
void check_integers(const ElementwiseRow& row, ScalarType type) {
  std::vector<T> edges{
      0, 1, 2, 3, 5, 31, 100, std::numeric_limits<T>::max(), std::numeric_limits<T>::max() - 1};
  const std::size_t positive = edges.size();
  for (std::size_t i = 1; i < positive; ++i) edges.push_back(static_cast<T>(-edges[i]));
  edges.push_back(std::numeric_limits<T>::min());
  const std::size_t total = combinations(row, edges.size());
  const ScalarProgram program = program_of(row, type);
  std::vector<Column> columns(static_cast<std::size_t>(row.arity));
  std::vector<std::int64_t> expected;
  for (std::size_t i = 0; i < total; ++i) {
    std::size_t rest = i;
    std::int64_t integers[ops::kMaxOperands] = {};
    double doubles[ops::kMaxOperands] = {};
    for (std::size_t k = 0; k < columns.size(); ++k) {
      const bool is_condition = row.rule == DTypeRule::kSelect && k == 0;
      const ops::Operand& operand = row.operands[k];
      T value = edges[rest % edges.size()];
      if (operand.is_required()) {
        rest /= edges.size();
      } else {
        value = static_cast<T>(operand.default_value);
      }
      integers[k] = is_condition ? value != 0 : value;
      doubles[k] = static_cast<double>(integers[k]);
      columns[k].push_back(is_condition ? interpreter::to_bits(value != 0)
                                        : interpreter::to_bits(value));
    }
    expected.push_back(row.integer_oracle != nullptr
                           ? row.integer_oracle(integers)
                           : static_cast<std::int64_t>(row.oracle(doubles)));
  }
  const Column results = interpreter::run_program(program, columns);
  const bool is_truth = result_type(program) == ScalarType::kBool;
  for (std::size_t i = 0; i < total; ++i) {
    const std::int64_t actual = is_truth ? static_cast<std::int64_t>(results[i])
                                         : std::int64_t{interpreter::from_bits<T>(results[i])};
    const std::int64_t wrapped = is_truth ? expected[i] : std::int64_t{static_cast<T>(expected[i])};
    ASSERT_EQ(actual, wrapped) << row.name << " of combination " << i;
  }
}

TEST(ElementwiseAccuracy, IntegersAreExact) {
  for (const ElementwiseRow& row : ops::elementwise_rows()) {
    if (row.rule == DTypeRule::kRandom) continue;
    if (takes(row, ScalarType::kI32)) check_integers<std::int32_t>(row, ScalarType::kI32);
    if (takes(row, ScalarType::kI64)) check_integers<std::int64_t>(row, ScalarType::kI64);
  }
}

const ElementwiseRow& row_named(const std::string& name) {
  const auto rows = ops::elementwise_rows();
  return *std::ranges::find_if(rows, [&](const ElementwiseRow& row) { return row.name == name; });
}

// Known answers of Philox-4x32-10 (Salmon et al., SC 2011), as published with the Random123
// library.
TEST(Random, UniformFollowsPhilox) {
  const ElementwiseRow row = row_named("random_uniform");
  const double zero_counter[] = {0, 0, 0};
  EXPECT_EQ(row.oracle(zero_counter), (0x6627e8d5u >> 8) * 0x1p-24);
}

TEST(Random, ProgramsFollowTheFormulas) {
  for (const char* name : {"random_uniform", "random_normal"}) {
    const ElementwiseRow row = row_named(name);
    const ScalarProgram program = program_of(row, ScalarType::kI32);
    Samples samples;
    std::vector<Column> columns(3);
    std::vector<double> expected;
    for (int i = 0; i < 100'000; ++i) {
      const double operands[] = {std::floor(samples.uniform(0, 1e9)),
                                 std::floor(samples.uniform(-2e9, 2e9)),
                                 std::floor(samples.uniform(-2e9, 2e9))};
      for (std::size_t k = 0; k < 3; ++k) {
        columns[k].push_back(interpreter::to_bits(static_cast<std::int32_t>(operands[k])));
      }
      expected.push_back(row.oracle(operands));
    }
    const Column results = interpreter::run_program(program, columns);
    double worst = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const double actual = interpreter::from_bits<float>(results[i]);
      worst = std::max(worst, ulps_between<float>(actual, expected[i]));
    }
    EXPECT_LE(worst, row.max_ulp) << name;
  }
}

}  // namespace
