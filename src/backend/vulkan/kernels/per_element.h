// The shape of kernels in which each invocation finds one element of the space by itself: gather,
// scatter, pooling.
#pragma once

#include <functional>

#include "kernels/epilogue.h"

namespace vkml::vulkan {

/// A core's operand, read at coordinates of its own.
class CoreInput {
 public:
  CoreInput(Shader& shader, const dispatch::Operand& operand);
  spirv::Value load(const Coordinates& at) const;

 private:
  Elements elements_;
  Coordinates strides_;
};

/// The core's result at a place in the space.
using CoreAt = std::function<spirv::Value(const Coordinates& at)>;

/// One invocation an element. `open` opens the core's operands and says how to compute it.
Dispatch generate_per_element(const Context& context, const char* name,
                              const std::function<CoreAt(Shader& shader)>& open,
                              Touches touches = {});

/// The core's inputs alone.
inline constexpr Touches kTouchesInputs{true, false, false};

/// One invocation for each of `extents`, without program: `open` gives what to do.
Dispatch generate_per_index(
    const Context& context, const char* name, const dispatch::Extents& extents,
    const std::function<std::function<void(const Coordinates&)>(Shader&)>& open,
    Touches touches = kTouchesInputs);

}  // namespace vkml::vulkan
