// The cores that walk along an axis in order: scans, stable sorting, searches in sorted values.
#pragma once

#include <span>

#include "array.h"

namespace vkml::reference {

void scan(const dispatch::PlanNode& node, std::span<const Array* const> sources, Array& out);
void argsort(const dispatch::PlanNode& node, const Array& x, Array& out);
void search_sorted(const dispatch::PlanNode& node, const Array& sorted, const Array& values,
                   Array& out);

}  // namespace vkml::reference
