// Recording a step: what realize() is asked for while a function runs once is not computed but
// collected, and becomes one plan that runs from then on instead of the function.
//
// Each call of realize() is scheduled and fused as it would be without a recording, so that the
// plan has the same kernels and gives the same bits; only their memory is planned together: what
// one call hands to a later one and nobody keeps lies in the arena. Meanwhile values lie in blocks
// that have no memory yet. Blocks are what the parts are joined by.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "vkml/dispatch/backend.h"
#include "vkml/dispatch/executor.h"

namespace vkml::dispatch {

struct Plan;
struct Lowered;
struct RecordedPart;
struct Schedule;

/// A block of a recording.
using BlockId = int;

/// One plan for all that a recording collected, and what its bindings stand for.
struct RecordedStep {
  struct Input {
    BlockId block = -1;       // given to the recording before it began, or
    graph::NodePtr constant;  // made meanwhile from host memory, or neither:
                              // a block that a result overwrites without reading it
    std::int64_t offset = 0;  // bytes
  };
  struct Result {
    BlockId block = -1;
    std::size_t bytes = 0;
    int donor = -1;           // the input whose block it overwrites
    std::int64_t offset = 0;  // of the donor
  };
  Device device;
  std::shared_ptr<Plan> plan;
  std::vector<Input> inputs;
  std::vector<Result> results;
  std::vector<graph::NodePtr> scalars;
};

/// What a step is run on: one block for each input and result, one word for each scalar.
struct StepBindings {
  std::vector<Binding> inputs;
  std::vector<StoragePtr> results;
  std::vector<std::int64_t> offsets;  // of the results
  std::vector<std::uint64_t> scalars;
};

/// Runs a step: allocates the results that are null, then as realize(). Called under the device's
/// lock (GraphLock).
void run(const RecordedStep& step, StepBindings& bindings);

class Recording {
 public:
  /// From now on realize() in this thread collects.
  Recording();
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  /// The recording in progress in this thread, or null.
  static Recording* current();

  /// While it lives, realize() computes again.
  class Pause {
   public:
    Pause();
    ~Pause();
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    Recording* paused_;
  };

  /// A block without memory that stands for one which the step will be given. `may_overwrite`: an
  /// assignment may be written over it.
  StoragePtr give_block(Device device, std::size_t bytes, bool may_overwrite);
  /// The block that a storage stands for, -1 for memory of others.
  BlockId block_of(const Storage& storage) const;
  /// Whether the block was given, and not written since.
  bool is_unchanged(BlockId block) const;

  /// What realize() does meanwhile: nodes are marked as computed in blocks without memory.
  void defer(std::span<const graph::NodePtr> roots, const RealizeOptions& options);

  /// The plan, whose results are the `kept` blocks and all given blocks that were written. The
  /// `renewed` ones among the kept overwrite the block that held their tensor's value before the
  /// step, which nobody reads.
  RecordedStep finish(std::span<const BlockId> kept, std::span<const BlockId> renewed);

 private:
  StoragePtr add_block(Device device, std::size_t bytes);
  void check_device(Device device);
  std::vector<RecordedStep::Input> inputs_of(const Schedule& schedule,
                                             const Lowered& lowered) const;

  std::uint64_t serial_;       // tells blocks of different recordings apart
  std::vector<bool> given_;    // by block
  std::vector<bool> written_;  // by block
  std::optional<Device> device_;
  std::vector<RecordedPart> parts_;
};

}  // namespace vkml::dispatch
