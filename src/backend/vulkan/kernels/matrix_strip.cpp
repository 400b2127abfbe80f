#include "kernels/matrix_strip.h"

#include <algorithm>

namespace vkml::vulkan {

using spirv::Value;

namespace {
constexpr std::uint32_t kVector = 4;  // sums in 16 bytes
}  // namespace

MatrixStrip::MatrixStrip(Shader& shader, std::uint32_t matrices)
    : b_(shader.builder()), matrices_(matrices), lanes_(shader.traits().subgroup_size) {}

void MatrixStrip::set_memory(const spirv::SharedArray& memory, Value first) {
  memory_ = memory;
  first_ = first;
}

void MatrixStrip::write(std::span<const spirv::Matrix> sums, std::uint32_t neighbours,
                        const Sink& sink) const {
  const std::uint32_t row_length = columns() / neighbours;
  const std::uint32_t rows_a_turn = std::max(lanes_ / row_length, 1u);
  for (std::uint32_t i = 0; i < matrices_; ++i) {
    store_matrix(memory_, sums[i], first_ + i * (kMatrixEdge / kVector), stride());
  }
  b_.subgroup_barrier();
  const Value lane = b_.subgroup_lane();
  const Value own_row = row_length < lanes_ ? lane / row_length : b_.u32(0);
  const Value own_column = row_length < lanes_ ? lane % row_length : lane;
  // Where rows and invocations do not divide each other, some of the latter have nothing to do.
  const Value has_row = lanes_ % row_length == 0 || row_length > lanes_
                            ? b_.boolean(true)
                            : less(own_row, rows_a_turn);
  b_.for_range(b_.u32(0), b_.u32(kMatrixEdge), b_.u32(rows_a_turn), [&](Value turn) {
    const Value row = turn + own_row;
    for (std::uint32_t step = 0; step < row_length; step += lanes_) {
      const bool is_whole = step + lanes_ <= row_length || row_length < lanes_;
      Value is_inside = is_whole ? has_row : less(own_column + step, row_length);
      if (kMatrixEdge % rows_a_turn != 0)
        is_inside = logical_and(is_inside, less(row, kMatrixEdge));
      const auto hand_on = [&] {
        const Value column = (own_column + step) * neighbours;
        const Value vector = first_ + row * stride() + column / kVector;
        const Value bits = neighbours == 1 ? memory_.load_component(vector, column & (kVector - 1))
                                           : memory_.load(vector);
        sink(row, column,
             b_.bitcast(bits,
                        spirv::with_components(spirv::kFloat32, static_cast<int>(neighbours))));
      };
      if (is_inside.is(1)) {
        hand_on();
      } else {
        b_.if_then(is_inside, hand_on);
      }
    }
  });
  b_.subgroup_barrier();
}

}  // namespace vkml::vulkan
