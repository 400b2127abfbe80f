// jit(): a function of tensors is recorded once for each signature and from then on replayed as one
// plan, without running the function or building a graph.
//
// State is whatever tensor the function reads or changes and that was there before the call:
// parameters, buffers, statistics, gradients, an optimiser's tensors. A replay reads their values
// of now and changes them as the function would, in place. The random stream goes on as it would.
// The numbers that the function computed with, and the branches that it took, are those of the
// recorded call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "vkml/api/tensor.h"
#include "vkml/core/number.h"

namespace vkml {

/// One recorded call. Safe to use from several threads: calls run one after the other.
class RecordedCall {
 public:
  virtual ~RecordedCall() = default;
  /// Why the recording does not stand for a call with these arguments now; empty when it does.
  virtual std::string mismatch(std::span<const Tensor> arguments) const = 0;
  /// Runs the step: its results, in order. `numbers` are the values of the expressions that it was
  /// recorded with (number()). None, and nothing has happened, where there is a mismatch: tensors
  /// are looked at once, and the step runs on what they showed. Throws as realize(); tensors are as
  /// before then.
  virtual std::optional<std::vector<Tensor>> run(std::span<const Tensor> arguments,
                                                 std::span<const Number> numbers = {}) = 0;
};

/// While it lives, this thread records: nothing is computed, and what is done to tensors that were
/// there before is undone in the end. One recording is made at a time in a process; other threads
/// wait, and must not use the tensors that it captures.
class CallRecording {
 public:
  explicit CallRecording(std::span<const Tensor> arguments);
  ~CallRecording();
  CallRecording(const CallRecording&) = delete;
  CallRecording& operator=(const CallRecording&) = delete;

  /// Ends it: what a call that returned `results` did. `adopted` tensors were made meanwhile and
  /// stay: the first run gives them their values. Throws AutogradError for a result with a recorded
  /// gradient, ArgumentError, and what planning throws.
  std::shared_ptr<RecordedCall> finish(std::span<const Tensor> results,
                                       std::span<const Tensor> adopted = {});

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

/// Whether this thread records.
bool is_recording();
/// A number that each run of the recording is given anew: the expression of this index.
Tensor number(Number value, std::int64_t index);

/// A function keeps its recordings used last.
inline constexpr std::size_t kMaxRecordings = 32;

using TensorFunction = std::function<std::vector<Tensor>(std::span<const Tensor>)>;

/// What jit() makes of a function. Copies share their recordings.
class JitFunction {
 public:
  explicit JitFunction(TensorFunction function);
  /// Replays the recording for these arguments, or makes it: for each number of arguments, shapes,
  /// strides, dtypes and devices, each gradient mode, and each layout of the captured tensors.
  std::vector<Tensor> operator()(std::span<const Tensor> arguments) const;
  /// How many recordings there are, kMaxRecordings at most.
  std::int64_t recording_count() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

/// The function, recorded. An argument must not also be captured by the function. In eager mode the
/// function simply runs.
JitFunction jit(TensorFunction function);

}  // namespace vkml
