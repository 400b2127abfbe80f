// Pooling over windows of images (N, C, H, W), and the gradients: one invocation an element. The
// gradients look for the windows that contain their input, in window order, so that nothing needs
// atomics. Window sizes, strides and paddings belong to the module. Bound: memory, each input read
// once for each window that it lies in (from the cache).
#include <bit>

#include "kernels/conversions.h"
#include "kernels/kernels.h"
#include "kernels/per_element.h"

namespace vkml::vulkan {

using ops::CoreKind;
using spirv::Value;

namespace {

/// A window along one axis.
struct Window {
  std::uint32_t size = 1, stride = 1, padding = 0, dilation = 1;

  std::uint32_t reach() const { return (size - 1) * dilation; }
};

struct Windows {
  Window h, w;
  bool counts_padding = false;
};

Windows windows_of(const dispatch::Kernel& kernel) {
  const auto attribute = [&](int i) { return static_cast<std::uint32_t>(kernel.attributes[i]); };
  Windows windows{{attribute(0), attribute(2), attribute(4), 1},
                  {attribute(1), attribute(3), attribute(5), 1},
                  false};
  if (kernel.kind == CoreKind::kAvgPool2d || kernel.kind == CoreKind::kAvgPool2dGradient) {
    windows.counts_padding = attribute(6) != 0;
  } else {
    windows.h.dilation = attribute(6);
    windows.w.dilation = attribute(7);
  }
  return windows;
}

/// Calls `body` with each position of the window that lies in the image.
void for_window(spirv::Builder& b, const Windows& windows, const Coordinates& at, Value height,
                Value width, const std::function<void(Value h, Value w)>& body) {
  // Positions before the image wrap to large ones: one comparison tells both sides.
  const Value first_h = at[2] * windows.h.stride - windows.h.padding;
  const Value first_w = at[3] * windows.w.stride - windows.w.padding;
  b.for_range(b.u32(0), b.u32(windows.h.size), b.u32(1), [&](Value y) {
    const Value h = first_h + y * windows.h.dilation;
    b.if_then(less(h, height), [&] {
      b.for_range(b.u32(0), b.u32(windows.w.size), b.u32(1), [&](Value x) {
        const Value w = first_w + x * windows.w.dilation;
        b.if_then(less(w, width), [&] { body(h, w); });
      });
    });
  });
}

/// Calls `body` with each window that may contain the position, in order.
void for_windows_at(spirv::Builder& b, const Windows& windows, const Coordinates& at,
                    Value out_height, Value out_width,
                    const std::function<void(Value oh, Value ow)>& body) {
  struct Range {
    Value begin, end;
  };
  const auto range = [&](const Window& window, Value position, Value extent) {
    const Value padded = position + window.padding;
    const Value last = padded / window.stride + 1;
    const Value reach = b.u32(window.reach());
    const Value first = (padded - reach + (window.stride - 1)) / window.stride;
    return Range{b.select(less(reach, padded), first, b.u32(0)),
                 b.select(less(last, extent), last, extent)};
  };
  const Range rows = range(windows.h, at[2], out_height);
  const Range columns = range(windows.w, at[3], out_width);
  b.for_range(rows.begin, rows.end, b.u32(1), [&](Value oh) {
    b.for_range(columns.begin, columns.end, b.u32(1), [&](Value ow) { body(oh, ow); });
  });
}

/// How many elements a window's mean divides by, as a float.
Value window_count(spirv::Builder& b, const Windows& windows, Value oh, Value ow, Value height,
                   Value width, spirv::Type type) {
  const auto along = [&](const Window& window, Value position, Value extent) {
    // Counted from the start of the padding, so that nothing is negative.
    const Value begin = position * window.stride;
    const Value past = begin + window.size;
    const Value limit = extent + (windows.counts_padding ? 2 * window.padding : window.padding);
    const Value end = b.select(less(past, limit), past, limit);
    if (windows.counts_padding) return end - begin;
    const Value padding = b.u32(window.padding);
    return end - b.select(less(begin, padding), padding, begin);
  };
  const Value count = along(windows.h, oh, height) * along(windows.w, ow, width);
  return b.op(spv::Op::OpConvertUToF, type, {count});
}

Value divide(Shader& shader, ops::ScalarType type, Value a, Value b) {
  ops::Instruction instruction;
  instruction.op = ops::Opcode::kDiv;
  instruction.type = type;
  return emit_operation(shader, instruction, a, b, {});
}

CoreAt open_max_pool(Shader& shader, const dispatch::Kernel& kernel) {
  const CoreInput input(shader, kernel.core_inputs[0]);
  const Value height = shader.parameter(kernel.core_inputs[0].extents[2]);
  const Value width = shader.parameter(kernel.core_inputs[0].extents[3]);
  const bool wants_position = kernel.kind == CoreKind::kMaxPool2dIndices;
  const spirv::Type type = value_type(ops::compute_type(kernel.core_inputs[0].dtype));
  return [&shader, input, height, width, wants_position, type,
          windows = windows_of(kernel)](const Coordinates& at) {
    spirv::Builder& b = shader.builder();
    const spirv::Variable best(b, type), position(b, spirv::kInt32), found(b, spirv::kBool);
    best.store(b.constant(type, 0));
    position.store(b.u32(0));
    found.store(b.boolean(false));
    for_window(b, windows, at, height, width, [&](Value h, Value w) {
      const Value value = input.load({at[0], at[1], h, w});
      const Value holder = best.load();
      Value wins = spirv::is_float(type) ? less(holder, value) : signed_less(holder, value);
      if (spirv::is_float(type)) {
        wins = logical_and(logical_not(is_nan(holder)), logical_or(is_nan(value), wins));
      }
      b.if_then(logical_or(logical_not(found.load()), wins), [&] {
        best.store(value);
        position.store(h * width + w);
        found.store(b.boolean(true));
      });
    });
    return wants_position ? position.load() : best.load();
  };
}

CoreAt open_max_pool_gradient(Shader& shader, const dispatch::Kernel& kernel) {
  const CoreInput gradient(shader, kernel.core_inputs[0]), indices(shader, kernel.core_inputs[1]);
  const Value out_height = shader.parameter(kernel.core_inputs[0].extents[2]);
  const Value out_width = shader.parameter(kernel.core_inputs[0].extents[3]);
  const Value width = shader.parameter(kernel.space[3]);
  const spirv::Type type = value_type(ops::compute_type(kernel.core_inputs[0].dtype));
  return [&shader, gradient, indices, out_height, out_width, width, type,
          windows = windows_of(kernel)](const Coordinates& at) {
    spirv::Builder& b = shader.builder();
    const spirv::Variable sum(b, type);
    sum.store(b.constant(type, 0));
    const Value here = at[2] * width + at[3];
    for_windows_at(b, windows, at, out_height, out_width, [&](Value oh, Value ow) {
      const Coordinates window{at[0], at[1], oh, ow};
      const Value winner = b.widen(indices.load(window), spirv::Scalar::kInt32);
      b.if_then(equal(winner, here), [&] { sum.store(sum.load() + gradient.load(window)); });
    });
    return sum.load();
  };
}

CoreAt open_average_pool(Shader& shader, const dispatch::Kernel& kernel) {
  const CoreInput input(shader, kernel.core_inputs[0]);
  const Value height = shader.parameter(kernel.core_inputs[0].extents[2]);
  const Value width = shader.parameter(kernel.core_inputs[0].extents[3]);
  return [&shader, input, height, width, scalar = kernel.core_type,
          windows = windows_of(kernel)](const Coordinates& at) {
    spirv::Builder& b = shader.builder();
    const spirv::Type type = value_type(scalar);
    const spirv::Variable sum(b, type);
    sum.store(b.constant(type, 0));
    for_window(b, windows, at, height, width, [&](Value h, Value w) {
      sum.store(sum.load() + input.load({at[0], at[1], h, w}));
    });
    return divide(shader, scalar, sum.load(),
                  window_count(b, windows, at[2], at[3], height, width, type));
  };
}

CoreAt open_average_pool_gradient(Shader& shader, const dispatch::Kernel& kernel) {
  const CoreInput gradient(shader, kernel.core_inputs[0]);
  const Value out_height = shader.parameter(kernel.core_inputs[0].extents[2]);
  const Value out_width = shader.parameter(kernel.core_inputs[0].extents[3]);
  const Value height = shader.parameter(kernel.space[2]);
  const Value width = shader.parameter(kernel.space[3]);
  return [&shader, gradient, out_height, out_width, height, width, scalar = kernel.core_type,
          windows = windows_of(kernel)](const Coordinates& at) {
    spirv::Builder& b = shader.builder();
    const spirv::Type type = value_type(scalar);
    const spirv::Variable sum(b, type);
    sum.store(b.constant(type, 0));
    for_windows_at(b, windows, at, out_height, out_width, [&](Value oh, Value ow) {
      const Value count = window_count(b, windows, oh, ow, height, width, type);
      sum.store(sum.load() + divide(shader, scalar, gradient.load({at[0], at[1], oh, ow}), count));
    });
    return sum.load();
  };
}

}  // namespace

std::vector<Dispatch> generate_pool2d(const Context& context) {
  const dispatch::Kernel& kernel = context.kernel;
  const std::int64_t window_rows = kernel.attributes[0];
  require_turns(context, window_rows * (kernel.attributes[1] + 1));
  const auto open = [&](Shader& shader) {
    switch (kernel.kind) {
      case CoreKind::kMaxPool2dGradient:
        return open_max_pool_gradient(shader, kernel);
      case CoreKind::kAvgPool2d:
        return open_average_pool(shader, kernel);
      case CoreKind::kAvgPool2dGradient:
        return open_average_pool_gradient(shader, kernel);
      default:
        return open_max_pool(shader, kernel);
    }
  };
  return {generate_per_element(context, name_of(kernel.kind), open)};
}

}  // namespace vkml::vulkan
