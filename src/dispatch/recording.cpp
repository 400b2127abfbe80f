#include "vkml/dispatch/recording.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>

#include "check_schedule.h"
#include "coverage.h"
#include "device_state.h"
#include "fuse.h"
#include "join.h"
#include "lower.h"
#include "realized_nodes.h"
#include "run_plan.h"
#include "schedule.h"
#include "vkml/core/error.h"
#include "vkml/ops/functions.h"

namespace vkml::dispatch {
namespace {

thread_local Recording* current_recording = nullptr;

std::uint64_t next_serial() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

/// "Writer" of a block without memory: whoever observes it hears why it has none.
class RecordedWriter final : public Submission {
 public:
  RecordedWriter(std::uint64_t recording, BlockId block) : recording_(recording), block_(block) {}
  void wait() override {
    if (current_recording != nullptr) {
      throw ArgumentError(
          "[jit] a value was observed (item(), numpy(), bool(), print) while a function is "
          "recorded, which has no values yet. Return the tensor, and observe it outside");
    }
    throw ArgumentError(
        "[jit] this tensor was made inside a recorded function that did not return it, so that no "
        "later call would give it a new value. Return it, or assign to a tensor made outside");
  }
  /// A step that fails leaves every block that it was given as it was.
  bool may_fail() const override { return false; }
  bool is_done() const override { return true; }
  std::uint64_t recording() const { return recording_; }
  BlockId block() const { return block_; }

