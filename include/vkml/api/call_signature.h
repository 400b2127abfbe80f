// What a recorded call (jit.h) depends on beside what its function captures: the modes of its
// thread, and what each tensor is like.
#pragma once

#include <string>

#include "vkml/api/context.h"
#include "vkml/api/tensor.h"

namespace vkml {

struct CallModes {
  bool grad_enabled = true;
  MatmulPrecision matmul_precision = MatmulPrecision::kHighest;
  DType autocast_dtype = DType::kF32;
  Device default_device;
  friend bool operator==(const CallModes&, const CallModes&) = default;
};
/// Those of this thread.
CallModes modes_now();

struct TensorSignature {
  Shape shape;
  DType dtype = DType::kF32;
  Device device;
  bool requires_grad = false;
  bool is_leaf = false;  // gradients collect there
  friend bool operator==(const TensorSignature&, const TensorSignature&) = default;
};
TensorSignature signature_of(const graph::Value& value);
TensorSignature signature_of(const Tensor& tensor);
/// "float32 (2, 3) on cpu that requires a gradient".
std::string to_string(const TensorSignature& signature);

}  // namespace vkml
