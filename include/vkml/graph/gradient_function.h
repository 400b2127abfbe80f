// What users add to the gradient rules of the table: the rule of a custom operator's node, and
// hooks on the gradient of a value.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

namespace vkml::graph {

class Value;

/// The gradient rule of one node. Called while a backward pass runs, under its gradient mode.
class GradientFunction {
 public:
  virtual ~GradientFunction() = default;
  /// As GradientRule: one undefined Value for each source; those left undefined get no gradient.
  virtual void operator()(const Value& output, const Value& gradient,
                          std::span<Value> gradients) const = 0;
};

/// Functions that see the whole gradient of a value before it goes on, in the order they came.
/// Safe to change while another thread runs them.
class GradientHooks {
 public:
  /// Takes the gradient, returns one of the same shape and dtype to replace it, or an undefined
  /// Value.
  using Hook = std::function<Value(const Value& gradient)>;

  /// Returns a number for remove(). The last one runs after all others, whenever they were added.
  std::int64_t add(Hook hook, bool is_last = false);
  /// Removes a hook; one that is gone already is no error.
  void remove(std::int64_t id);
  /// The gradient after all hooks. Throws ShapeError or DTypeError when a hook's result does not
  /// fit.
  Value run(const Value& gradient) const;

 private:
  mutable std::mutex mutex_;
  std::vector<std::pair<std::int64_t, Hook>> hooks_;
  std::int64_t next_id_ = 0;
  std::int64_t last_ = -1;  // the one that stays at the end
};

}  // namespace vkml::graph
