// Scans: what is carried along an axis, element by element.
//
// Where there are many lines, each invocation walks along one of its own. Else a workgroup takes a
// line: chunk by chunk, its invocations combine what they hold by recursive doubling in shared
// memory (Hillis and Steele, CACM 29, 1986), and add what the chunks before carried over. The order
// is fixed, so that results never change from run to run.
// Bound: memory with many lines; with few, the barriers of log2(size) steps for each chunk.
#include <algorithm>
#include <bit>
#include <limits>
#include <optional>

#include "kernels/conversions.h"
#include "kernels/kernels.h"
#include "kernels/per_element.h"
#include "kernels/reduction.h"
#include "vkml/ops/core_kind.h"

namespace vkml::vulkan {

using ops::ScanKind;
using spirv::Value;

namespace {

constexpr std::size_t kLast = kMaxDims - 1;

/// What is carried: for kLinear the factor and the sum, for positions the value and its place, for
/// sums in f32 the sum and what it has lost.
struct Carried {
  Value first, second;
};

class Scan {
 public:
  Scan(Shader& shader, const dispatch::Kernel& kernel)
      : b_(shader.builder()),
        kind_(static_cast<ScanKind>(kernel.attributes[1])),
        scalar_(ops::compute_type(kernel.core_inputs[0].dtype)),
        a_(shader, kernel.core_inputs[0]),
        b_input_(shader, kernel.core_inputs.back()) {}

  bool is_pair() const {
    return is_compensated() || (kind_ != ScanKind::kSum && kind_ != ScanKind::kProduct);
  }
  bool is_compensated() const {
    return kind_ == ScanKind::kSum && scalar_ == ops::ScalarType::kF32;
  }
  bool has_position() const { return kind_ == ScanKind::kArgMax || kind_ == ScanKind::kArgMin; }
  spirv::Type first_type() const { return value_type(scalar_); }
  spirv::Type second_type() const { return has_position() ? spirv::kInt32 : value_type(scalar_); }

  Carried element(const Coordinates& at, Value position) const {
    const Value a = a_.load(at);
    if (has_position()) return {a, position};
    if (is_compensated()) return {a, b_.constant(first_type(), 0)};
    return {a, kind_ == ScanKind::kLinear ? b_input_.load(at) : Value{}};
  }

  Carried identity() const {
    if (has_position()) return {b_.constant(first_type(), extreme_bits()), b_.u32(0)};
    const Value zero = b_.constant(first_type(), 0);
    if (kind_ == ScanKind::kSum) return {zero, is_compensated() ? zero : Value{}};
    const Value one = b_.constant(first_type(), one_bits());
    return {one, kind_ == ScanKind::kLinear ? zero : Value{}};
  }

  /// `left` comes before `right`.
  Carried combine(const Carried& left, const Carried& right) const {
    switch (kind_) {
      case ScanKind::kSum: {
        if (!is_compensated()) return {left.first + right.first, {}};
        const Partial sum = two_sum({left.first, {}, left.second}, {right.first, {}, right.second});
        return {sum.value, sum.rest};
      }
      case ScanKind::kProduct:
        return {left.first * right.first, {}};
      case ScanKind::kLinear:
        return {left.first * right.first, right.first * left.second + right.second};
      default:
        break;
    }
    const Value wins = right_wins(left.first, right.first);
    return {b_.select(wins, right.first, left.first), b_.select(wins, right.second, left.second)};
  }

  Value result(const Carried& carried) const {
    if (is_compensated()) return rounded_sum({carried.first, {}, carried.second});
    return is_pair() ? carried.second : carried.first;
  }

 private:
  /// The later of equals; a NaN stays until the next NaN.
  Value right_wins(Value left, Value right) const {
    const bool is_largest = kind_ == ScanKind::kArgMax;
    const Value low = is_largest ? left : right;
    const Value high = is_largest ? right : left;
    if (!spirv::is_float(left.type)) return signed_less_equal(low, high);
    return logical_or(is_nan(right), logical_and(logical_not(is_nan(left)), less_equal(low, high)));
  }

  std::uint64_t one_bits() const {
    if (scalar_ == ops::ScalarType::kF32) return std::bit_cast<std::uint32_t>(1.0F);
    return scalar_ == ops::ScalarType::kF64 ? std::bit_cast<std::uint64_t>(1.0) : 1;
  }

  /// What every number reaches.
  std::uint64_t extreme_bits() const {
    const bool is_largest = kind_ == ScanKind::kArgMax;
    const double infinity = std::numeric_limits<double>::infinity();
    switch (scalar_) {
      case ops::ScalarType::kF32:
        return std::bit_cast<std::uint32_t>(static_cast<float>(is_largest ? -infinity : infinity));
      case ops::ScalarType::kF64:
        return std::bit_cast<std::uint64_t>(is_largest ? -infinity : infinity);
      case ops::ScalarType::kI64:
        return is_largest ? 0x8000000000000000U : 0x7fffffffffffffffU;
      default:
        return is_largest ? 0x80000000U : 0x7fffffffU;
    }
  }

  spirv::Builder& b_;
  ScanKind kind_;
  ops::ScalarType scalar_;
  CoreInput a_, b_input_;
};

/// A Carried that changes.
class CarriedVariable {
 public:
  CarriedVariable(spirv::Builder& b, const Scan& scan) : first_(b, scan.first_type()) {
    if (scan.is_pair()) second_.emplace(b, scan.second_type());
  }
  Carried load() const { return {first_.load(), second_ ? second_->load() : Value{}}; }
  void store(const Carried& carried) const {
    first_.store(carried.first);
    if (second_) second_->store(carried.second);
  }

