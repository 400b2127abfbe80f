// Map: the scalar program at each element of a space, no element depending on another.
//
// Axes are joined as far as the operands allow. Where the results are dense along the innermost
// axis, an invocation computes four neighbours and moves them as one 16-byte vector; memory bound
// from outside may start anywhere, so that alignment is tested at run time, and the same
// invocation then takes its elements one by one. Bound: memory.
#include <algorithm>

#include "kernels/collapse.h"
#include "kernels/kernels.h"
#include "kernels/program.h"

namespace vkml::vulkan {

using spirv::Value;

namespace {

constexpr int kVector = 4;

class MapKernel {
 public:
  explicit MapKernel(const Context& context);
  Dispatch generate();

 private:
  struct Access {
    Elements elements;
    std::vector<Value> strides;  // by axis
    bool is_linear = false;      // the element's number is its place
    bool is_vector = false;      // dense along the innermost axis, whole vectors aligned
  };

  bool may_use_vectors() const;
  bool is_dense(std::size_t operand) const;
  void open_operands();
  std::vector<Value> coordinates_of(Value element);
  Value index_of(const Access& access, Value element, const std::vector<Value>& coordinates);
  Value load(const Access& access, Value element, const std::vector<Value>& coordinates,
             int components);
  void store(const Access& access, Value element, const std::vector<Value>& coordinates,
             Value value);
  void compute(Value element, int components);
  void compute_vector(Value element);

