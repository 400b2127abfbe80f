// jit() and what it is made of: which recording stands for a call, and the making of one.

#include "vkml/api/jit.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "call_recorder.h"
#include "pending_assignments.h"
#include "recorded_call.h"
#include "runtime.h"
#include "vkml/api/context.h"
#include "vkml/core/error.h"
#include "vkml/dispatch/device_mutex.h"
#include "vkml/dispatch/executor.h"
#include "vkml/ops/functions.h"

namespace vkml {
namespace {

using graph::NodePtr;

/// Assignments that are pending would be taken for the recorded function's own.
void finish_pending_assignments() {
  std::vector<NodePtr> pending = take_all_pending_assignments();
  while (!pending.empty()) {
    const Device device = pending.front()->device();
    std::vector<NodePtr> here;
    std::erase_if(pending, [&](NodePtr& node) {
      if (node->device() != device) return false;
      here.push_back(std::move(node));
      return true;
    });
    dispatch::realize(here);
  }
}

dispatch::DeviceMutex& recording_mutex() {
  static auto* mutex = new dispatch::DeviceMutex;
  return *mutex;
}

/// What must be the same of two calls, beside the tensors that the function captures.
struct Signature {
  std::vector<std::int64_t> words;

  explicit Signature(std::span<const Tensor> arguments) {
    words = {is_grad_enabled(), static_cast<std::int64_t>(matmul_precision()),
             static_cast<std::int64_t>(key_of(default_device()))};
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const graph::Value value = arguments[i].value();
      words.push_back(static_cast<std::int64_t>(value.dtype()));
      words.push_back(static_cast<std::int64_t>(key_of(value.device())));
      words.push_back(value->is_gradient_stop());
      const Shape shape = value.shape();
      words.push_back(shape.rank());
      words.insert(words.end(), shape.extents().begin(), shape.extents().end());
      words.insert(words.end(), shape.strides().begin(), shape.strides().end());
      // Which arguments are one tensor.
      std::size_t first = 0;
      while (arguments[first].slot() != arguments[i].slot()) ++first;
      words.push_back(static_cast<std::int64_t>(first));
    }
  }
  friend bool operator==(const Signature&, const Signature&) = default;
};

}  // namespace

class CallRecording::Implementation {
 public:
  explicit Implementation(std::span<const Tensor> arguments) : lock_(recording_mutex()) {
    finish_pending_assignments();
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
  auto call = make_recorded_call(*recorder, results, adopted);
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
};

JitFunction::JitFunction(TensorFunction function) : state_(std::make_shared<State>()) {
  state_->function = std::move(function);
}

std::vector<Tensor> JitFunction::operator()(std::span<const Tensor> arguments) const {
  if (is_eager() || is_recording()) return state_->function(arguments);
  const Signature signature(arguments);
  std::shared_ptr<RecordedCall> call;
  {
    const std::scoped_lock lock(state_->mutex);
    for (const auto& [known, recorded] : state_->recordings) {
      if (!(known == signature) || !recorded->mismatch(arguments).empty()) continue;
      call = recorded;
      break;
    }
  }
  if (!call) {
    CallRecording recording(arguments);
    call = recording.finish(state_->function(arguments));
    const std::scoped_lock lock(state_->mutex);
    state_->recordings.insert(state_->recordings.begin(), {signature, call});
  }
  return call->run(arguments);
}

std::int64_t JitFunction::recording_count() const {
  const std::scoped_lock lock(state_->mutex);
  return static_cast<std::int64_t>(state_->recordings.size());
}

JitFunction jit(TensorFunction function) { return JitFunction(std::move(function)); }

}  // namespace vkml
