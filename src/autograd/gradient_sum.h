// The sum of the gradients that arrive at one value, as the expression that costs least.
//
// A value that is used many times gets a gradient of its whole shape from each use: slices and
// chunks one that is zero outside their window, the weight of a recurrence a product for each time.
// Added up one by one they cost a pass over the whole for each part. Here windows that lie side by
// side become one concat, products one product with a longer inner axis, and sums over rows one
// sum over all the rows.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "vkml/graph/value.h"

namespace vkml::autograd {

/// The gradients that have arrived at one node.
class ArrivingGradients {
 public:
  void add(const graph::Value& part) {
    if (first_) {
      others_.push_back(part);
    } else {
      first_ = part;
    }
  }
  explicit operator bool() const { return static_cast<bool>(first_); }
  /// All of them, in the order they came; leaves none.
  std::vector<graph::Value> take();
  /// The only one, or null if there are several; leaves none if there was one.
  graph::Value take_single();

 private:
  graph::Value first_;
  std::vector<graph::Value> others_;
};

/// Adds up the gradients of one pass; what several sums put side by side is recorded once.
class GradientSum {
 public:
  /// The sum of `parts`, of which there is at least one, all of one shape and dtype.
  graph::Value of(std::vector<graph::Value> parts);

 private:
  void join_windows(std::vector<graph::Value>& parts);
  void join_products(std::vector<graph::Value>& parts, bool transposed);
  void join_row_sums(std::vector<graph::Value>& parts);
  graph::Value join(std::span<const graph::Value> parts, int axis);

  /// Values that lie one after the other in memory, by the nodes they are made of.
  std::map<std::vector<const graph::Node*>, graph::Value> side_by_side_;
};

}  // namespace vkml::autograd
