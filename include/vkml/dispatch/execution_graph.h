// The planned form of a graph: flat, free of nodes, leaves and addresses. Backends compile it.
//
// `kernels` is the plan: run them in order. `nodes` is the same computation before fusion, kept for
// the reference backend and the verifier, which evaluate definitions rather than programs.
//
// A plan that fails on an index has overwritten nothing that anybody would miss: a kernel with a
// store to a donated block that is not dead runs after the last one that checks indices.
// verify_plan() checks it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "vkml/core/shape.h"
#include "vkml/graph/op_info.h"
#include "vkml/ops/scalar_program.h"

namespace vkml::dispatch {

/// Axes are padded on the left with extents of 1 to this rank.
using Extents = std::array<std::int64_t, kMaxDims>;

enum class BufferKind : std::uint8_t {
  kInput,   // bound storage that holds its value; never written unless it is also a donated result
  kResult,  // bound storage to write: a fresh block, or the donated block of an input
  kTemporary  // bytes of the arena
};

struct Buffer {
  BufferKind kind = BufferKind::kTemporary;
  int binding = -1;               // index into Bindings::inputs or ::results
  std::int64_t bytes = 0;         // temporaries and results
  std::int64_t arena_offset = 0;  // temporaries; a multiple of 256
  int donor = -1;  // results: the input binding whose block this overwrites, in part or whole
  bool donor_is_dead = false;  // nobody would read the donor's old value, whatever happens
};

/// A strided window on a buffer. Offset and strides are in elements; for inputs the offset adds to
/// the binding's, which is in bytes.
struct Operand {
  int buffer = -1;
  DType dtype = DType::kF32;
  std::int64_t offset = 0;
  Extents extents{1, 1, 1, 1};
  Extents strides{0, 0, 0, 0};
};

/// What runs before the program. Shapes are those of Kernel::core_inputs; accumulation is in f32
/// for f16, bf16 and f32, in f64 for f64, wrapping for integers.
enum class KernelKind : std::uint8_t {
  /// No core: the program alone, over `space`; a map, or with reduce_dims > 0 a row reduction.
  kRegion,
  /// a (B0, B1, M, K) @ b (B0, B1, K, N), any strides; space (B0, B1, M, N).
  /// attributes: none, or a graph::MatmulPrecision.
  kMatmul,
  /// input (N, C, H, W), weight (O, C/groups, KH, KW); space (N, O, OH, OW).
  /// attributes: stride h, w; padding h, w; dilation h, w; groups.
  kConv2d,
  /// output gradient (N, O, OH, OW), weight; space (N, C, H, W). Same attributes.
  kConv2dInputGradient,
  /// input, output gradient; space (O, C/groups, KH, KW). Same attributes.
  kConv2dWeightGradient,
  /// input (N, C, H, W); space (N, C, OH, OW). Padding never wins; NaN does.
  /// attributes: kernel h, w; stride h, w; padding h, w; dilation h, w.
  kMaxPool2d,
  /// The same, giving the position h * W + w of the (first) maximum as i32.
  kMaxPool2dIndices,
  /// output gradient (N, C, OH, OW), indices (N, C, OH, OW); space (N, C, H, W): each input adds
  /// the gradients of the windows whose index names it, in window order. Same attributes.
  kMaxPool2dGradient,
  /// attributes: kernel h, w; stride h, w; padding h, w; count_include_pad (0 or 1).
  kAvgPool2d,
  /// output gradient (N, C, OH, OW); space (N, C, H, W). Same attributes.
  kAvgPool2dGradient,
  /// x, index (i32 or i64); space is the index's shape;
  /// out[.., i, ..] = x[.., index[.., i, ..], ..].
  /// attributes: axis of the padded rank 4; site. Axes other than `axis` have equal extents or the
  /// index's is smaller.
  kGather,
  /// base, index, source; space is the base's shape; every element of the base combined with the
  /// source elements whose index along the axis names it, in the order of the source: added,
  /// replaced by the last, multiplied, or the largest or smallest of all (NaN wins).
  /// attributes: axis of the padded rank 4; site; ops::ScatterKind.
  kScatter,
  /// x, or a and b for kLinear, dense or strided; space is their shape. Element i along the axis
  /// from elements 0 to i: their sum, their product, y_i = a_i y_(i-1) + b_i with y_(-1) = 0, or
  /// the position (i32) of their last largest or smallest (of the last NaN, if any). Floats carry
  /// at least f32, integers wrap. attributes: axis of the padded rank 4; ops::ScanKind.
  kScan,
  /// x; space is its shape. The positions (i32) along the axis that sort it stably, NaN last, or
  /// with `descending` first. attributes: axis of the padded rank 4; descending (0 or 1).
  kArgSort,
  /// sorted (.., N), ascending along the last axis, and values (.., M) of one dtype; the other
  /// axes of `sorted` are the values' or 1. Space is the values' shape. The number (i32) of sorted
  /// elements before each value: below it, or with `right` not above it. NaN is above all.
  /// attributes: right (0 or 1).
  kSearchSorted,
};

const char* name_of(KernelKind kind);

/// prologue -> core -> epilogue over an iteration space. The program runs at each element; in it
/// kCore is the core's result and kLoad an element of `loads`. Output i goes to stores[i].
struct Kernel {
  KernelKind kind = KernelKind::kRegion;
  graph::Attributes attributes;
  Extents space{1, 1, 1, 1};
  int reduce_dims = 0;  // trailing axes of `space` that form a row (kRegion only)
  ops::ScalarType core_type = ops::ScalarType::kF32;  // type of kCore
  std::vector<Operand> core_inputs;
  std::vector<Operand> loads;  // extents equal `space`
  std::vector<Operand>
      stores;  // extents equal `space`; a row value has stride 0 along the row axes
  ops::ScalarProgram program;
  std::vector<int> sites;          // that it may report; none: it checks no index
  std::vector<int> nodes;          // positions in ExecutionGraph::nodes
  std::int64_t scratch_bytes = 0;  // asked for by Backend::scratch_bytes
  int scratch = -1;                // a temporary buffer of that size, or -1
};

/// A node as the reference backend sees it.
struct PlanNode {
  const graph::OpInfo* op = nullptr;
  graph::Attributes attributes;
  DType dtype = DType::kF32;
  Shape shape;                   // of a view: strides over its storage root
  std::vector<int> sources;      // positions in ExecutionGraph::nodes
  int view_root = -1;            // views: position of the value they show
  std::int64_t view_offset = 0;  // elements
  Operand input;                 // leaves: where the value is (buffer -1 otherwise)
  int scalar = -1;               // scalars: index into the run-time scalars
  int result = -1;               // buffer to write, when kept
};

/// A place that can fail at run time with IndexError.
struct Site {
  std::string op;
  std::int64_t extent = 0;
};

struct ExecutionGraph {
  std::vector<PlanNode> nodes;
  std::vector<Kernel> kernels;
  std::vector<Buffer> buffers;
  std::vector<ops::ScalarType> scalars;
  std::vector<Site> sites;
  int input_count = 0;
  int result_count = 0;
  std::int64_t arena_bytes = 0;
};

/// Product of the extents.
std::int64_t numel(const Extents& extents);

/// What varies along what, inside one kernel. Row values are computed once a row, element values at
/// each element; phase p may start when the reductions of phase p - 1 are done.
enum class Level : std::uint8_t { kUniform, kRow, kElement };
struct ProgramLevels {
  std::vector<Level> level;         // by register
  std::vector<std::uint8_t> phase;  // by register: reductions on the longest path before it
  int phases = 1;                   // highest phase + 1
};
ProgramLevels analyze_levels(const Kernel& kernel);

/// The whole plan as text, for explain().
std::string to_string(const ExecutionGraph& graph);

}  // namespace vkml::dispatch
