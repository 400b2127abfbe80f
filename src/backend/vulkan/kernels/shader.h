// What every kernel is written with: the buffers and parameters of one dispatch, the module that
// uses them, and the one notion of a buffer with its two lowerings.
//
// Push constants hold one base for each buffer (an address, or an offset in elements), then the
// parameters. A parameter that finds no room becomes a literal: such a module fits one shape only,
// but it runs.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "dispatch_list.h"
#include "spirv/builder.h"
#include "vkml/dispatch/execution_graph.h"

namespace vkml::vulkan {

struct Context {
  const dispatch::Kernel& kernel;
  const dispatch::ExecutionGraph& graph;
  const DeviceTraits& traits;
};

/// llvmpipe ends all loops of an invocation, without an error, after this many turns in total.
inline constexpr std::int64_t kSoftwareTurns = 65'000;
/// Throws UnsupportedError where an invocation's loops would be cut short by a software driver.
void require_turns(const Context& context, std::int64_t turns);

/// Which of the kernel's operands a dispatch touches.
struct Touches {
  bool core_inputs = true;
  bool loads = true;
  bool stores = true;
  bool reads_scratch = false;
  bool writes_scratch = false;
  std::uint32_t scratch_element_bytes = 4;
};

/// What a memory access moves at once.
inline constexpr spirv::Type kByte{spirv::Scalar::kInt8, 1};
inline constexpr spirv::Type kHalfWord{spirv::Scalar::kInt16, 1};
inline constexpr spirv::Type kWord{spirv::Scalar::kInt32, 1};
inline constexpr spirv::Type kWord2{spirv::Scalar::kInt32, 2};
inline constexpr spirv::Type kWord4{spirv::Scalar::kInt32, 4};

class Shader {
 public:
  /// Declares the operands' buffers. Throws UnsupportedError when their bases alone exceed the push
  /// constants.
  Shader(const Context& context, std::string name, std::array<std::uint32_t, 3> local_size,
         Touches touches = {});
  Shader(const Shader&) = delete;
  Shader& operator=(const Shader&) = delete;

  spirv::Builder& builder() { return builder_; }
  const Context& context() const { return context_; }
  const DeviceTraits& traits() const { return context_.traits; }
  std::uint32_t local_count() const { return local_size_[0] * local_size_[1] * local_size_[2]; }

  /// A run-time u32: the module does not depend on its value. Throws UnsupportedError when the
  /// value does not fit 32 bits.
  spirv::Value parameter(std::int64_t value);
  /// 0 and 1 become literals, which belong to the layout's class; anything else is a parameter.
  spirv::Value stride_parameter(std::int64_t value);

  /// The buffer that holds elements of such a size of a plan's buffer.
  int buffer_of(const dispatch::Operand& operand) const;
  int scratch_buffer() const { return scratch_; }

  /// Where accesses to a buffer start.
  struct Base {
    int buffer = -1;
    spirv::Value offset;   // in elements, to add to every index
    spirv::Value address;  // addresses only, 64 bits
  };
  /// The base of a buffer, `offset` elements on. Where elements down to `lowest` (at most 0) from
  /// there are reached, by reversed axes, an address starts at that one, so that indices into
  /// memory are never negative: drivers disagree on those.
  Base base_of(int buffer, std::int64_t offset, std::int64_t lowest = 0);

  /// Reads or writes unit `index` (of `unit`'s size) counted from the base.
  spirv::Value load(const Base& base, spirv::Type unit, spirv::Value index);
  void store(const Base& base, spirv::Type unit, spirv::Value index, spirv::Value value);
  /// Reads the 16 bytes from an element on, of which the buffer's 16-byte vectors begin one there.
  spirv::Value load_vector(const Base& base, spirv::Value element);
  /// Clears `mask` in a word and sets `bits`, atomically.
  void replace_bits(const Base& base, spirv::Value index, spirv::Value mask, spirv::Value bits);

  /// A run-time scalar that the program uses, of its own type.
  spirv::Value scalar(int index) const { return scalar_values_.at(index); }

  /// Records that a check failed, with its first failure's site and index.
  void report_bad_index(int site, spirv::Value index);
  /// Runs `body` unless results that outlive the graph are to be left alone.
  void guarded(const spirv::Body& body);

  /// Invocations of the whole dispatch, counted through x, then y.
  spirv::Value global_index();

  Dispatch finish(std::array<std::uint32_t, 3> groups);
  /// Enough workgroups along x and y for so many in all.
  std::array<std::uint32_t, 3> groups_for(std::int64_t count) const;

 private:
  int add_buffer(const BufferUse& use);
  spirv::Value load_scalar(int index);
  /// A run-time value of 64 bits.
  spirv::Value wide_parameter(std::int64_t value);
  std::uint32_t bases_bytes() const;
  spirv::Value push_constant(std::uint32_t member, spirv::Type type, std::uint32_t index);
  /// `index` counts units of `index_bytes`, by default those of `unit`.
  spirv::Id pointer_to(const Base& base, spirv::Type unit, spirv::Value index,
                       std::uint32_t index_bytes = 0);
  spirv::Value load_from(spirv::Id pointer, spirv::Type unit);
  spirv::Id descriptor_variable(int buffer, spirv::Type unit);
  spirv::Value atomic(spv::Op op, spirv::Id pointer, spirv::Value value);

  Context context_;
  std::string name_;
  std::array<std::uint32_t, 3> local_size_;
  spirv::Builder builder_;
  std::vector<BufferUse> buffers_;
  std::vector<std::uint32_t> parameters_;
  bool has_parameters_ = false;  // from now on no buffer may be added
  std::map<std::pair<int, spirv::Type>, spirv::Id> descriptors_;
  spirv::Id push_variable_ = 0;
  int scratch_ = -1, scalars_ = -1, status_ = -1;
  spirv::Value may_write_;
  std::map<int, spirv::Value> scalar_values_;
  std::map<int, spirv::Value> site_codes_;  // site + 1, by site
};

}  // namespace vkml::vulkan