 private:
  spirv::Variable first_;
  std::optional<spirv::Variable> second_;
};

/// One Carried for each invocation of a workgroup.
class CarriedArray {
 public:
  CarriedArray(spirv::Builder& b, const Scan& scan, std::uint32_t length)
      : first_(b, scan.first_type(), length) {
    if (scan.is_pair()) second_.emplace(b, scan.second_type(), length);
  }
  Carried load(Value index) const {
    return {first_.load(index), second_ ? second_->load(index) : Value{}};
  }
  void store(Value index, const Carried& carried) const {
    first_.store(index, carried.first);
    if (second_) second_->store(index, carried.second);
  }

 private:
  spirv::SharedArray first_;
  std::optional<spirv::SharedArray> second_;
};

/// The place of element 0 of a line.
Coordinates line_start(Shader& shader, const dispatch::Kernel& kernel, std::size_t axis,
                       Value line) {
  Coordinates at;
  Value rest = line;
  for (std::size_t i = at.size(); i-- > 0;) {
    if (i == axis) {
      at[i] = shader.builder().u32(0);
      continue;
    }
    const Value extent = shader.parameter(kernel.space[i]);
    const Value outer = rest / extent;
    at[i] = rest - outer * extent;
    rest = outer;
  }
  return at;
}

Dispatch generate_by_invocation(const Context& context, std::size_t axis, std::int64_t lines) {
  const std::uint32_t size = std::min<std::uint32_t>(64, context.traits.max_workgroup_invocations);
  Shader shader(context, "scan_lines", {size, 1, 1});
  spirv::Builder& b = shader.builder();
  const Scan scan(shader, context.kernel);
  Epilogue epilogue(shader);
  const Value line_count = shader.parameter(lines);
  const Value length = shader.parameter(context.kernel.space[axis]);
  const Value line = shader.global_index();
  b.if_then(less(line, line_count), [&] {
    Coordinates at = line_start(shader, context.kernel, axis, line);
    const CarriedVariable carried(b, scan);
    carried.store(scan.identity());
    b.for_range(b.u32(0), length, b.u32(1), [&](Value i) {
      at[axis] = i;
      carried.store(scan.combine(carried.load(), scan.element(at, i)));
      epilogue.run(at, scan.result(carried.load()));
    });
  });
  return shader.finish(shader.groups_for((lines + size - 1) / size));
}

Dispatch generate_by_workgroup(const Context& context, std::size_t axis, std::int64_t lines,
                               std::uint32_t size) {
  Shader shader(context, "scan_line", {size, 1, 1});
  spirv::Builder& b = shader.builder();
  const Scan scan(shader, context.kernel);
  Epilogue epilogue(shader);
  const Value line_count = shader.parameter(lines);
  const Value length = shader.parameter(context.kernel.space[axis]);
  const CarriedArray shared(b, scan, size);
  const Value local = b.local_index();
  const Value line = b.workgroup_id(1) * b.workgroup_count(0) + b.workgroup_id(0);
  b.if_then(less(line, line_count), [&] {
    Coordinates at = line_start(shader, context.kernel, axis, line);
    const CarriedVariable before(b, scan), mine(b, scan);
    before.store(scan.identity());
    b.for_range(b.u32(0), length, b.u32(size), [&](Value chunk) {
      const Value position = chunk + local;
      const Value is_inside = less(position, length);
      mine.store(scan.identity());
      at[axis] = position;
      b.if_then(is_inside, [&] { mine.store(scan.element(at, position)); });
      for (std::uint32_t distance = 1; distance < size; distance *= 2) {
        shared.store(local, mine.load());
        b.workgroup_barrier();
        b.if_then(less(b.u32(distance - 1), local),
                  [&] { mine.store(scan.combine(shared.load(local - distance), mine.load())); });
        b.workgroup_barrier();
      }
      shared.store(local, mine.load());
      b.workgroup_barrier();
      b.if_then(is_inside,
                [&] { epilogue.run(at, scan.result(scan.combine(before.load(), mine.load()))); });
      before.store(scan.combine(before.load(), shared.load(b.u32(size - 1))));
      b.workgroup_barrier();
    });
  });
  return shader.finish(shader.groups_for(lines));
}

}  // namespace

std::vector<Dispatch> generate_scan(const Context& context) {
  const auto axis = static_cast<std::size_t>(context.kernel.attributes[0]);
  const std::int64_t length = context.kernel.space[axis];
  const std::int64_t lines = dispatch::numel(context.kernel.space) / length;
  // Lines along the last axis are read in whole cache lines only by a workgroup.
  const bool is_walked = context.traits.is_software
                             ? lines >= 8 && length < kSoftwareTurns
                             : length <= 32 || (axis != kLast && lines >= 2048);
  if (is_walked) {
    require_turns(context, length);
    return {generate_by_invocation(context, axis, lines)};
  }
  const std::uint32_t wanted = context.traits.is_software ? 32 : 256;
  const std::uint32_t size =
      std::bit_floor(std::clamp(context.traits.max_workgroup_invocations, 1U, wanted));
  require_turns(context, length / size + 1);
  return {generate_by_workgroup(context, axis, lines, size)};
}

}  // namespace vkml::vulkan
