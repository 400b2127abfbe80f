// Cross entropy as a row expression: the target's column is found by comparing coordinates, so that
// no scatter is needed, and loss and gradient are one kernel that reads the logits. Bound: memory.

#include <bit>

#include "record.h"
#include "vkml/ops/functions.h"
#include "vkml/ops/value_check.h"

namespace vkml::graph {
namespace {

struct Rows {
  Value logits;  // wide
  Value hit;     // where the class is the target
  int axis = 0;
  std::int64_t classes = 0;
};

/// Which rows count depends on labels that nothing has been checked of.
Value counted(const Value& labels, std::int64_t ignore_index) {
  return ne(labels, weak_scalar(ignore_index, labels.device()));
}

Rows rows_of(const Value& logits, const Value& target) {
  Rows rows;
  rows.axis = logits.rank() == 1 ? 0 : 1;
  rows.classes = logits.shape()[rows.axis];
  rows.logits = cast(logits, size_of(logits.dtype()) == 2 ? DType::kF32 : logits.dtype());
  const Value column = unsqueeze(target, rows.axis);
  const Value classes = iota(logits.shape().extents(), rows.axis, logits.device());
  rows.hit = eq(classes, column);
  return rows;
}

/// The loss has found the largest logit of each row and the logarithm of its sum: a gradient that
/// is to be differentiated again cannot take them for constants.
Value probabilities(const Value& output, const Rows& rows) {
  if (grad_enabled()) return softmax(rows.logits, rows.axis);
  const Value top(output->source(4));
  const Value log_sum(output->source(5));
  return exp(rows.logits - top - log_sum);
}

/// gradient of row r: w_r (softmax - (1 - s) onehot - s / classes), w_r = 0 for ignored rows.
// attributes: ignore index, bits of the smoothing.
void cross_entropy_rule(const Value& output, const Value& gradient, std::span<Value> gradients) {
  const Value logits(output->source(1));
  const Value target(output->source(2));
  const double smoothing = std::bit_cast<double>(output->attributes()[1]);
  const Value labels(output->source(3));
  const Rows rows = rows_of(logits, target);
  const Value p = probabilities(output, rows);
  const Value onehot = cast(rows.hit, p.dtype());
  Value difference = p - onehot * (1.0 - smoothing);
  if (smoothing != 0) difference = difference - smoothing / static_cast<double>(rows.classes);
  // Known before the logits are: what gradient and loss read of them is one kernel.
  const Value valid = counted(labels, output->attributes()[0]);
  const Value weight = unsqueeze(where_else_zero(valid, cast(gradient, p.dtype())), rows.axis);
  gradients[1] = cast(where_else_zero(ne(weight, 0.0), weight * difference), logits.dtype());
}
constexpr OpInfo kTargetCheck{"cross_entropy", Family::kCheck, 0, nullptr};
constexpr OpInfo kCrossEntropyOp{
    "cross_entropy", Family::kCustom, 0, &cross_entropy_rule, {.operands = 0b111110}};

}  // namespace

Value cross_entropy_rows(const Value& logits, const Value& target, std::int64_t ignore_index,
                         double label_smoothing) {
  check_same_device("cross_entropy", logits, target);
  if (!is_floating(logits.dtype())) {
    throw DTypeError(
        fmt::format("[cross_entropy] logits are {}, not floats", name_of(logits.dtype())));
  }
  if (target.dtype() != DType::kI32 && target.dtype() != DType::kI64 &&
      target.dtype() != DType::kU8) {
    throw DTypeError(
        fmt::format("[cross_entropy] the target is {}; use an integer class for each row",
                    name_of(target.dtype())));
  }
  const int axis = logits.rank() == 1 ? 0 : 1;
  bool fits = logits.rank() >= 1 && target.rank() == logits.rank() - 1;
  for (int i = 0, from = 0; fits && i < logits.rank(); ++i) {
    if (i != axis) fits = target.shape()[from++] == logits.shape()[i];
  }
  if (!fits) {
    throw ShapeError(
        fmt::format("[cross_entropy] logits {} need a target of their shape without "
                    "the class axis, not {}",
                    logits.shape().to_string(), target.shape().to_string()));
  }
  if (logits.shape()[axis] == 0) throw ShapeError("[cross_entropy] there are no classes");
  const Value labels = target.dtype() == DType::kU8 ? cast(target, DType::kI32) : target;
  const Value checked = check_range(kTargetCheck, labels, logits.shape()[axis], ignore_index);
  Value loss, top, log_sum;
  {
    const GradientMode without_gradients(false);
    const Rows rows = rows_of(logits, checked);
    const std::int64_t axes[] = {rows.axis};
    top = max(rows.logits, axes, true);
    const Value shifted = rows.logits - top;
    log_sum = log(sum(exp(shifted), axes, true));
    const Value lse = reshape(log_sum, checked.shape().extents());
    const Value hit = sum(where_else_zero(rows.hit, shifted), axes, false);
    Value row = lse - hit;
    if (label_smoothing != 0) {
      const Value uniform = lse - mean(shifted, axes, false);
      row = row * (1.0 - label_smoothing) + uniform * label_smoothing;
    }
    loss = cast(where_else_zero(counted(labels, ignore_index), row), logits.dtype());
  }
  const std::array<Value, 5> inputs{logits, checked, labels, top, log_sum};
  return with_gradient(kCrossEntropyOp, loss, inputs,
                       {ignore_index, std::bit_cast<std::int64_t>(label_smoothing)});
}

Value checked_probability(const Value& x) {
  static constexpr OpInfo kCheck =
      ops::value_check("binary_cross_entropy", ops::ValueCheck::kProbability);
  if (!is_floating(x.dtype())) {
    throw DTypeError(fmt::format(
        "[binary_cross_entropy] probabilities are {}, not floats. Use x.to(vkml.float32)",
        name_of(x.dtype())));
  }
  // 0, or an error; the gradient goes to x past it.
  const Value checked = check_values(kCheck, cast(detach(x), DType::kF32)) * 0.0;
  return x + cast(checked, x.dtype());
}

}  // namespace vkml::graph
