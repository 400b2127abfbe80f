// vkML's own operators under their names. Their nodes know their gradients; backward() here serves
// those who ask an operator by itself. An output that was computed with gradients on may have any
// parameters (sum along one axis); one without that history is what forward() gives.

#include <fmt/format.h>

#include <algorithm>

#include "vkml/autograd/backward.h"
#include "vkml/autograd/tape.h"
#include "vkml/core/error.h"
#include "vkml/ops/composites.h"
#include "vkml/ops/functions.h"
#include "vkml/ops/ordering.h"

namespace vkml::autograd {
namespace {

using graph::Value;
using Inputs = std::span<const Value>;

/// Whether the output is one recorded node over exactly these inputs.
bool is_direct(Inputs inputs, const Value& output) {
  const auto sources = output->sources();
  return output->op().gradient != nullptr &&
         std::ranges::equal(sources, inputs, {}, {}, &Value::node);
}

/// Whether gradients of the output reach what it was computed from.
bool has_history(const Value& output) {
  return output->requires_grad() && !output->is_gradient_stop();
}

bool are_distinct(Inputs inputs) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    for (std::size_t k = 0; k < i; ++k) {
      if (inputs[i].node() == inputs[k].node()) return false;
    }
  }
  return true;
}

class ExpressionOperator final : public Differentiable {
 public:
  ExpressionOperator(std::string name, int arity, Expression expression)
      : name_(std::move(name)), arity_(arity), expression_(std::move(expression)) {}

  Value forward(Inputs inputs) const override {
    if (arity_ != kAnyArity && static_cast<std::size_t>(arity_) != inputs.size()) {
      throw ArgumentError(
          fmt::format("[{}] takes {} inputs, not {}", name_, arity_, inputs.size()));
    }
    if (!expression_) {
      throw ArgumentError(
          fmt::format("[{0}] has parameters without defaults: call {0} with them, and record its "
                      "output",
                      name_));
    }
    return expression_(inputs);
  }

  std::vector<Value> backward(const Value& output_gradient, Inputs inputs,
                              const Value& output) const override {
    std::vector<Value> gradients(inputs.size());
    if (is_direct(inputs, output)) {
      output->op().gradient(output, output_gradient, gradients);
      return gradients;
    }
    const auto is_traced = [](const Value& input) {
      return input->requires_grad() || !is_floating(input.dtype());
    };
    if (has_history(output) && are_distinct(inputs) && std::ranges::all_of(inputs, is_traced)) {
      return autograd::gradients(output, output_gradient, inputs, graph::grad_enabled());
    }
    return backward_again(output_gradient, inputs, output);
  }

  bool records_gradients() const override { return true; }

 private:
  /// Through the expression once more, over stand-ins: one for each input, also where two are the
  /// same value or none requires a gradient.
  std::vector<Value> backward_again(const Value& output_gradient, Inputs inputs,
                                    const Value& output) const {
    const bool create_graph = graph::grad_enabled();
    const graph::GradientMode on(true);
    std::vector<Value> stand_ins;
    for (const Value& input : inputs) {
      if (!is_floating(input.dtype())) {
        stand_ins.push_back(input);
      } else if (input->requires_grad()) {
        stand_ins.push_back(graph::positive(input));
      } else {
        stand_ins.push_back(
            graph::alias(input, graph::kFlagRequiresGrad | graph::kFlagGradientStop));
      }
    }
    const Value repeated = forward(stand_ins);
    const bool same_parameters =
        &repeated->op() != &output->op() || repeated->attributes() == output->attributes();
    if (!same_parameters || !repeated.shape().same_extents(output.shape())) {
      throw AutogradError(
          fmt::format("[{}] the output has parameters of its own and no record of gradients. "
                      "Compute it with gradients on",
                      name_));
    }
    if (!repeated->requires_grad()) return std::vector<Value>(inputs.size());
    std::vector<Value> found =
        autograd::gradients(repeated, output_gradient, stand_ins, create_graph);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!is_floating(inputs[i].dtype())) found[i] = Value();
    }
    return found;
  }

  std::string name_;
  int arity_;
  Expression expression_;
};

void add_operator(OpRegistry& registry, const char* name, int arity, Expression expression) {
  registry.register_op(name, make_operator(name, arity, std::move(expression)));
}

void add_rows(OpRegistry& registry) {
  const auto rows = ops::elementwise_rows();
  std::size_t i = 0;
  for (const ops::ElementwiseRow& row : rows) {
    const auto expression = [which = static_cast<ops::Row>(i++)](Inputs inputs) {
      return ops::apply_elementwise(which, inputs);
    };
    add_operator(registry, row.name, row.arity, expression);
    for (const char* alias : row.aliases) {
      if (alias != nullptr) add_operator(registry, alias, row.arity, expression);
    }
  }
}

void add_others(OpRegistry& registry) {
#define VKML_OPERATOR(name, inputs, ...) \
  add_operator(registry, #name, inputs, [](Inputs x) { return __VA_ARGS__; });
#define VKML_PARAMETRIC_OPERATOR(name) add_operator(registry, #name, kAnyArity, nullptr);
#include "vkml/ops/operators.def.h"
}

}  // namespace

OperatorPtr make_operator(std::string name, int arity, Expression expression) {
  return std::make_shared<ExpressionOperator>(std::move(name), arity, std::move(expression));
}

const std::shared_ptr<OpRegistry>& default_registry() {
  // Never destroyed: operators may be objects of an interpreter that is gone by then.
  static const auto* registry = [] {
    auto filled = std::make_shared<OpRegistry>();
    add_rows(*filled);
    add_others(*filled);
    return new std::shared_ptr<OpRegistry>(std::move(filled));
  }();
  return *registry;
}

}  // namespace vkml::autograd
