// Mixed precision: a mode of each thread in which products take float32 operands in a
// half-precision dtype, and operators that need float32's range or precision take half-precision
// operands as float32. Which operator does which is PyTorch's list for torch.autocast on CUDA
// (docs.pytorch.org/docs/stable/amp.html, "Autocast Op Reference").
#pragma once

#include "vkml/graph/value.h"
#include "vkml/ops/autocast_mode.h"

namespace vkml::graph {

/// An operand of a product: `x`, in the mode's dtype if it is float32 and the mode is on.
Value as_product_operand(const Value& x);
/// An operand of a sum, a norm, a loss and their kin: `x`, as float32 if it is half precision and
/// the mode is on.
Value as_precise_operand(const Value& x);

/// The mode is off while it lives: gradients are as precise as the recorded operators were.
class AutocastPause {
 public:
  AutocastPause() : before_(set_autocast_dtype(DType::kF32)) {}
  ~AutocastPause() { set_autocast_dtype(before_); }
  AutocastPause(const AutocastPause&) = delete;
  AutocastPause& operator=(const AutocastPause&) = delete;

 private:
  DType before_;
};

}  // namespace vkml::graph
