#include "kernels/contraction.h"

#include <algorithm>

#include "kernels/conversions.h"

namespace vkml::vulkan {

using spirv::Value;

namespace {

constexpr std::uint32_t kVector = 4;

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

std::uint32_t sum_bytes(ops::ScalarType type) {
  return static_cast<std::uint32_t>(vkml::size_of(ops::storage_type(type)));
}

/// Adds the partial sums of each element in order, and runs the epilogue.
Dispatch generate_epilogue(const Context& context, const Contraction& contraction,
                           const ContractionPlan& plan) {
  const std::uint32_t group = std::min<std::uint32_t>(context.traits.is_software ? 32 : 128,
                                                      context.traits.max_workgroup_invocations);
  Touches touches;
  touches.core_inputs = false;
  touches.reads_scratch = true;
  touches.scratch_element_bytes = sum_bytes(context.kernel.core_type);
  Shader shader(context, "contraction_epilogue", {group, 1, 1}, touches);
  spirv::Builder& b = shader.builder();
  const ContractionSize& size = contraction.size();
  const std::int64_t total = size.batch * size.m * size.n;
  const Value count = shader.parameter(total);
  const Value m_extent = shader.parameter(size.m), n_extent = shader.parameter(size.n);
  const Value splits = plan.splits > 1 ? shader.parameter(plan.splits) : b.u32(1);
  const Place place = contraction.open_place(shader);
  Epilogue epilogue(shader);
  const PartialSums partials(shader, size, plan);

  const Value element = shader.global_index();
  b.if_then(less(element, count), [&] {
    const Value row = element / n_extent;
    const Value n = element - row * n_extent;
    TilePosition tile;
    tile.batch = row / m_extent;
    const Value m = row - tile.batch * m_extent;
    tile.split = b.u32(0);
    Value sum = partials.load(tile, m, n);
    if (plan.splits > 1) {
      const spirv::Variable total_sum(b, sum.type);
      total_sum.store(sum);
      b.for_range(b.u32(1), splits, b.u32(1), [&](Value split) {
        tile.split = split;
        total_sum.store(total_sum.load() + partials.load(tile, m, n));
      });
      sum = total_sum.load();
    }
    epilogue.run(place(tile.batch, m, n), sum);
  });
  return shader.finish(shader.groups_for(divide_up(total, group)));
}

}  // namespace

PositionRun ContractionOperand::run_of(Value first, Value last,
                                       const std::function<Position(Value)>& position_of) {
  PositionRun run;
  for (std::uint32_t i = 0; i < kMatrixRun; ++i) {
    const Value index = first + i;
    run[i] = position_of(first.builder->select(less(last, index), last, index));
  }
  return run;
}

bool may_use_matrix_units(const dispatch::Kernel& kernel, const DeviceTraits& traits) {
  const bool checks = std::any_of(kernel.program.code.begin(), kernel.program.code.end(),
                                  [](const ops::Instruction& instruction) {
                                    return instruction.op == ops::Opcode::kCheckIndex;
                                  });
  return !checks && traits.has_storage8 && traits.has_storage16;
}

Touches contraction_touches(const ContractionPlan& plan, ops::ScalarType type) {
  Touches touches;
  touches.loads = touches.stores = !plan.uses_scratch;
  touches.writes_scratch = plan.uses_scratch;
  touches.scratch_element_bytes = sum_bytes(type);
  return touches;
}

Accumulators::Accumulators(Shader& shader, const RegisterTile& tile)
    : shader_(shader), tile_(tile) {
  spirv::Builder& b = shader.builder();
  const spirv::Type type = value_type(shader.context().kernel.core_type, kVector);
  for (std::uint32_t i = 0; i < rows() * groups(); ++i) {
    values_.emplace_back(b, type);
    values_.back().store(b.constant(type, 0));
  }
}

void Accumulators::multiply_add(const std::vector<Value>& a, const std::vector<Value>& b) {
  spirv::Builder& builder = shader_.builder();
  for (std::uint32_t row = 0; row < rows(); ++row) {
    const Value left = builder.splat(a[row], kVector);
    for (std::uint32_t group = 0; group < groups(); ++group) {
      const spirv::Variable& sum = values_[row * groups() + group];
      const bool fuses = spirv::is_float(left.type) && !shader_.traits().is_software;
      sum.store(fuses ? builder.fma(left, b[group], sum.load()) : left * b[group] + sum.load());
    }
  }
}

Value Accumulators::load(std::uint32_t row, std::uint32_t group) const {
  return values_[row * groups() + group].load();
}

namespace {

dispatch::Operand sums_in_scratch(const dispatch::Kernel& kernel, const ContractionPlan& plan) {
  dispatch::Operand operand;
  operand.buffer = kernel.scratch;
  operand.dtype = ops::storage_type(kernel.core_type);
  operand.offset = plan.partials / static_cast<std::int64_t>(size_of(operand.dtype));
  return operand;
}

}  // namespace

SumRange::SumRange(Shader& shader, const ContractionSize& size, const ContractionPlan& plan)
    : b_(shader.builder()), is_split_(plan.splits > 1), k_extent_(shader.parameter(size.k)) {
  if (!is_split_) return;
  split_count_ = shader.parameter(plan.splits);
  span_ = shader.parameter(plan.span);
}

void SumRange::place(Value outer, TilePosition& tile) {
  tile.batch = outer;
  tile.split = b_.u32(0);
  begin_ = b_.u32(0);
  end_ = k_extent_;
  if (!is_split_) return;
  tile.batch = outer / split_count_;
  tile.split = outer - tile.batch * split_count_;
  begin_ = tile.split * span_;
  const Value past = begin_ + span_;
  end_ = b_.select(less(past, k_extent_), past, k_extent_);
}

PartialSums::PartialSums(Shader& shader, const ContractionSize& size, const ContractionPlan& plan)
    : elements_(shader, sums_in_scratch(shader.context().kernel, plan)) {
  const TileCounts tiles = tile_counts(size, plan);
  batch_extent_ = size.batch == 1 ? shader.builder().u32(1) : shader.parameter(size.batch);
  rows_ = shader.parameter(tiles.m * plan.tile.m * plan.threads_m);
  columns_ = shader.parameter(tiles.n * plan.tile.n * plan.threads_n);
}

Value PartialSums::place(const TilePosition& tile, Value m, Value n) const {
  const Value matrix = tile.split * batch_extent_ + tile.batch;
  return (matrix * rows_ + m) * columns_ + n;
}

void PartialSums::store4(const TilePosition& tile, Value m, Value n, Value sums) const {
  elements_.store4(place(tile, m, n), sums);
}

Value PartialSums::load(const TilePosition& tile, Value m, Value n) const {
  return elements_.load(place(tile, m, n));
}

ContractionOutput::ContractionOutput(Shader& shader, const Contraction& contraction,
                                     const ContractionPlan& plan)
    : b_(shader.builder()),
      uses_scratch_(plan.uses_scratch),
      four_in_row_(contraction.four_in_row),
      rows_are_fours_(contraction.size().n % kVector == 0) {
  m_extent_ = shader.parameter(contraction.size().m);
  n_extent_ = shader.parameter(contraction.size().n);
  if (uses_scratch_) {
    partials_ = std::make_unique<PartialSums>(shader, contraction.size(), plan);
  } else {
    place_ = contraction.open_place(shader);
    epilogue_ = std::make_unique<Epilogue>(shader);
  }
}

void ContractionOutput::write4(const TilePosition& tile, Value m, Value n, Value sums) {
  if (uses_scratch_) {
    partials_->store4(tile, m, n, sums);
    return;
  }
  b_.if_then(logical_and(less(m, m_extent_), less(n, n_extent_)), [&] {
    if (four_in_row_) {
      epilogue_->run4(place_(tile.batch, m, n), sums);
      return;
    }
    for (std::uint32_t k = 0; k < kVector; ++k) {
      const Value column = n + k;
      b_.if_then(less(column, n_extent_), [&] {
        epilogue_->run(place_(tile.batch, m, column), b_.component(sums, static_cast<int>(k)));
      });
    }
  });
}

void ContractionOutput::write(const TilePosition& tile, Value m, Value n, Value sum) {
  b_.if_then(logical_and(less(m, m_extent_), less(n, n_extent_)),
             [&] { epilogue_->run(place_(tile.batch, m, n), sum); });
}

std::vector<Dispatch> generate_contraction(const Context& context, const Contraction& contraction,
                                           const ContractionPlan& plan) {
  const auto generate = [&] {
    switch (plan.engine) {
      case ContractionEngine::kMatrix:
        return generate_matrix_contraction(context, contraction, plan);
      case ContractionEngine::kTiled:
        return generate_tiled_contraction(context, contraction, plan);
      case ContractionEngine::kDirect:
        break;
    }
    return generate_direct_contraction(context, contraction, plan);
  };
  const bool is_split = plan.splits > 1;
  require_turns(context,
                is_split ? std::max<std::int64_t>(plan.span, plan.splits) : contraction.size().k);
  std::vector<Dispatch> dispatches;
  dispatches.push_back(generate());
  if (plan.uses_scratch) dispatches.push_back(generate_epilogue(context, contraction, plan));
  return dispatches;
}

}  // namespace vkml::vulkan
