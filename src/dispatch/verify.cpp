#include "vkml/dispatch/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "vkml/core/error.h"

namespace vkml::dispatch {
namespace {

/// Who wrote each byte last: of the arena, and of each result.
class Simulation {
 public:
  explicit Simulation(const ExecutionGraph& graph)
      : graph_(graph), arena_(static_cast<std::size_t>(graph.arena_bytes), kNobody) {
    results_.resize(graph.buffers.size());
    for (std::size_t b = 0; b < graph.buffers.size(); ++b) {
      const Buffer& buffer = graph.buffers[b];
      if (buffer.kind == BufferKind::kResult) {
        // What nobody overwrites of a donated block is part of the new value.
        const int owner = buffer.donor >= 0 ? static_cast<int>(b) : kNobody;
        results_[b].assign(static_cast<std::size_t>(buffer.bytes), owner);
      }
    }
  }

  void run() {
    for (kernel_ = 0; kernel_ < graph_.kernels.size(); ++kernel_) {
      const Kernel& kernel = graph_.kernels[kernel_];
      for (const Operand& operand : kernel.core_inputs) visit(operand, false);
      for (const Operand& operand : kernel.loads) visit(operand, false);
      check_donors(kernel);
      check_sites(kernel);
      for (const Operand& operand : kernel.stores) visit(operand, true);
      for (const Operand& operand : kernel.core_stores) visit(operand, true);
      if (kernel.scratch >= 0) claim_scratch(kernel.scratch);
    }
  }

 private:
  static constexpr int kNobody = -1;

  [[noreturn]] void fail(const char* what, const Operand& operand, std::int64_t byte) const {
    throw InternalError(fmt::format("[verify] kernel {} ({}) {} byte {} of buffer {}", kernel_,
                                    name_of(graph_.kernels[kernel_].kind), what, byte,
                                    operand.buffer));
  }

  void visit(const Operand& operand, bool writes) {
    const Buffer& buffer = graph_.buffers[static_cast<std::size_t>(operand.buffer)];
    if (buffer.kind == BufferKind::kInput) {
      if (writes) fail("writes input", operand, 0);
      return;
    }
    // Nothing is read at no elements; a row's value is written for an empty row too.
    if (!writes && numel(operand.extents) == 0) return;
    const auto element = static_cast<std::int64_t>(size_of(operand.dtype));
    for (std::int64_t i = 0; i < extent(operand, 0); ++i) {
      for (std::int64_t j = 0; j < extent(operand, 1); ++j) {
        for (std::int64_t k = 0; k < extent(operand, 2); ++k) {
          for (std::int64_t l = 0; l < extent(operand, 3); ++l) {
            const std::int64_t at = operand.offset + i * operand.strides[0] +
                                    j * operand.strides[1] + k * operand.strides[2] +
                                    l * operand.strides[3];
            touch(operand, buffer, at * element, element, writes);
          }
        }
      }
    }
  }

  /// Axes along which an operand does not move are visited once.
  static std::int64_t extent(const Operand& operand, std::size_t axis) {
    return operand.strides[axis] == 0 ? 1 : operand.extents[axis];
  }

  void touch(const Operand& operand, const Buffer& buffer, std::int64_t byte, std::int64_t count,
             bool writes) {
    if (byte < 0 || byte + count > buffer.bytes) fail("leaves its bounds at", operand, byte);
    const bool result = buffer.kind == BufferKind::kResult;
    std::vector<int>& owners = result ? results_[static_cast<std::size_t>(operand.buffer)] : arena_;
    const std::int64_t start = byte + (result ? 0 : buffer.arena_offset);
    for (std::int64_t b = start; b < start + count; ++b) {
      int& owner = owners[static_cast<std::size_t>(b)];
      if (writes) {
        owner = operand.buffer;
      } else if (owner != operand.buffer) {
        fail(owner == kNobody ? "reads unwritten" : "reads overwritten", operand, byte);
      }
    }
  }

  /// Once a donated block is written, nothing reads it as the old value.
  void check_donors(const Kernel& kernel) {
    const auto check = [&](const Operand& operand) {
      const Buffer& buffer = graph_.buffers[static_cast<std::size_t>(operand.buffer)];
      if (buffer.kind == BufferKind::kInput && overwritten_.contains(buffer.binding)) {
        fail("reads donated", operand, 0);
      }
    };
    for (const Operand& operand : kernel.core_inputs) check(operand);
    for (const Operand& operand : kernel.loads) check(operand);
    for (const Operand& operand : kernel.stores) {
      const Buffer& buffer = graph_.buffers[static_cast<std::size_t>(operand.buffer)];
      if (buffer.kind != BufferKind::kResult || buffer.donor < 0) continue;
      overwritten_[buffer.donor] = true;
      if (!buffer.donor_is_dead) overwrote_ = operand.buffer;
    }
  }

  /// Whatever fails, fails before a donated block is written; and a core that checks says where.
  void check_sites(const Kernel& kernel) const {
    if (ops::checks_indices(kernel.kind) != (kernel.core_site >= 0)) {
      throw InternalError(fmt::format("[verify] kernel {} ({}) has the site {}", kernel_,
                                      name_of(kernel.kind), kernel.core_site));
    }
    if (sites_of(kernel).empty() || overwrote_ < 0) return;
    throw InternalError(
        fmt::format("[verify] kernel {} ({}) may fail, and donated buffer {} is written by then",
                    kernel_, name_of(kernel.kind), overwrote_));
  }

  void claim_scratch(int index) {
    const Buffer& buffer = graph_.buffers[static_cast<std::size_t>(index)];
    for (std::int64_t b = 0; b < buffer.bytes; ++b) {
      arena_[static_cast<std::size_t>(buffer.arena_offset + b)] = index;
    }
  }

  const ExecutionGraph& graph_;
  std::vector<int> arena_;
  std::vector<std::vector<int>> results_;
  std::unordered_map<int, bool> overwritten_;
  int overwrote_ = -1;  // the last donated buffer written whose old value somebody may miss
  std::size_t kernel_ = 0;
};

}  // namespace

void verify_plan(const ExecutionGraph& graph) {
  for (const Buffer& buffer : graph.buffers) {
    const std::int64_t segment = graph.arena_segment_bytes;
    if (buffer.kind == BufferKind::kTemporary && buffer.bytes <= segment &&
        buffer.arena_offset % segment > segment - buffer.bytes) {
      throw InternalError(fmt::format("[verify] {} bytes at {} of the arena cross its blocks of {}",
                                      buffer.bytes, buffer.arena_offset, segment));
    }
  }
  Simulation(graph).run();
}

}  // namespace vkml::dispatch
