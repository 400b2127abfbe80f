// One dispatch of a row reduction; rows.cpp says how it works.
#pragma once

#include <memory>
#include <vector>

#include "kernels/elements.h"
#include "kernels/partial_slot.h"
#include "kernels/program.h"
#include "kernels/row_plan.h"

namespace vkml::vulkan {

class RowKernel {
 public:
  /// A long row may be reduced in parts: kPartials writes one partial result a part to scratch,
  /// kFinal combines them.
  enum class Stage : std::uint8_t { kWhole, kPartials, kFinal };

  RowKernel(const Context& context, const RowSpaces& spaces, const RowPlan& plan, Stage stage);
  Dispatch generate();

 private:
  struct Access {
    Elements elements;
    std::vector<spirv::Value> row_strides, column_strides;
    spirv::Value row_start;  // the row's first element
    bool varies = false;     // along the row
    bool is_dense = false;   // four neighbours lie in one aligned vector
  };
  /// The elements of a row that a lane computes at once.
  struct Chunk {
    spirv::Value position;  // of the first, in the row; below zero (wrapped) in a shifted row
    spirv::Value is_valid;  // of each element in a shifted row, else of all
    std::unique_ptr<ProgramEmitter> program;
  };

  void open_operands();
  void place_rows();
  std::vector<spirv::Value> coordinates_of(const CollapsedSpace& space,
                                           const std::vector<spirv::Value>& extents,
                                           spirv::Value position);
  spirv::Value element_index(const Access& access, spirv::Value position);
  spirv::Value load(const Access& access, spirv::Value position, int components);
  void store(const Access& access, spirv::Value position, spirv::Value value);
  void store_chunk(Chunk& chunk, int components);
  void store_valid(const Access& access, const Chunk& chunk, spirv::Value value);

  void run(int components, std::uint32_t chunks);
  bool is_shifted(int components) const { return plan_.is_shifted() && components > 1; }
  /// Whether the elements at `place`, counted from where the row's vectors begin, are the row's.
  spirv::Value validity(spirv::Value place, int components);
  /// `first` and the numbers after it.
  spirv::Value vector_from(spirv::Value first);
  Chunk make_chunk(spirv::Value first, spirv::Value is_valid, int components);
  std::vector<Chunk> hold_row(int components, std::uint32_t chunks);
  void emit_row_values(int phase);
  /// Emits what the registers need at this chunk.
  void emit_elements(Chunk& chunk, const std::vector<std::size_t>& registers);
  std::vector<std::size_t> reductions_after(int phase) const;
  void reduce(const std::vector<std::size_t>& registers, std::vector<Chunk>& held, int components);
  Partial of_chunk(const Reduction& reduction, std::size_t reduce_register, Chunk& chunk,
                   int components);
  void accumulate(const std::vector<Reduction>& reductions,
                  const std::vector<std::size_t>& registers,
                  const std::vector<PartialVariable>& totals, spirv::Value first,
                  std::uint32_t count, int components);
  std::vector<Partial> loop_over_row(const std::vector<Reduction>& reductions,
                                     const std::vector<std::size_t>& registers, int components);
  std::vector<Partial> loop_over_scratch(const std::vector<Reduction>& reductions);
  PartialSlot slot_of(spirv::Value part, std::size_t reduction);
  void write_partials(const std::vector<Reduction>& reductions,
                      const std::vector<Partial>& partials);
  void store_outputs(std::vector<Chunk>& held, int components);

  const dispatch::Kernel& kernel_;
  const RowSpaces& spaces_;
  const RowPlan& plan_;
  Stage stage_;
  dispatch::ProgramLevels levels_;
  Shader shader_;
  spirv::Builder& b_;
  LaneReducer lanes_;
  std::vector<Access> accesses_;                          // loads, then stores
  std::vector<std::size_t> element_stores_, row_stores_;  // stores along the row, and once a row
  std::vector<spirv::Value> row_extents_, column_extents_;
  spirv::Value row_count_, column_count_, split_count_, span_;
  Shader::Base scratch_;
  spirv::Value row_, row_is_valid_, lane_, split_;
  spirv::Value lead_;  // elements between where a shifted row's vectors begin and the row
  // The places that this workgroup goes through, and those before the row's first element.
  spirv::Value begin_, end_, shift_;
  std::vector<spirv::Value> row_coordinates_;
  std::unique_ptr<ProgramEmitter> row_program_;
  std::size_t reductions_done_ = 0;
};

}  // namespace vkml::vulkan
