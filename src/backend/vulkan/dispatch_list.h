// Between code generation and the runtime: a kernel of the plan becomes a list of dispatches, each
// a SPIR-V module with the buffers and constants it needs. Neither side knows the other's device
// objects.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "vkml/dispatch/execution_graph.h"

namespace vkml::vulkan {

/// What code generation may use of a device. VKML_MIN_SPEC=1 clamps it to what Vulkan 1.1 promises.
struct DeviceTraits {
  bool use_addresses = false;  // buffers by 64-bit address; otherwise storage-buffer descriptors
  bool is_software = false;    // lavapipe: no shared-memory staging, wide register tiles
  bool has_int64 = false, has_float64 = false;
  bool has_float16 = false, has_int8 = false, has_int16 = false;
  bool has_storage8 = false, has_storage16 = false;
  bool keeps_special_values = false;  // of f32: the compiler may not assume that there is no NaN
  bool has_accurate_exp2 = false;     // of f32: within 2 ULP, where Vulkan promises 3 + 2 |x|
  bool has_half_conversions = false;  // f32 to f16 and back, rounded to nearest, with subnormals
  bool has_subgroup_arithmetic = false;
  bool has_subgroup_shuffle = false;  // and subgroups of subgroup_size, no others
  // Matrix units: a subgroup multiplies 16 x 16 matrices of f16 or bf16 and sums in f32.
  bool has_matrix_f16 = false, has_matrix_bf16 = false;
  bool has_matrix_conversions = false;  // of sums to left operands, and reductions of their rows
  std::uint32_t subgroup_size = 1;
  std::uint32_t max_workgroup_invocations = 128;
  std::uint32_t max_shared_bytes = 16384;
  std::uint32_t max_push_bytes = 128;
  std::array<std::uint32_t, 3> max_groups{65535, 65535, 65535};
  std::uint32_t compute_units = 8;  // an estimate, for choosing how far to split
};

struct ShaderCode {
  std::string name;                  // for debugging and explain(): "region", "matmul_64x64"
  std::vector<std::uint32_t> words;  // SPIR-V; equal words are one pipeline
  std::uint32_t buffer_count = 0;    // descriptors 0 .. buffer_count - 1 of set 0, or addresses
  std::uint32_t push_bytes = 0;      // the whole push constant block
};

/// A buffer that a dispatch touches, in the order of its addresses or descriptors.
struct BufferUse {
  enum class Kind : std::uint8_t { kPlanBuffer, kScalars, kStatus };
  Kind kind = Kind::kPlanBuffer;
  int buffer = -1;                  // kPlanBuffer: index into ExecutionGraph::buffers
  std::uint32_t element_bytes = 4;  // unit of the offset below
  bool reads = false, writes = false;
};

/// Push constants, in this order: with addresses, one u64 for each buffer (the buffer's address
/// plus the binding's byte offset); with descriptors, one u32 for each buffer (the binding's byte
/// offset divided by element_bytes), padded to 8 bytes; then `constants`.
struct Dispatch {
  std::shared_ptr<const ShaderCode> code;
  std::array<std::uint32_t, 3> groups{1, 1, 1};
  std::vector<BufferUse> buffers;
  std::vector<std::uint32_t> constants;
};

/// The status is a word with a bit for each check that failed (dispatch::check_of), then three
/// words for each check: site + 1, the low and the high half of the index that it met first. Those
/// of a check whose bit is not set mean nothing.
inline constexpr std::uint32_t kStatusChecks = 32;
inline constexpr std::uint32_t kWordsPerCheck = 3;
inline constexpr std::uint32_t kStatusBytes = 4 * (1 + kStatusChecks * kWordsPerCheck);

/// Run-time scalars lie in one buffer, 8 bytes each, in the order of ExecutionGraph::scalars.
inline constexpr std::uint32_t kScalarBytes = 8;

/// The dispatches of one kernel; the runtime puts a barrier before the first when a hazard needs it
/// and between consecutive ones that touch a common buffer.
std::vector<Dispatch> generate(const dispatch::Kernel& kernel,
                               const dispatch::ExecutionGraph& graph, const DeviceTraits& traits);

/// Scratch that generate() will use for the kernel on such a device.
std::int64_t scratch_bytes(const dispatch::Kernel& kernel, const DeviceTraits& traits);

}  // namespace vkml::vulkan
