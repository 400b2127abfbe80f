#include "kernels/matrix_staging.h"

#include "kernels/conversions.h"
#include "kernels/matrix_parts.h"

namespace vkml::vulkan {

using spirv::MatrixLayout;
using spirv::MatrixUse;
using spirv::Value;

namespace {

constexpr std::uint32_t kVector = kMatrixRun;  // elements

}  // namespace

MatrixStaging::MatrixStaging(Shader& shader, ContractionOperand& operand, MatrixUse use,
                             const MatrixFormat& format, const Shape& shape)
    : b_(shader.builder()),
      operand_(operand),
      use_(use),
      format_(format),
      shape_(shape),
      is_gathered_(operand.vectors() == ContractionOperand::Dense::kNone),
      is_inner_(is_gathered_ ? operand.inner_is_nearest()
                             : operand.vectors() == ContractionOperand::Dense::kInner) {
  if (!is_gathered_) lines_ = operand.lines();
  for (std::uint32_t i = 0; i < passes() * vectors_a_group(); ++i) {
    loaded_.emplace_back(b_, kWord4);
  }
}

void MatrixStaging::set_memory(const spirv::SharedArray& memory, std::uint32_t first,
                               const spirv::SharedArray& found_special) {
  memory_ = memory;
  first_ = first;
  found_special_ = found_special;
}

void MatrixStaging::set_place(Value local, Value first_outer) {
  row_ = local / row_vectors();
  // Invocations that a short tile has no rows for repeat its last one.
  if (rows() < rows_a_pass()) {
    row_ = b_.select(less(row_, rows()), row_, b_.u32(rows() - 1));
  }
  column_ = local % row_vectors();
  first_outer_ = first_outer;
  if (is_gathered_) {
    if (is_inner_) {
      for (std::uint32_t pass = 0; pass < passes(); ++pass) {
        gathered_outers_.push_back(
            operand_.outer(clamped(first_outer + row_ + pass * rows_a_pass())));
      }
    } else {
      const PositionRun run =
          operand_.outer_run(first_outer + column_ * kVector, shape_.extent - 1);
      gathered_outers_.assign(run.begin(), run.end());
    }
    return;
  }
  lines_ = operand_.lines();
  if (!is_inner_) {
    start_ =
        lines_.first + clamped_vector(first_outer + column_ * kVector) + row_ * lines_.inner_stride;
  } else {
    start_ = lines_.first + column_ * kVector;
    if (shape_.whole_tiles) start_ = start_ + (first_outer + row_) * lines_.outer_stride;
  }
}

Value MatrixStaging::clamped(Value outer) const {
  const Value last = shape_.extent - 1;
  return shape_.whole_tiles ? outer : b_.select(less(last, outer), last, outer);
}

Value MatrixStaging::clamped_vector(Value outer) const {
  const Value last = (shape_.extent - 1) & ~(kVector - 1);
  return shape_.whole_tiles ? outer : b_.select(less(last, outer), last, outer);
}

void MatrixStaging::load_group(std::uint32_t pass, Value element) {
  for (std::uint32_t i = 0; i < vectors_a_group(); ++i) {
    loaded_[pass * vectors_a_group() + i].store(
        operand_.load_vector(element + i * (kVector / vectors_a_group())));
  }
}

Value MatrixStaging::outer_offset(std::uint32_t pass) const {
  const std::uint32_t step = pass * rows_a_pass();
  if (!is_inner_) return b_.u32(0);
  return (shape_.whole_tiles ? b_.u32(step) : clamped(first_outer_ + row_ + step)) *
         lines_.outer_stride;
}

void MatrixStaging::load_whole(Value k) {
  for (std::uint32_t pass = 0; pass < passes(); ++pass) {
    const Value inner = is_inner_ ? k : (k + pass * rows_a_pass()) * lines_.inner_stride;
    load_group(pass, start_ + inner + outer_offset(pass));
  }
}

void MatrixStaging::load_masked(Value k, Value end) {
  for (std::uint32_t pass = 0; pass < passes(); ++pass) {
    // Rows along k end with a whole vector, or are padded with zeros to one.
    const Value step = is_inner_ ? k : k + pass * rows_a_pass();
    const Value is_inside = less(step + (is_inner_ ? column_ * kVector : row_), end);
    const Value element = start_ + step * lines_.inner_stride + outer_offset(pass);
    load_group(pass, b_.select(is_inside, element, lines_.first));
    for (std::uint32_t i = 0; i < vectors_a_group(); ++i) {
      const spirv::Variable& loaded = loaded_[pass * vectors_a_group() + i];
      loaded.store(b_.select(is_inside, loaded.load(), b_.constant(kWord4, 0)));
    }
  }
}

/// Elements past the end of the sum are read at its last one, and count as 0.
void MatrixStaging::gather(Value k, Value end) {
  const Value last = end - 1;
  PositionRun along_k;
  if (is_inner_) along_k = operand_.inner_run(k + column_ * kVector, last);
  for (std::uint32_t pass = 0; pass < passes(); ++pass) {
    const Value step = is_inner_ ? k + column_ * kVector : k + row_ + pass * rows_a_pass();
    if (!is_inner_) {
      const Value inside = shape_.whole_steps ? step : b_.select(less(last, step), last, step);
      along_k.fill(operand_.inner(inside));
    }
    std::array<Value, kVector> elements;
    for (std::uint32_t i = 0; i < kVector; ++i) {
      elements[i] = operand_.load(gathered_outers_[is_inner_ ? pass : i], along_k[i]);
      if (shape_.whole_steps) continue;
      const Value is_inside = less(is_inner_ ? step + i : step, end);
      elements[i] = b_.select(is_inside, elements[i], b_.constant(elements[i].type, 0));
    }
    const Group group{b_.compose(std::span(elements).first(4)),
                      b_.compose(std::span(elements).last(4))};
    if (format_.dtype == DType::kF32) {
      loaded_[std::size_t{2} * pass].store(b_.bitcast(group[0], kWord4));
      loaded_[std::size_t{2} * pass + 1].store(b_.bitcast(group[1], kWord4));
    } else {
      loaded_[pass].store(pack(group)[0]);
    }
  }
}

void MatrixStaging::load(Value k, Value end) {
  if (is_gathered_) {
    gather(k, end);
    return;
  }
  if (shape_.whole_steps) {
    load_whole(k);
    return;
  }
  b_.if_else(
      less_equal(k + shape_.depth, end), [&] { load_whole(k); }, [&] { load_masked(k, end); });
}

Value MatrixStaging::place_of(std::uint32_t part, Value pass) const {
  return (row_ + pass * rows_a_pass()) * row_stride() + column_ + (first_ + part * part_vectors());
}

void MatrixStaging::write(Value pass, const Words& words) {
  for (std::uint32_t part = 0; part < words.size(); ++part) {
    memory_.store(place_of(part, pass), words[part]);
  }
}

void MatrixStaging::store() {
  if (format_.dtype != DType::kF32) {
    for (std::uint32_t pass = 0; pass < passes(); ++pass) {
      write(b_.u32(pass), {loaded_[pass].load()});
    }
    return;
  }
  const auto group = [&](std::uint32_t pass) {
    return Group{b_.bitcast(loaded_[std::size_t{2} * pass].load(), kFloat4),
                 b_.bitcast(loaded_[std::size_t{2} * pass + 1].load(), kFloat4)};
  };
  std::vector<Words> words;
  Group rests{b_.constant(kFloat4, 0), b_.constant(kFloat4, 0)};
  for (std::uint32_t pass = 0; pass < passes(); ++pass) {
    Group rest = group(pass);
    words.push_back(cut(rest, format_.parts));
    rests = pass == 0 ? rest : Group{rests[0] + rest[0], rests[1] + rest[1]};
  }
  b_.if_else(
      is_special(rests),
      [&] {
        found_special_.store(b_.u32(0), b_.u32(1));
        for (std::uint32_t pass = 0; pass < passes(); ++pass) {
          write(b_.u32(pass), cut_finite(group(pass), format_.parts));
        }
      },
      [&] {
        for (std::uint32_t pass = 0; pass < passes(); ++pass) write(b_.u32(pass), words[pass]);
      });
}

MatrixStaging::Group MatrixStaging::group_in_memory(Value pass, Value k, Value end) const {
  const Value row = row_ + pass * rows_a_pass();
  std::array<Value, kVector> elements;
  for (std::uint32_t i = 0; i < kVector; ++i) {
    const Value column = column_ * kVector + i;
    const Value inner = k + (is_inner_ ? column : row);
    const Value outer = clamped(first_outer_ + (is_inner_ ? row : column));
    const Value is_inside = shape_.whole_steps ? b_.boolean(true) : less(inner, end);
    const Value value = operand_.load(operand_.outer(outer),
                                      operand_.inner(b_.select(is_inside, inner, b_.u32(0))));
    elements[i] = b_.select(is_inside, value, b_.constant(value.type, 0));
  }
  return {b_.compose(std::span(elements).first(4)), b_.compose(std::span(elements).last(4))};
}

/// The elements as they lie in memory.
MatrixStaging::Words MatrixStaging::pack(const Group& group) const {
  const auto low = lower_halves(bits_of_value(format_.dtype, group[0]));
  const auto high = lower_halves(bits_of_value(format_.dtype, group[1]));
  const std::array<Value, 4> words{low[0], low[1], high[0], high[1]};
  return {b_.compose(words)};
}

void MatrixStaging::stage(Value k, Value end, const Cut& to_words) {
  b_.for_range(b_.u32(0), b_.u32(passes()), b_.u32(1),
               [&](Value pass) { write(pass, to_words(group_in_memory(pass, k, end))); });
}

void MatrixStaging::stage_elements(Value k, Value end) {
  stage(k, end, [&](const Group& group) {
    if (format_.dtype != DType::kF32) return pack(group);
    Group rests = group;
    cut(rests, format_.parts);
    b_.if_then(is_special(rests), [&] { found_special_.store(b_.u32(0), b_.u32(1)); });
    return cut_finite(group, format_.parts);
  });
}

void MatrixStaging::stage_special(Value k, Value end) {
  stage(k, end, [&](const Group& group) { return special_parts(use_, group); });
}

spirv::Matrix MatrixStaging::read(std::uint32_t part, Value outer, std::uint32_t k) const {
  const std::uint32_t begin = first_ + part * part_vectors();
  const Value first = is_inner_ ? outer * row_stride() + (begin + k / kVector)
                                : outer / kVector + (begin + k * row_stride());
  const spirv::MatrixType type{format_.scalar, use_, kMatrixEdge, kMatrixEdge};
  const bool is_row_major = is_inner_ == (use_ == MatrixUse::kA);
  return spirv::load_matrix(memory_, type, first, row_stride(),
                            is_row_major ? MatrixLayout::kRowMajor : MatrixLayout::kColumnMajor);
}

}  // namespace vkml::vulkan
