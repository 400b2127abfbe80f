// Watches the tensors that a recorded function touches: which were there before (they are its
// inputs and its state), what they show in the end, and how to put them back.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "random_state.h"
#include "slot.h"
#include "vkml/api/tensor.h"
#include "vkml/dispatch/recording.h"

namespace vkml {

/// Where a replay finds a tensor.
struct SlotSource {
  enum class Kind : std::uint8_t { kCaptured, kArgument, kGradient };
  Kind kind = Kind::kCaptured;
  std::shared_ptr<Slot> slot;  // kCaptured
  int index = -1;              // the argument, or the gradient among GradientSources
};

/// Where a replay finds a leaf's gradient.
struct GradientSource {
  std::shared_ptr<LeafGradient> gradient;  // of a captured leaf
  int argument = -1;                       // of an argument
};

class CallRecorder {
 public:
  explicit CallRecorder(std::span<const Tensor> arguments);
  /// Puts every captured tensor and gradient back.
  ~CallRecorder();
  CallRecorder(const CallRecorder&) = delete;
  CallRecorder& operator=(const CallRecorder&) = delete;

  static CallRecorder& current();
  /// Throws ArgumentError while this thread records.
  static void refuse_observation();

  /// A tensor is touched for the first time: from now on it shows a value without memory. Throws
  /// AutogradError for one that recorded a gradient before.
  void capture(const std::shared_ptr<Slot>& slot);
  /// The same for a leaf's gradient, which is read, or only replaced.
  void capture(const std::shared_ptr<LeafGradient>& gradient, bool reads);

  struct CapturedSlot {
    std::shared_ptr<Slot> slot;
    graph::NodePtr initial;
    std::shared_ptr<LeafGradient> gradient;  // of a leaf
    dispatch::BlockId block = -1;
    std::uint64_t changes = 0;  // of the slot, when it was captured
    SlotSource source;
  };
  struct CapturedGradient {
    std::shared_ptr<LeafGradient> gradient;
    std::shared_ptr<Slot> initial;
    bool reads = false;
    GradientSource source;
  };

  const std::vector<CapturedSlot>& slots() const { return slots_; }
  const std::vector<CapturedGradient>& gradients() const { return gradients_; }
  dispatch::Recording& recording() { return recording_; }
  /// How many random numbers the function drew.
  std::uint64_t draws() const { return draws_.value().count(); }
  /// Computes nothing more; undoes what the function did. Recording is over.
  void restore();

 private:
  std::vector<Tensor> arguments_;
  std::optional<PrivateDraws> draws_{std::in_place};
  dispatch::Recording recording_;
  std::vector<CapturedSlot> slots_;
  std::vector<CapturedGradient> gradients_;
  bool is_over_ = false;
};

}  // namespace vkml
