#include "kernels/epilogue.h"

#include "kernels/conversions.h"

namespace vkml::vulkan {

using spirv::Value;

namespace {

constexpr std::uint32_t kVector = 4;

/// Strides of a dense row-major operand, 0 along axes of extent 1.
dispatch::Extents dense_strides(const dispatch::Extents& extents) {
  dispatch::Extents strides{};
  std::int64_t stride = 1;
  for (std::size_t axis = extents.size(); axis-- > 0;) {
    strides[axis] = extents[axis] == 1 ? 0 : stride;
    stride *= extents[axis];
  }
  return strides;
}

}  // namespace

Epilogue::Epilogue(Shader& shader)
    : shader_(shader), b_(shader.builder()), kernel_(shader.context().kernel) {
  const dispatch::Extents& space = kernel_.space;
  for (std::size_t axis = 0; axis < extents_.size(); ++axis) {
    extents_[axis] = space[axis] == 1 ? b_.u32(1) : shader_.parameter(space[axis]);
  }
  // Dense operands, the usual ones, share their strides.
  const dispatch::Extents dense = dense_strides(space);
  Coordinates shared;
  const auto strides_of = [&](const dispatch::Operand& operand) {
    dispatch::Extents strides = operand.strides;
    for (std::size_t axis = 0; axis < strides.size(); ++axis) {
      if (space[axis] == 1) strides[axis] = 0;
    }
    const bool is_dense = strides == dense;
    if (is_dense && shared[0]) return shared;
    Coordinates values;
    for (std::size_t axis = 0; axis < strides.size(); ++axis) {
      values[axis] = shader_.stride_parameter(strides[axis]);
    }
    if (is_dense) shared = values;
    return values;
  };
  const auto open = [&](const dispatch::Operand& operand) {
    Access access{Elements(shader_, operand), strides_of(operand), operand.strides[3] == 1};
    for (std::size_t axis = 0; axis + 1 < space.size(); ++axis) {
      access.may_be_vector &= space[axis] == 1 || operand.strides[axis] % kVector == 0;
    }
    return access;
  };
  for (const dispatch::Operand& store : kernel_.stores) stores_.push_back(open(store));
  for (const dispatch::Operand& load : kernel_.loads) loads_.push_back(open(load));
}

Coordinates Epilogue::coordinates_of(Value element) {
  Coordinates at;
  Value rest = element;
  for (std::size_t axis = at.size(); axis-- > 1;) {
    const Value outer = rest / extents_[axis];
    at[axis] = extents_[axis].is(1) ? b_.u32(0) : rest - outer * extents_[axis];
    rest = outer;
  }
  at[0] = rest;
  return at;
}

Value Epilogue::index_of(const Access& access, const Coordinates& at) {
  Value index = b_.u32(0);
  for (std::size_t axis = 0; axis < at.size(); ++axis) {
    index = index + at[axis] * access.strides[axis];
  }
  return index;
}

void Epilogue::run(const Coordinates& at, Value core) {
  ProgramSources sources;
  sources.load = [&](int load) {
    const Access& access = loads_[static_cast<std::size_t>(load)];
    return access.elements.load(index_of(access, at));
  };
  sources.coordinate = [&](int axis) { return at[static_cast<std::size_t>(axis)]; };
  sources.core = core;
  ProgramEmitter program(shader_, 1, std::move(sources));
  program.emit_all();
  shader_.guarded([&] {
    for (std::size_t i = 0; i < stores_.size(); ++i) {
      stores_[i].elements.store(index_of(stores_[i], at),
                                program.value(kernel_.program.outputs[i]));
    }
  });
}

Value Epilogue::whole_vector(const Access& access, const Coordinates& at) {
  if (!access.may_be_vector) return b_.boolean(false);
  if (kernel_.space[3] % kVector == 0) return access.elements.is_aligned();
  return logical_and(access.elements.is_aligned(), less_equal(at[3] + kVector, extents_[3]));
}

Value Epilogue::load4(const Access& access, const Coordinates& at) {
  const Value first = index_of(access, at);
  if (access.strides[3].is(0)) return access.elements.load(first);
  const Value last = extents_[3] - 1;
  const auto one_by_one = [&] {
    std::vector<Value> lanes;
    for (std::uint32_t k = 0; k < kVector; ++k) {
      Coordinates place = at;
      place[3] = at[3] + k;
      place[3] = b_.select(less(place[3], extents_[3]), place[3], last);
      lanes.push_back(access.elements.load(index_of(access, place)));
    }
    return b_.compose(lanes);
  };
  const Value whole = whole_vector(access, at);
  if (whole.is(1)) return access.elements.load4(first);
  if (whole.is(0)) return one_by_one();
  const spirv::Variable loaded(
      b_, value_type(ops::compute_type(access.elements.dtype()), static_cast<int>(kVector)));
  b_.if_else(
      whole, [&] { loaded.store(access.elements.load4(first)); },
      [&] { loaded.store(one_by_one()); });
  return loaded.load();
}

void Epilogue::store4(const Access& access, const Coordinates& at, Value value) {
  const Value first = index_of(access, at);
  b_.if_else(
      whole_vector(access, at), [&] { access.elements.store4(first, value); },
      [&] {
        for (std::uint32_t k = 0; k < kVector; ++k) {
          b_.if_then(less(at[3] + k, extents_[3]), [&] {
            access.elements.store(first + access.strides[3] * k,
                                  b_.component(value, static_cast<int>(k)));
          });
        }
      });
}

void Epilogue::run4(const Coordinates& at, Value core) {
  ProgramSources sources;
  sources.load = [&](int load) { return load4(loads_[static_cast<std::size_t>(load)], at); };
  sources.coordinate = [&](int axis) {
    const Value first = at[static_cast<std::size_t>(axis)];
    if (axis != 3) return first;
    const std::array<Value, kVector> lanes{first, first + 1, first + 2, first + 3};
    return b_.compose(lanes);
  };
  sources.core = core;
  ProgramEmitter program(shader_, static_cast<int>(kVector), std::move(sources));
  program.emit_all();
  shader_.guarded([&] {
    for (std::size_t i = 0; i < stores_.size(); ++i) {
      store4(stores_[i], at, program.value(kernel_.program.outputs[i]));
    }
  });
}

}  // namespace vkml::vulkan
