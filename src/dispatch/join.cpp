#include "join.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "old_blocks.h"

namespace vkml::dispatch {
namespace {

std::size_t at(int index) { return static_cast<std::size_t>(index); }

/// Where a buffer of a part lies in the joined plan: `offset` bytes into a buffer of it.
struct Target {
  int buffer = -1;
  std::int64_t offset = 0;
};

/// What a block is in the joined plan once a part has written it.
struct Written {
  int buffer = -1;
  std::int64_t offset = 0;  // bytes from the block's start to the buffer's
  int node = -1;            // the value it holds now
};

class Joining {
 public:
  JoinedParts run(std::vector<RecordedPart> parts, std::span<const BlockId> kept,
                  std::span<const BlockId> renewed) {
    for (RecordedPart& part : parts) add(part);
    keep(kept, renewed);
    // Each part checks its indices before it overwrites a block, but a later part may check others.
    keep_blocks_that_a_failure_would_need(joined_.graph);
    for (const Buffer& buffer : joined_.graph.buffers) {
      if (buffer.kind == BufferKind::kResult)
        joined_.results[at(buffer.binding)].donor = buffer.donor;
    }
    drop_unread_kernels();
    joined_.graph.input_count = static_cast<int>(joined_.inputs.size());
    joined_.graph.result_count = static_cast<int>(joined_.results.size());
    return std::move(joined_);
  }

 private:
  void add(RecordedPart& part) {
    place_buffers(part);
    const int first_node = static_cast<int>(joined_.graph.nodes.size());
    const int first_scalar = static_cast<int>(joined_.graph.scalars.size());
    const int first_site = static_cast<int>(joined_.graph.sites.size());
    for (PlanNode& node : part.graph.nodes) {
      for (int& source : node.sources) source += first_node;
      if (node.view_root >= 0) node.view_root += first_node;
      if (node.scalar >= 0) node.scalar += first_scalar;
      if (node.input.buffer >= 0) move_input(part, node);
      node.result = -1;
      joined_.graph.nodes.push_back(std::move(node));
    }
    for (std::size_t i = 0; i < part.results.size(); ++i) {
      written_.at(part.results[i].block).node = first_node + part.result_nodes[i];
    }
    for (Kernel& kernel : part.graph.kernels) {
      for (auto* operands :
           {&kernel.core_inputs, &kernel.loads, &kernel.stores, &kernel.core_stores}) {
        for (Operand& operand : *operands) move(operand);
      }
      for (int& node : kernel.nodes) node += first_node;
      if (kernel.core_site >= 0) kernel.core_site += first_site;
      for (ops::Instruction& instruction : kernel.program.code) {
        if (instruction.op == ops::Opcode::kScalar) instruction.imm += first_scalar;
        if (instruction.op == ops::Opcode::kCheckIndex) instruction.imm += first_site;
      }
      joined_.graph.kernels.push_back(std::move(kernel));
    }
    const auto append = [](auto& to, auto& from) { to.insert(to.end(), from.begin(), from.end()); };
    append(joined_.graph.scalars, part.graph.scalars);
    append(joined_.graph.sites, part.graph.sites);
  }

  /// Inputs before results: a result may be written over an input's block.
  void place_buffers(const RecordedPart& part) {
    const std::vector<Buffer>& buffers = part.graph.buffers;
    targets_.assign(buffers.size(), {});
    for (std::size_t b = 0; b < buffers.size(); ++b) {
      if (buffers[b].kind == BufferKind::kInput) {
        targets_[b] = input_target(part.inputs[at(buffers[b].binding)], buffers[b]);
      }
    }
    for (std::size_t b = 0; b < buffers.size(); ++b) {
      if (buffers[b].kind == BufferKind::kTemporary)
        targets_[b] = {new_buffer(buffers[b].bytes), 0};
      if (buffers[b].kind == BufferKind::kResult) {
        targets_[b] = result_target(part, part.results[at(buffers[b].binding)], buffers[b]);
      }
    }
  }

  int new_buffer(std::int64_t bytes) {
    Buffer buffer;
    buffer.bytes = bytes;
    joined_.graph.buffers.push_back(buffer);
    return static_cast<int>(joined_.graph.buffers.size()) - 1;
  }

  Target input_target(const RecordedStep::Input& input, const Buffer& buffer) {
    if (const auto found = written_.find(input.block); found != written_.end()) {
      return {found->second.buffer, input.offset - found->second.offset};
    }
    const int index = new_buffer(buffer.bytes);
    joined_.graph.buffers[at(index)].kind = BufferKind::kInput;
    joined_.graph.buffers[at(index)].binding = binding_of(input);
    return {index, 0};
  }