  const dispatch::Kernel& kernel_;
  std::vector<const dispatch::Operand*> operands_;  // stores, then loads
  CollapsedSpace space_;
  bool vectors_;
  Shader shader_;
  spirv::Builder& b_;
  std::vector<Value> extents_;  // by axis; the outermost is not needed
  std::vector<Access> accesses_;
  Value count_;
};

std::vector<const dispatch::Operand*> stores_then_loads(const dispatch::Kernel& kernel) {
  std::vector<const dispatch::Operand*> operands;
  for (const dispatch::Operand& store : kernel.stores) operands.push_back(&store);
  for (const dispatch::Operand& load : kernel.loads) operands.push_back(&load);
  return operands;
}

std::uint32_t workgroup_size(const DeviceTraits& traits) {
  return std::min<std::uint32_t>(traits.is_software ? 64 : 256, traits.max_workgroup_invocations);
}

MapKernel::MapKernel(const Context& context)
    : kernel_(context.kernel),
      operands_(stores_then_loads(kernel_)),
      space_(collapse(kernel_.space, operands_, coordinate_axes(kernel_), true)),
      vectors_(may_use_vectors()),
      shader_(context, vectors_ ? "map_vec4" : "map", {workgroup_size(context.traits), 1, 1}),
      b_(shader_.builder()) {}

bool MapKernel::is_dense(std::size_t operand) const {
  const std::vector<std::int64_t>& strides = space_.strides[operand];
  if (strides.back() != 1) return false;
  return std::all_of(strides.begin(), strides.end() - 1,
                     [](std::int64_t stride) { return stride % kVector == 0; });
}

bool MapKernel::may_use_vectors() const {
  if (space_.rank() > 1 && space_.extents.back() % kVector != 0) return false;
  for (std::size_t i = 0; i < kernel_.stores.size(); ++i) {
    if (!is_dense(i)) return false;
  }
  return space_.count() >= kVector;
}

void MapKernel::open_operands() {
  extents_.resize(static_cast<std::size_t>(space_.rank()));
  for (std::size_t axis = 1; axis < extents_.size(); ++axis) {
    extents_[axis] = shader_.parameter(space_.extents[axis]);
  }
  for (std::size_t i = 0; i < operands_.size(); ++i) {
    const std::vector<std::int64_t>& strides = space_.strides[i];
    Access access;
    access.elements = Elements(shader_, *operands_[i]);
    std::int64_t dense = 1;
    access.is_linear = true;
    for (std::size_t axis = strides.size(); axis-- > 0;) {
      access.is_linear &= strides[axis] == dense;
      dense *= space_.extents[axis];
    }
    if (!access.is_linear) {
      for (const std::int64_t stride : strides) {
        access.strides.push_back(shader_.stride_parameter(stride));
      }
    }
    access.is_vector = vectors_ && is_dense(i);
    accesses_.push_back(std::move(access));
  }
}

std::vector<Value> MapKernel::coordinates_of(Value element) {
  std::vector<Value> coordinates(extents_.size());
  Value rest = element;
  for (std::size_t axis = extents_.size(); axis-- > 1;) {
    const Value outer = rest / extents_[axis];
    coordinates[axis] = rest - outer * extents_[axis];
    rest = outer;
  }
  coordinates[0] = rest;
  return coordinates;
}

Value MapKernel::index_of(const Access& access, Value element,
                          const std::vector<Value>& coordinates) {
  if (access.is_linear) return element;
  Value index = b_.u32(0);
  for (std::size_t axis = 0; axis < coordinates.size(); ++axis) {
    index = index + coordinates[axis] * access.strides[axis];
  }
  return index;
}

Value MapKernel::load(const Access& access, Value element, const std::vector<Value>& coordinates,
                      int components) {
  const Value index = index_of(access, element, coordinates);
  if (components == 1) return access.elements.load(index);
  if (access.is_vector) return access.elements.load4(index);
  const Value stride = access.is_linear ? b_.u32(1) : access.strides.back();
  if (stride.is(0)) return access.elements.load(index);
  std::vector<Value> lanes;
  for (std::uint32_t k = 0; k < kVector; ++k) {
    lanes.push_back(access.elements.load(index + stride * k));
  }
  return b_.compose(lanes);
}

void MapKernel::store(const Access& access, Value element, const std::vector<Value>& coordinates,
                      Value value) {
  const Value index = index_of(access, element, coordinates);
  if (access.is_vector && value.type.components == kVector) {
    access.elements.store4(index, value);
  } else {
    access.elements.store(index, value);
  }
}

void MapKernel::compute(Value element, int components) {
  const std::vector<Value> coordinates = coordinates_of(element);
  const std::size_t first_load = kernel_.stores.size();
  ProgramSources sources;
  sources.load = [&](int load) {
    return this->load(accesses_[first_load + static_cast<std::size_t>(load)], element, coordinates,
                      components);
  };
  sources.coordinate = [&](int axis) {
    const int place = space_.place[static_cast<std::size_t>(axis)];
    if (place < 0) return b_.u32(0);
    const Value coordinate = coordinates[static_cast<std::size_t>(place)];
    if (components == 1 || place + 1 != space_.rank()) return coordinate;
    const std::array<Value, kVector> lanes{coordinate, coordinate + 1, coordinate + 2,
                                           coordinate + 3};
    return b_.compose(lanes);
  };
  ProgramEmitter program(shader_, components, std::move(sources));
  program.emit_all();
  shader_.guarded([&] {
    for (std::size_t i = 0; i < kernel_.stores.size(); ++i) {
      store(accesses_[i], element, coordinates, program.value(kernel_.program.outputs[i]));
    }
  });
}

void MapKernel::compute_vector(Value element) {
  Value whole = b_.boolean(true);
  for (const Access& access : accesses_) {
    if (access.is_vector) whole = logical_and(whole, access.elements.is_aligned());
  }
  if (space_.count() % kVector != 0) {
    whole = logical_and(whole, less_equal(element + kVector, count_));
  }
  b_.if_else(
      whole, [&] { compute(element, kVector); },
      [&] {
        const Value past = element + kVector;
        const Value end = b_.select(less(past, count_), past, count_);
        b_.for_range(element, end, b_.u32(1), [&](Value one) { compute(one, 1); });
      });
}

Dispatch MapKernel::generate() {
  open_operands();
  count_ = shader_.parameter(space_.count());
  const std::uint32_t per_invocation = vectors_ ? kVector : 1;
  const Value element = shader_.global_index() * per_invocation;
  b_.if_then(less(element, count_), [&] {
    if (vectors_) {
      compute_vector(element);
    } else {
      compute(element, 1);
    }
  });
  const std::int64_t per_group = std::int64_t{shader_.local_count()} * per_invocation;
  return shader_.finish(shader_.groups_for((space_.count() + per_group - 1) / per_group));
}

}  // namespace

std::vector<Dispatch> generate_map(const Context& context) {
  MapKernel kernel(context);
  return {kernel.generate()};
}

}  // namespace vkml::vulkan
