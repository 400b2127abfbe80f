// The planned form of a graph: flat, free of nodes, leaves and addresses. Backends compile it.
//
// `kernels` is the plan: run them in order. `nodes` is the same computation before fusion, kept for
// the reference backend, which evaluates definitions rather than programs.
//
// A plan that fails on an index has overwritten nothing that anybody would miss: a kernel with a
// store to a donated block that is not dead runs after the last one that checks indices.
// verify_plan() checks it.
#pragma once

#include <array>
#include <cstdint>
#include <exception>
#include <string>
#include <vector>

#include "vkml/core/shape.h"
#include "vkml/graph/op_info.h"
#include "vkml/ops/core_kind.h"
#include "vkml/ops/scalar_program.h"
#include "vkml/ops/value_check.h"

namespace vkml::dispatch {

/// Axes are padded on the left with extents of 1 to this rank.
using Extents = std::array<std::int64_t, kMaxDims>;

enum class BufferKind : std::uint8_t {
  kInput,   // bound storage that holds its value; never written unless it is also a donated result
  kResult,  // bound storage to write: a fresh block, or the donated block of an input
  kTemporary  // bytes of the arena
};

/// Bytes of a block where a device sets no limit.
inline constexpr std::int64_t kAnyBlock = std::int64_t{1} << 62;

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

/// prologue -> core -> epilogue over an iteration space. The program runs at each element; in it
/// kCore is the core's result and kLoad an element of `loads`. Output i goes to stores[i]. A core
/// may write its companion's result (ops::companion_of) beside its own, past the program.
struct Kernel {
  ops::CoreKind kind = ops::CoreKind::kNone;
  graph::Attributes attributes;  // of the core
  int core_site = -1;            // where a core that checks indices reports; -1: it checks none
  Extents space{1, 1, 1, 1};
  int reduce_dims = 0;  // trailing axes of `space` that form a row (without a core)
  ops::ScalarType core_type = ops::ScalarType::kF32;  // type of kCore
  std::vector<Operand> core_inputs;
  std::vector<Operand> loads;  // extents equal `space`
  std::vector<Operand>
      stores;  // extents equal `space`; a row value has stride 0 along the row axes
  std::vector<Operand> core_stores;  // the companion's result, if anybody reads it
  ops::ScalarProgram program;
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

/// A place that can fail at run time: with IndexError, or with ArgumentError where it checks
/// values.
struct Site {
  std::string op;
  std::int64_t extent = 0;
  ops::ValueCheck values = ops::ValueCheck::kNone;
};

/// The exception of a site that has met a bad index, or the value of type f32 with these bits.
std::exception_ptr failure_at(const Site& site, std::int64_t found);

struct ExecutionGraph {
  std::vector<PlanNode> nodes;
  std::vector<Kernel> kernels;
  std::vector<Buffer> buffers;
  std::vector<ops::ScalarType> scalars;
  std::vector<Site> sites;
  int input_count = 0;
  int result_count = 0;
  std::int64_t arena_bytes = 0;
  /// The arena lies in blocks of so many bytes, the last of which may be shorter.
  std::int64_t arena_segment_bytes = kAnyBlock;
};

/// The sites that a kernel may report: its core's and those of its program, ascending. None: it
/// checks no index.
std::vector<int> sites_of(const Kernel& kernel);

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