  int binding_of(const RecordedStep::Input& input) {
    const auto same = std::ranges::find_if(joined_.inputs, [&](const RecordedStep::Input& other) {
      return other.block == input.block && other.constant == input.constant &&
             other.offset == input.offset;
    });
    if (same != joined_.inputs.end()) return static_cast<int>(same - joined_.inputs.begin());
    joined_.inputs.push_back(input);
    return static_cast<int>(joined_.inputs.size()) - 1;
  }

  Target result_target(const RecordedPart& part, const RecordedStep::Result& result,
                       const Buffer& buffer) {
    if (const auto found = written_.find(result.block); found != written_.end()) {
      return {found->second.buffer, 0};
    }
    const int index = new_buffer(buffer.bytes);
    if (result.donor >= 0) {
      RecordedStep::Result overwriting = result;
      overwriting.donor = binding_of(part.inputs[at(result.donor)]);
      make_result(index, overwriting);
    }
    written_[result.block] = {index, result.offset, -1};
    return {index, 0};
  }

  void make_result(int buffer, const RecordedStep::Result& result) {
    joined_.graph.buffers[at(buffer)].kind = BufferKind::kResult;
    joined_.graph.buffers[at(buffer)].binding = static_cast<int>(joined_.results.size());
    joined_.graph.buffers[at(buffer)].donor = result.donor;
    joined_.results.push_back(result);
  }

  void move(Operand& operand) const {
    const Target& target = targets_[at(operand.buffer)];
    operand.buffer = target.buffer;
    operand.offset += target.offset / static_cast<std::int64_t>(size_of(operand.dtype));
  }

  /// A leaf of the part that an earlier part computed is a view of that value.
  void move_input(const RecordedPart& part, PlanNode& node) const {
    const Buffer& buffer = part.graph.buffers[at(node.input.buffer)];
    const RecordedStep::Input& input = part.inputs[at(buffer.binding)];
    if (const auto found = written_.find(input.block);
        found != written_.end() && found->second.node >= 0) {
      node.view_root = found->second.node;
      node.view_offset =
          (input.offset - found->second.offset) / static_cast<std::int64_t>(size_of(node.dtype));
      node.input = {};
      return;
    }
    move(node.input);
  }

  void keep(std::span<const BlockId> kept, std::span<const BlockId> renewed) {
    for (const BlockId block : kept) {
      const Written& written = written_.at(block);
      Buffer& buffer = joined_.graph.buffers[at(written.buffer)];
      if (buffer.kind == BufferKind::kResult) continue;
      RecordedStep::Result result;
      result.block = block;
      result.bytes = static_cast<std::size_t>(buffer.bytes);
      if (std::ranges::find(renewed, block) != renewed.end()) {
        result.donor = static_cast<int>(joined_.inputs.size());
        joined_.inputs.emplace_back();
        buffer.donor_is_dead = true;
      }
      make_result(written.buffer, result);
    }
    for (const auto& [block, written] : written_) {
      if (joined_.graph.buffers[at(written.buffer)].kind == BufferKind::kResult) {
        joined_.graph.nodes[at(written.node)].result = written.buffer;
      }
    }
  }

  /// Kernels whose results nobody reads or keeps, and that cannot fail, need not run.
  void drop_unread_kernels() {
    ExecutionGraph& graph = joined_.graph;
    std::vector<bool> is_read(graph.buffers.size());
    for (std::size_t b = 0; b < graph.buffers.size(); ++b) {
      is_read[b] = graph.buffers[b].kind == BufferKind::kResult;
    }
    std::vector<Kernel> needed;
    for (std::size_t k = graph.kernels.size(); k-- > 0;) {
      Kernel& kernel = graph.kernels[k];
      const auto is_needed = [&](const Operand& store) { return is_read[at(store.buffer)]; };
      const bool writes_needed = std::ranges::any_of(kernel.stores, is_needed) ||
                                 std::ranges::any_of(kernel.core_stores, is_needed);
      if (!writes_needed && sites_of(kernel).empty()) continue;
      for (const auto* operands : {&kernel.core_inputs, &kernel.loads}) {
        for (const Operand& operand : *operands) is_read[at(operand.buffer)] = true;
      }
      needed.push_back(std::move(kernel));
    }
    std::ranges::reverse(needed);
    graph.kernels = std::move(needed);
  }

  JoinedParts joined_;
  std::unordered_map<BlockId, Written> written_;
  std::vector<Target> targets_;  // by buffer of the part being added
};

}  // namespace

JoinedParts join(std::vector<RecordedPart> parts, std::span<const BlockId> kept,
                 std::span<const BlockId> renewed) {
  return Joining().run(std::move(parts), kept, renewed);
}

}  // namespace vkml::dispatch
