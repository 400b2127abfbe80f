// Operators that walk along an axis in order: scans, stable sorting, searches in sorted values.
// (scans.cpp, sorting.cpp)
#pragma once

#include <cstdint>

#include "vkml/graph/value.h"

namespace vkml::graph {

/// Sums, or products, of the elements up to each one. Integers and bools as in sum() and prod().
Value cumsum(const Value& x, std::int64_t axis);
Value cumprod(const Value& x, std::int64_t axis);
/// Products of the elements before each one; 1 for the first. Floats.
Value exclusive_cumprod(const Value& x, std::int64_t axis);
/// y_i = a_i y_(i-1) + b_i along an axis, with y_(-1) = 0; shapes and dtypes are equal. Floats.
Value linear_recurrence(const Value& a, const Value& b, std::int64_t axis);
/// Position (i32) of the largest, or smallest, element up to each one: the last of equals, and of
/// NaNs once there is one.
Value cumulative_argmax(const Value& x, std::int64_t axis);
Value cumulative_argmin(const Value& x, std::int64_t axis);
/// log(cumsum(exp(x))), without overflow. Floats.
Value logcumsumexp(const Value& x, std::int64_t axis);

/// Positions (i32) along an axis that sort it stably; NaN is the largest.
Value argsort(const Value& x, std::int64_t axis, bool descending);
/// How many elements of `sorted` (.., N), ascending along its last axis, lie below each of `values`
/// (.., M), or with `right` not above it; i32. The other axes agree, or `sorted` has none.
Value search_sorted(const Value& sorted, const Value& values, bool right);

}  // namespace vkml::graph
