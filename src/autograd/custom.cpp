// Custom operators as nodes: an alias of the value that forward() gave, with a rule of its own. The
// value's nodes are fused as any others are.

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "vkml/autograd/tape.h"
#include "vkml/core/error.h"
#include "vkml/ops/functions.h"

namespace vkml::autograd {
namespace {

using graph::Value;

/// The operator of a name. Nodes refer to it for as long as they live, so it stays.
const graph::OpInfo& op_of(const std::string& name) {
  static std::mutex mutex;
  static auto* all = new std::map<std::string, graph::OpInfo>;
  const std::scoped_lock lock(mutex);
  const auto [entry, is_new] = all->try_emplace(name);
  if (is_new) entry->second = {entry->first.c_str(), graph::Family::kCustom, 0, nullptr};
  return entry->second;
}

/// The shape and dtype of the input, or an error that names the operator.
Value checked_gradient(const char* name, std::size_t position, const Value& gradient,
                       const Value& input) {
  if (!gradient.shape().same_extents(input.shape())) {
    throw AutogradError(
        fmt::format("[{}] backward gave shape {} for input {} of shape {}. Each gradient has its "
                    "input's shape: sum over the axes that were broadcast",
                    name, gradient.shape().to_string(), position, input.shape().to_string()));
  }
  if (gradient.device() != input.device()) {
    throw AutogradError(fmt::format("[{}] backward gave a gradient on {} for input {} on {}", name,
                                    to_string(gradient.device()), position,
                                    to_string(input.device())));
  }
  return graph::cast(gradient, input.dtype());
}

/// Calls a pullback with what the node holds: the value, then the inputs.
class PullbackFunction final : public graph::GradientFunction {
 public:
  explicit PullbackFunction(Pullback pullback) : pullback_(std::move(pullback)) {}

  void operator()(const Value& output, const Value& gradient,
                  std::span<Value> gradients) const override {
    std::vector<Value> inputs;
    for (const graph::NodePtr& source : output->sources().subspan(1)) inputs.emplace_back(source);
    const std::vector<Value> found = pullback_(gradient, inputs, output);
    const char* name = output->op().name;
    if (found.size() != inputs.size()) {
      throw AutogradError(fmt::format(
          "[{}] backward gave {} gradients for {} inputs. Return one for each, undefined (None) "
          "where there is none",
          name, found.size(), inputs.size()));
    }
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (!found[i] || !inputs[i]->requires_grad()) continue;
      gradients[i + 1] = checked_gradient(name, i, found[i], inputs[i]);
    }
  }

 private:
  Pullback pullback_;
};

/// Numbers take the device of the tensors they meet.
std::vector<Value> on_one_device(std::span<const Value> inputs) {
  const auto is_number = [](const Value& value) {
    return value->family() == graph::Family::kScalar && value->is_weak();
  };
  std::vector<Value> moved(inputs.begin(), inputs.end());
  const auto tensor = std::ranges::find_if_not(inputs, is_number);
  if (tensor == inputs.end()) return moved;
  for (Value& value : moved) {
    if (is_number(value) && value.device() != tensor->device()) {
      value = graph::scalar_on(value, tensor->device());
    }
  }
  return moved;
}

bool needs_gradient(std::span<const Value> inputs) {
  return graph::grad_enabled() &&
         std::ranges::any_of(inputs, [](const Value& input) { return input->requires_grad(); });
}

}  // namespace

Value with_pullback(const std::string& name, const Value& value, std::span<const Value> inputs,
                    Pullback pullback) {
  if (!needs_gradient(inputs)) return value;
  return graph::with_gradient(op_of(name), value, inputs, {},
                              std::make_shared<PullbackFunction>(std::move(pullback)));
}

Value attach_gradient(const std::string& name, const OperatorPtr& op, std::span<const Value> inputs,
                      const Value& output) {
  if (!is_floating(output.dtype())) return output;
  const bool has_history = output->requires_grad() && !output->is_gradient_stop();
  if (op->records_gradients() && has_history) return output;
  const auto pullback = [op](const Value& gradient, std::span<const Value> operands,
                             const Value& result) {
    // Such an operator follows the history of its output, and this rule must not be part of that.
    const bool follows_history = op->records_gradients();
    return op->backward(gradient, operands, follows_history ? Value(result->source(0)) : result);
  };
  return with_pullback(name, output, inputs, pullback);
}

Value apply(const std::string& name, const OperatorPtr& op, std::span<const Value> inputs) {
  const std::vector<Value> operands = on_one_device(inputs);
  if (op->records_gradients()) return op->forward(operands);
  Value value;
  {
    const graph::GradientMode off(false);
    value = op->forward(operands);
  }
  if (!value) throw ArgumentError(fmt::format("[{}] forward gave no value", name));
  return attach_gradient(name, op, operands, value);
}

}  // namespace vkml::autograd
