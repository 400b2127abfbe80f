#include "vkml/graph/gradient_function.h"

#include <fmt/format.h>

#include <algorithm>

#include "vkml/core/error.h"
#include "vkml/graph/value.h"

namespace vkml::graph {

std::int64_t GradientHooks::add(Hook hook, bool is_last) {
  const std::scoped_lock lock(mutex_);
  const bool has_last = !hooks_.empty() && hooks_.back().first == last_;
  hooks_.emplace(has_last ? hooks_.end() - 1 : hooks_.end(), next_id_, std::move(hook));
  if (is_last) last_ = next_id_;
  return next_id_++;
}

void GradientHooks::remove(std::int64_t id) {
  Hook removed;  // destroyed without the lock: it may hold tensors
  const std::scoped_lock lock(mutex_);
  const auto found = std::ranges::find(hooks_, id, &std::pair<std::int64_t, Hook>::first);
  if (found == hooks_.end()) return;
  removed = std::move(found->second);
  hooks_.erase(found);
}

Value GradientHooks::run(const Value& gradient) const {
  std::vector<std::pair<std::int64_t, Hook>> hooks;
  {
    const std::scoped_lock lock(mutex_);
    hooks = hooks_;  // a hook may remove itself
  }
  Value result = gradient;
  for (const auto& [id, hook] : hooks) {
    const Value replaced = hook(result);
    if (!replaced) continue;
    if (!replaced.shape().same_extents(gradient.shape())) {
      throw ShapeError(fmt::format(
          "[register_hook] a hook returned shape {} for a gradient of shape {}. Return the same "
          "shape, or None",
          replaced.shape().to_string(), gradient.shape().to_string()));
    }
    if (replaced.dtype() != gradient.dtype()) {
      throw DTypeError(fmt::format(
          "[register_hook] a hook returned {} for a gradient of {}. Return the same dtype, or None",
          name_of(replaced.dtype()), name_of(gradient.dtype())));
    }
    result = replaced;
  }
  return result;
}

}  // namespace vkml::graph
