#include "call_recorder.h"

#include <fmt/format.h>

#include <atomic>
#include <utility>

#include "vkml/core/error.h"
#include "vkml/dispatch/exclusive.h"
#include "vkml/dispatch/executor.h"

namespace vkml {
namespace {

using graph::NodePtr;

thread_local CallRecorder* recorder = nullptr;

std::uint64_t next_id() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

/// While it lives, the thread does what it would do without a recording.
class Outside {
 public:
  Outside() : mark_(RecordingMark::set(0)) {}
  ~Outside() { RecordingMark::set(mark_); }
  Outside(const Outside&) = delete;
  Outside& operator=(const Outside&) = delete;

 private:
  dispatch::Recording::Pause pause_;
  std::uint64_t mark_;
};

}  // namespace

CallRecorder::CallRecorder(std::span<const Tensor> arguments)
    : arguments_(arguments.begin(), arguments.end()) {
  recorder = this;
  RecordingMark::set(next_id());
}

CallRecorder::~CallRecorder() {
  if (!is_over_) restore();
}

CallRecorder& CallRecorder::current() { return *recorder; }

void CallRecorder::refuse_observation() {
  if (RecordingMark::current() == 0) return;
  throw ArgumentError(
      "[jit] a value was observed (item(), numpy(), bool(), print, a copy to another device) in a "
      "function that is recorded, which has no values yet. Return the tensor and observe it "
      "outside; choose by value with where()");
}

void CallRecorder::capture(const std::shared_ptr<Slot>& slot) {
  const Outside outside;
  NodePtr node = slot->node();
  if (node->requires_grad() && !node->is_gradient_stop() && !node->is_released()) {
    throw AutogradError(fmt::format(
        "[jit] the function uses a tensor of shape {} whose gradient was recorded outside ({}): no "
        "gradient crosses into a recorded function. Pass detach() of it, or compute it inside",
        node->shape().to_string(), node->op().name));
  }
  if (!node->is_computed()) dispatch::realize({&node, 1});
  std::uint32_t flags = 0;
  if (node->is_gradient_stop()) flags |= graph::kFlagRequiresGrad | graph::kFlagGradientStop;
  if (node->is_weak()) flags |= graph::kFlagWeak;
  constexpr long kSlotAndHere = 2;
  StoragePtr block = recording_.give_block(node->device(), node->storage()->bytes(),
                                           dispatch::is_exclusive(node, kSlotAndHere));
  CapturedSlot captured;
  captured.slot = slot;
  captured.gradient = slot->gradient();
  captured.block = recording_.block_of(*block);
  const NodePtr stand_in =
      graph::make_leaf(std::move(block), 0, node->shape(), node->dtype(), flags);
  stand_in->set_sink(node->sink());
  slot->substitute(stand_in);
  captured.initial = std::move(node);
  captured.changes = slot->changes();
  captured.source.slot = slot;
  for (std::size_t i = 0; i < arguments_.size(); ++i) {
    if (arguments_[i].slot() != slot) continue;
    captured.source = {SlotSource::Kind::kArgument, nullptr, static_cast<int>(i)};
    break;
  }
  for (std::size_t i = 0; i < gradients_.size(); ++i) {
    if (gradients_[i].initial == slot) {
      captured.source = {SlotSource::Kind::kGradient, nullptr, static_cast<int>(i)};
    }
  }
  slots_.push_back(std::move(captured));
}

void CallRecorder::capture(const std::shared_ptr<LeafGradient>& gradient, bool reads) {
  const Outside outside;
  CapturedGradient captured;
  captured.gradient = gradient;
  captured.initial = gradient->current();
  captured.reads = reads;
  captured.source.gradient = gradient;
  for (std::size_t i = 0; i < arguments_.size(); ++i) {
    if (arguments_[i].slot()->gradient() != gradient) continue;
    captured.source = {nullptr, static_cast<int>(i)};
    break;
  }
  gradients_.push_back(std::move(captured));
}

void CallRecorder::restore() {
  is_over_ = true;
  recorder = nullptr;
  RecordingMark::set(0);
  for (const CapturedSlot& captured : slots_) {
    if (captured.slot->changes() != captured.changes) captured.slot->mark_changed();
    if (captured.slot->gradient() != captured.gradient) {
      captured.slot->set_gradient(captured.gradient);
      if (captured.gradient) captured.gradient->open();
    }
    captured.slot->substitute(captured.initial);
  }
  for (const CapturedGradient& captured : gradients_) captured.gradient->set(captured.initial);
  draws_.reset();
}

}  // namespace vkml
