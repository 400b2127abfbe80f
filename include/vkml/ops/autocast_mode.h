// The mode that autocast.h describes, without what it does to operands: for headers that show no
// nodes.
#pragma once

#include "vkml/core/dtype.h"

namespace vkml::graph {

/// Whether the mode is on in this thread.
bool is_autocast_enabled();
/// What products take float32 operands as in this thread: kF16 or kBF16; kF32 while the mode is
/// off.
DType autocast_dtype();
/// Sets it; returns what it was. Throws DTypeError unless it is one of those three.
DType set_autocast_dtype(DType dtype);

}  // namespace vkml::graph
