// Operators by name, and the answer to a name that nobody registered.

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "vkml/autograd/tape.h"
#include "vkml/core/error.h"

namespace vkml::autograd {
namespace {

/// Levenshtein's distance: insertions, deletions and replacements that turn one into the other.
/// R. A. Wagner, M. J. Fischer, The String-to-String Correction Problem, J. ACM 21 (1974), with one
/// row of the table kept.
std::size_t edit_distance(std::string_view from, std::string_view to) {
  std::vector<std::size_t> row(to.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < from.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t k = 0; k < to.size(); ++k) {
      const std::size_t replaced = diagonal + (from[i] == to[k] ? 0 : 1);
      diagonal = row[k + 1];
      row[k + 1] = std::min({replaced, row[k] + 1, row[k + 1] + 1});
    }
  }
  return row[to.size()];
}

}  // namespace

void OpRegistry::register_op(const std::string& name, OperatorPtr op) {
  if (name.empty()) throw ArgumentError("[register_op] an operator needs a name");
  if (!op) throw ArgumentError(fmt::format("[register_op] no operator was given for \"{}\"", name));
  const std::scoped_lock lock(mutex_);
  // The operator replaced is destroyed after the lock is gone: it may be anybody's object.
  operators_[name].swap(op);
}

OperatorPtr OpRegistry::get(std::string_view name) const {
  const std::scoped_lock lock(mutex_);
  const auto found = operators_.find(name);
  if (found != operators_.end()) return found->second;
  if (operators_.empty()) {
    throw UnregisteredOpError(fmt::format(
        "[OpRegistry] Unregistered op \"{}\": the registry is empty. Add it with register_op",
        name));
  }
  const auto nearest = std::ranges::min_element(
      operators_, {}, [&](const auto& entry) { return edit_distance(name, entry.first); });
  throw UnregisteredOpError(
      fmt::format("[OpRegistry] Unregistered op \"{}\". Did you mean \"{}\"? New operators are "
                  "added with register_op",
                  name, nearest->first));
}

bool OpRegistry::contains(std::string_view name) const {
  const std::scoped_lock lock(mutex_);
  return operators_.find(name) != operators_.end();
}

std::vector<std::string> OpRegistry::names() const {
  const std::scoped_lock lock(mutex_);
  std::vector<std::string> names;
  for (const auto& [name, op] : operators_) names.push_back(name);
  return names;
}

std::size_t OpRegistry::size() const {
  const std::scoped_lock lock(mutex_);
  return operators_.size();
}

}  // namespace vkml::autograd
