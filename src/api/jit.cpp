// jit() and what it is made of: which recording stands for a call, and the making of one.

#include "vkml/api/jit.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "call_recorder.h"
#include "pending_assignments.h"
#include "realize.h"
#include "recorded_call.h"
#include "runtime.h"
#include "vkml/api/call_signature.h"
#include "vkml/dispatch/device_mutex.h"
#include "vkml/ops/functions.h"

namespace vkml {
namespace {

dispatch::DeviceMutex& recording_mutex() {
  static auto* mutex = new dispatch::DeviceMutex;
  return *mutex;
}

/// What must be the same of two calls, beside the tensors that the function captures.
struct Signature {
  CallModes modes = modes_now();
  std::vector<TensorSignature> tensors;
  std::vector<std::size_t> first;  // by argument: the first one that is the same tensor

  explicit Signature(std::span<const Tensor> arguments) {
    for (const Tensor& argument : arguments) {
      tensors.push_back(signature_of(argument));
      const auto same = std::ranges::find_if(
          arguments, [&](const Tensor& other) { return other.slot() == argument.slot(); });
      first.push_back(static_cast<std::size_t>(same - arguments.begin()));
    }
  }
  friend bool operator==(const Signature&, const Signature&) = default;
};

}  // namespace

class CallRecording::Implementation {
 public:
  explicit Implementation(std::span<const Tensor> arguments) : lock_(recording_mutex()) {
    // They would be taken for the recorded function's own.
    realize_quietly(take_all_pending_assignments());
    recorder_.emplace(arguments);
  }
  std::optional<CallRecorder>& recorder() { return recorder_; }

 private:
  std::unique_lock<dispatch::DeviceMutex> lock_;
  std::optional<CallRecorder> recorder_;
};

CallRecording::CallRecording(std::span<const Tensor> arguments) {
  register_backends();
  implementation_ = std::make_unique<Implementation>(arguments);
}
CallRecording::~CallRecording() = default;

std::shared_ptr<RecordedCall> CallRecording::finish(std::span<const Tensor> results,
                                                    std::span<const Tensor> adopted) {
  std::optional<CallRecorder>& recorder = implementation_->recorder();
  auto call = make_recorded_call(recorder.value(), results, adopted);
  recorder.reset();
  return call;
}

bool is_recording() { return RecordingMark::current() != 0; }

Tensor number(Number value, std::int64_t index) {
  const graph::Value scalar = value.is_integer()
                                  ? graph::weak_scalar(value.integer(), default_device())
                                  : graph::weak_scalar(value.floating(), default_device());
  return Tensor(graph::with_origin(scalar, {graph::NumberSource::kExpression, index}));
}

struct JitFunction::State {
  TensorFunction function;
  std::mutex mutex;
  std::vector<std::pair<Signature, std::shared_ptr<RecordedCall>>> recordings;

  /// The recording is looked at first from now on, and the one used longest ago makes room.
  void move_to_front(const Signature& signature, const std::shared_ptr<RecordedCall>& call) {
    const std::scoped_lock lock(mutex);
    if (!recordings.empty() && recordings.front().second == call) return;
    std::erase_if(recordings, [&](const auto& entry) { return entry.second == call; });
    recordings.insert(recordings.begin(), {signature, call});
    if (recordings.size() > kMaxRecordings) recordings.pop_back();
  }
};

JitFunction::JitFunction(TensorFunction function) : state_(std::make_shared<State>()) {
  state_->function = std::move(function);
}

std::vector<Tensor> JitFunction::operator()(std::span<const Tensor> arguments) const {
  if (is_eager() || is_recording()) return state_->function(arguments);
  for (;;) {
    const Signature signature(arguments);
    std::vector<std::shared_ptr<RecordedCall>> candidates;
    {
      const std::scoped_lock lock(state_->mutex);
      for (const auto& [known, recorded] : state_->recordings) {
        if (known == signature) candidates.push_back(recorded);
      }
    }
    for (const std::shared_ptr<RecordedCall>& call : candidates) {
      auto results = call->run(arguments);
      if (!results) continue;
      state_->move_to_front(signature, call);
      return *std::move(results);
    }
    CallRecording recording(arguments);
    const std::shared_ptr<RecordedCall> call = recording.finish(state_->function(arguments));
    state_->move_to_front(signature, call);
  }
}

std::int64_t JitFunction::recording_count() const {
  const std::scoped_lock lock(state_->mutex);
  return static_cast<std::int64_t>(state_->recordings.size());
}

JitFunction jit(TensorFunction function) { return JitFunction(std::move(function)); }

}  // namespace vkml