 private:
  std::uint64_t recording_;
  BlockId block_;
};

}  // namespace

Recording::Recording() : serial_(next_serial()) {
  if (current_recording != nullptr) throw InternalError("a recording was begun inside another");
  current_recording = this;
}
Recording::~Recording() { current_recording = nullptr; }

Recording* Recording::current() { return current_recording; }

Recording::Pause::Pause() : paused_(std::exchange(current_recording, nullptr)) {}
Recording::Pause::~Pause() { current_recording = paused_; }

StoragePtr Recording::add_block(Device device, std::size_t bytes) {
  auto block = std::make_shared<Storage>(device, bytes, nullptr, 0, nullptr);
  const auto id = static_cast<BlockId>(given_.size());
  block->set_writer(std::make_shared<RecordedWriter>(serial_, id));
  given_.push_back(false);
  written_.push_back(false);
  return block;
}

StoragePtr Recording::give_block(Device device, std::size_t bytes, bool may_overwrite) {
  StoragePtr block = add_block(device, bytes);
  given_.back() = true;
  if (!may_overwrite) block->mark_exported();
  return block;
}

BlockId Recording::block_of(const Storage& storage) const {
  const auto writer = std::dynamic_pointer_cast<RecordedWriter>(storage.writer());
  return writer && writer->recording() == serial_ ? writer->block() : -1;
}

bool Recording::is_unchanged(BlockId block) const {
  const auto index = static_cast<std::size_t>(block);
  return given_[index] && !written_[index];
}

void Recording::check_device(Device device) {
  if (device_ && *device_ != device) {
    throw DeviceError(
        fmt::format("[jit] a recorded function computes on {} and on {}; it runs on one device. "
                    "Record a function for each",
                    to_string(*device_), to_string(device)));
  }
  device_ = device;
}

std::vector<RecordedStep::Input> Recording::inputs_of(const Schedule& schedule,
                                                      const Lowered& lowered) const {
  std::vector<RecordedStep::Input> inputs;
  for (const int position : lowered.inputs) {
    graph::Node& node = *schedule[position].node;
    RecordedStep::Input input;
    input.block = block_of(*storage_owner(node).storage());
    if (input.block < 0)
      input.constant = node.is_view() ? node.view_src() : node.shared_from_this();
    input.offset = offset_of(node);
    inputs.push_back(std::move(input));
  }
  return inputs;
}

void Recording::defer(std::span<const graph::NodePtr> roots, const RealizeOptions& options) {
  const Device device = common_device(roots);
  DeviceState& state = state_of(device);
  const std::scoped_lock lock(state.mutex);
  const std::vector<graph::NodePtr> pending = bind_ready_views(roots);
  if (pending.empty()) return;
  check_device(device);

  const Backend& backend = backend_for(device);
  const Schedule schedule = make_schedule(pending, options.keep_for_backward);
  check_schedule(schedule, device, backend);
  record_coverage(schedule, device);
  Lowered lowered = lower(schedule, fuse(schedule, fusion_options(backend)));

  RecordedPart part;
  part.inputs = inputs_of(schedule, lowered);
  std::vector<ResultPlace> places(lowered.results.size());
  part.results.resize(lowered.results.size());
  for (const Buffer& buffer : lowered.graph.buffers) {
    if (buffer.kind != BufferKind::kResult) continue;
    const auto index = static_cast<std::size_t>(buffer.binding);
    RecordedStep::Result& result = part.results[index];
    if (buffer.donor < 0) {
      places[index] = {add_block(device, static_cast<std::size_t>(buffer.bytes)), 0};
    } else {
      const int donor = lowered.inputs[static_cast<std::size_t>(buffer.donor)];
      const graph::Node& old = *schedule[donor].node;
      places[index] = {old.storage(), old.storage_offset()};
    }
    result.block = block_of(*places[index].storage);
    result.bytes = places[index].storage->bytes();
    result.donor = buffer.donor;
    result.offset = places[index].offset;
    written_[static_cast<std::size_t>(result.block)] = true;
  }
  for (const int position : lowered.scalars) {
    part.scalars.push_back(schedule[position].node->shared_from_this());
  }
  part.result_nodes = std::move(lowered.results);
  part.graph = std::move(lowered.graph);
  parts_.push_back(std::move(part));
  finish_results(schedule, parts_.back().result_nodes, places);
}

RecordedStep Recording::finish(std::span<const BlockId> kept, std::span<const BlockId> renewed) {
  RecordedStep step;
  if (!device_) return step;
  step.device = *device_;
  DeviceState& state = state_of(step.device);
  const std::scoped_lock lock(state.mutex);
  for (const RecordedPart& part : parts_) {
    step.scalars.insert(step.scalars.end(), part.scalars.begin(), part.scalars.end());
  }
  JoinedParts joined = join(std::move(parts_), kept, renewed);
  step.inputs = std::move(joined.inputs);
  step.results = std::move(joined.results);
  const HostTimer timer(HostWork::kPlan);
  step.plan = make_plan(std::move(joined.graph), backend_for(step.device));
  return step;
}

void run(const RecordedStep& step, StepBindings& bindings) {
  const HostTimer timer(HostWork::kReplay);
  const Plan& plan = *step.plan;
  Backend& backend = backend_for(step.device);
  Bound bound;
  for (const Binding& input : bindings.inputs) bind_input(plan, input, bound);
  for (std::size_t i = 0; i < step.results.size(); ++i) {
    StoragePtr& storage = bindings.results[i];
    if (!storage) storage = allocate(backend, step.results[i].bytes);
    bound.results.push_back({storage, bindings.offsets[i]});
    bound.bindings.results.push_back({storage.get(), bindings.offsets[i]});
    // A renewed block is an input that nothing reads.
    const int donor = step.results[i].donor;
    if (donor < 0) continue;
    Binding& input = bound.bindings.inputs[static_cast<std::size_t>(donor)];
    if (input.storage == nullptr) {
      input.storage = storage.get();
      input.offset = bindings.offsets[i];
    }
  }
  bound.bindings.scalars = std::move(bindings.scalars);
  const std::shared_ptr<Submission> submission = run_plan(plan, bound, backend);
  if (submission && plan.may_fail && plan.has_fresh_assignment) submission->wait();
  state_of(step.device).statistics.kernels += plan.kernel_count;
  set_writers(plan, bound, submission);
}

}  // namespace vkml::dispatch
