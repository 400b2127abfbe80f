#include "vkml/api/call_signature.h"

#include <fmt/format.h>

#include "vkml/graph/value.h"

namespace vkml {

CallModes modes_now() {
  return {is_grad_enabled(), matmul_precision(), autocast_dtype(), default_device()};
}

TensorSignature signature_of(const graph::Value& value) {
  return {value.shape(), value.dtype(), value.device(), value->requires_grad(),
          value->is_gradient_stop()};
}
TensorSignature signature_of(const Tensor& tensor) { return signature_of(tensor.value()); }

std::string to_string(const TensorSignature& signature) {
  return fmt::format("{} {} on {}{}", name_of(signature.dtype), signature.shape.to_string(),
                     to_string(signature.device),
                     signature.requires_grad ? " that requires a gradient" : "");
}

}  // namespace vkml
