// Replaying a step. Bound: on a GPU by the submission; on the host by one look at each captured
// tensor, since state is found through the tensors and not through addresses.

#include "recorded_call.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "random_state.h"
#include "vkml/api/call_signature.h"
#include "vkml/core/error.h"
#include "vkml/dispatch/exclusive.h"
#include "vkml/dispatch/executor.h"
#include "vkml/dispatch/recording.h"
#include "vkml/ops/functions.h"

namespace vkml {
namespace {

using dispatch::BlockId;
using dispatch::RecordedStep;
using graph::NodePtr;
using graph::NumberOrigin;
using graph::NumberSource;
using graph::Value;

constexpr std::uint32_t kLeafFlags = graph::kFlagRequiresGrad | graph::kFlagGradientStop;

/// A value after the step: a window on a result, on a block that the step was given, or on one that
/// it made from host memory.
struct FinalValue {
  BlockId block = -1;
  int result = -1;   // or
  int source = -1;   // or
  NodePtr constant;  // the memory's owner
  std::int64_t offset = 0;
  Shape shape;
  DType dtype = DType::kF32;
  bool is_leaf = false;
  bool is_weak = false;
};

/// What a captured tensor must be like for the recording to stand for it.
struct Source {
  SlotSource where;
  TensorSignature kind;
  bool is_overwritten = false;
  int final_value = -1;         // what it shows after the step; -1: what it showed
  bool stays_in_place = false;  // it does so where it is
};

struct Gradient {
  GradientSource where;
  bool reads = false;
  bool was_there = false;   // before the step
  bool changes = false;     // it is another tensor after the step, or none
  int final_value = -1;     // that other tensor
  bool is_renewed = false;  // which may lie where the old one did
};

struct Output {
  int value = -1;     // a value of its own, or
  int source = -1;    // a captured tensor, or
  int gradient = -1;  // a leaf's gradient, or
  int same_as = -1;   // an earlier output
};

class Replay final : public RecordedCall {
 public:
  std::string mismatch(std::span<const Tensor> arguments) const override;
  std::optional<std::vector<Tensor>> run(std::span<const Tensor> arguments,
                                         std::span<const Number> numbers) override;

  RecordedStep step;
  std::vector<Source> sources;
  std::vector<Gradient> gradients;
  std::vector<FinalValue> values;
  std::vector<Output> outputs;
  std::vector<std::uint64_t> scalars;  // the bits of those that never change
  std::vector<std::pair<std::size_t, NumberOrigin>> changing;  // scalars, by index
  std::vector<int> source_of_input;                            // by input of the step; -1
  std::uint64_t draws = 0;                                     // random keys that each run takes
  std::vector<std::shared_ptr<Slot>> adopted;                  // until the first run
  std::vector<int> adopted_values;

 private:
  /// The captured tensors of one run: their slots, and the nodes that they show.
  struct Found {
    std::vector<std::shared_ptr<Slot>> slots;
    std::vector<NodePtr> nodes;
    std::vector<std::shared_ptr<LeafGradient>> gradients;
    std::vector<std::shared_ptr<Slot>> gradient_slots;
  };
  std::shared_ptr<LeafGradient> find(const Gradient& gradient,
                                     std::span<const Tensor> arguments) const;
  std::shared_ptr<Slot> find(const Source& source, std::span<const Tensor> arguments,
                             const Found& found) const;
  /// Looks every captured tensor up, once. Returns a mismatch, or nothing.
  std::string look_up(std::span<const Tensor> arguments, Found& found) const;
  /// Computes what was found; what is overwritten gets memory that nobody else reads.
  void make_ready(Found& found) const;
  dispatch::StepBindings bind(const Found& found, std::span<const Number> numbers) const;
  NodePtr leaf_of(const FinalValue& value, const Found& found,
                  const dispatch::StepBindings& bound) const;
  void publish(const Found& found, const dispatch::StepBindings& bound);
  std::vector<Tensor> results(const Found& found, const dispatch::StepBindings& bound);
};

std::shared_ptr<LeafGradient> Replay::find(const Gradient& gradient,
                                           std::span<const Tensor> arguments) const {
  if (gradient.where.argument < 0) return gradient.where.gradient;
  return arguments[static_cast<std::size_t>(gradient.where.argument)].slot()->gradient();
}

std::shared_ptr<Slot> Replay::find(const Source& source, std::span<const Tensor> arguments,
                                   const Found& found) const {
  const auto index = static_cast<std::size_t>(source.where.index);
  switch (source.where.kind) {
    case SlotSource::Kind::kCaptured:
      return source.where.slot;
    case SlotSource::Kind::kArgument:
      return arguments[index].slot();
    case SlotSource::Kind::kGradient:
      return found.gradient_slots[index];
  }
  return nullptr;
}

std::string Replay::look_up(std::span<const Tensor> arguments, Found& found) const {
  for (const Gradient& gradient : gradients) {
    std::shared_ptr<LeafGradient> leaf = find(gradient, arguments);
    if (!leaf) return "an argument requires no gradient now";
    std::shared_ptr<Slot> slot = leaf->current();
    if (gradient.reads && (slot != nullptr) != gradient.was_there) {
      return gradient.was_there ? "a gradient is None that was there"
                                : "a gradient is there that was None";
    }
    found.gradients.push_back(std::move(leaf));
    found.gradient_slots.push_back(std::move(slot));
  }
  found.slots.reserve(sources.size());
  found.nodes.reserve(sources.size());
  for (const Source& source : sources) {
    std::shared_ptr<Slot> slot = find(source, arguments, found);
    if (!slot) return "a gradient is None that was there";
    NodePtr node = slot->node();
    const TensorSignature kind = signature_of(Value(node));
    if (!(kind == source.kind)) {
      return fmt::format("{} is {}, was {}",
                         source.where.kind == SlotSource::Kind::kArgument
                             ? fmt::format("tensor {} of the arguments", source.where.index)
                             : std::string("a captured tensor"),
                         to_string(kind), to_string(source.kind));
    }
    found.slots.push_back(std::move(slot));
    found.nodes.push_back(std::move(node));
  }
  return {};
}

std::string Replay::mismatch(std::span<const Tensor> arguments) const {
  Found found;
  return look_up(arguments, found);
}

/// The same value in memory of its own, for a tensor whose block others still read.
NodePtr own_copy(const NodePtr& node) {
  NodePtr copied = graph::copy(graph::detach(Value(node))).node();
  dispatch::realize({&copied, 1}, {.keep_for_backward = false});
  NodePtr leaf = graph::make_leaf(copied->storage(), copied->storage_offset(), node->shape(),
                                  node->dtype(), node->is_gradient_stop() ? kLeafFlags : 0);
  leaf->set_sink(node->sink());
  return leaf;
}

void Replay::make_ready(Found& found) const {
  for (std::size_t i = 0; i < sources.size(); ++i) {
    NodePtr& node = found.nodes[i];
    if (!node->is_computed()) dispatch::realize({&node, 1});
    if (!sources[i].is_overwritten) continue;
    constexpr long kSlotAndHere = 2;
    if (!dispatch::is_exclusive(node, kSlotAndHere)) {
      node = own_copy(node);
      found.slots[i]->substitute(node);
    }
  }
}

dispatch::StepBindings Replay::bind(const Found& found, std::span<const Number> numbers) const {
  dispatch::StepBindings bound;
  bound.inputs.reserve(step.inputs.size());
  for (std::size_t i = 0; i < step.inputs.size(); ++i) {
    const RecordedStep::Input& input = step.inputs[i];
    const graph::Node* node = input.constant.get();
    std::int64_t offset = input.offset;
    if (source_of_input[i] >= 0) {
      node = found.nodes[static_cast<std::size_t>(source_of_input[i])].get();
      offset += node->storage_offset();
    }
    bound.inputs.push_back({node != nullptr ? node->storage().get() : nullptr, offset});
  }
  bound.results.resize(step.results.size());
  bound.offsets.resize(step.results.size());
  for (std::size_t i = 0; i < step.results.size(); ++i) {
    const int donor = step.results[i].donor;
    if (donor < 0 || source_of_input[static_cast<std::size_t>(donor)] < 0) continue;
    const auto source = static_cast<std::size_t>(source_of_input[static_cast<std::size_t>(donor)]);
    bound.results[i] = found.nodes[source]->storage();
    bound.offsets[i] = bound.inputs[static_cast<std::size_t>(donor)].offset;
  }
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const std::shared_ptr<Slot>& old = found.gradient_slots[i];
    if (!gradients[i].is_renewed || !old) continue;
    const FinalValue& value = values[static_cast<std::size_t>(gradients[i].final_value)];
    // The tensor of the old gradient, its slot and here; nobody else may see it change.
    constexpr long kGradientAndFound = 2;
    constexpr long kSlotAndHere = 2;
    const NodePtr node = old->node();
    const bool is_ours = old.use_count() == kGradientAndFound && node->is_computed() &&
                         dispatch::is_exclusive(node, kSlotAndHere) && node->storage_offset() == 0;
    if (!is_ours || node->shape() != value.shape || node->dtype() != value.dtype) continue;
    bound.results[static_cast<std::size_t>(value.result)] = node->storage();
  }
  bound.scalars = scalars;
  std::vector<graph::RandomKey> keys;
  for (std::uint64_t i = 0; i < draws; ++i) keys.push_back(next_random_key());
  for (const auto& [index, origin] : changing) {
    const graph::Node& node = *step.scalars[index];
    if (origin.source == NumberSource::kDraw) {
      const auto word = static_cast<std::size_t>(origin.index);
      bound.scalars[index] =
          graph::scalar_bits(node, static_cast<std::int32_t>(keys[word / 2].words[word % 2]));
    } else {
      bound.scalars[index] =
          graph::scalar_bits(node, numbers[static_cast<std::size_t>(origin.index)]);
    }
  }
  return bound;
}

NodePtr Replay::leaf_of(const FinalValue& value, const Found& found,
                        const dispatch::StepBindings& bound) const {
  StoragePtr storage;
  std::int64_t offset = value.offset;
  if (value.result >= 0) {
    storage = bound.results[static_cast<std::size_t>(value.result)];
    offset += bound.offsets[static_cast<std::size_t>(value.result)];
  } else {
    const NodePtr& owner =
        value.constant ? value.constant : found.nodes[static_cast<std::size_t>(value.source)];
    storage = owner->storage();
    if (!value.constant) offset += owner->storage_offset();
  }
  std::uint32_t flags = value.is_leaf ? kLeafFlags : 0;
  if (value.is_weak) flags |= graph::kFlagWeak;
  return graph::make_leaf(std::move(storage), offset, value.shape, value.dtype, flags);
}

void Replay::publish(const Found& found, const dispatch::StepBindings& bound) {
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const Source& source = sources[i];
    if (source.final_value < 0) continue;
    Slot& slot = *found.slots[i];
    if (source.stays_in_place) {
      slot.mark_changed();
      continue;
    }
    NodePtr leaf = leaf_of(values[static_cast<std::size_t>(source.final_value)], found, bound);
    if (source.kind.is_leaf) leaf->set_sink(slot.gradient());
    slot.show(std::move(leaf));
  }
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const Gradient& gradient = gradients[i];
    if (!gradient.changes) continue;
    if (gradient.final_value < 0) {
      found.gradients[i]->set(nullptr);
      continue;
    }
    const FinalValue& value = values[static_cast<std::size_t>(gradient.final_value)];
    const std::shared_ptr<Slot>& old = found.gradient_slots[i];
    if (gradient.is_renewed && old &&
        old->node()->storage() == bound.results[static_cast<std::size_t>(value.result)]) {
      old->mark_changed();
      continue;
    }
    found.gradients[i]->set(make_slot(leaf_of(value, found, bound)));
  }
  for (std::size_t i = 0; i < adopted.size(); ++i) {
    adopted[i]->substitute(
        leaf_of(values[static_cast<std::size_t>(adopted_values[i])], found, bound));
  }
  adopted.clear();
}

std::vector<Tensor> Replay::results(const Found& found, const dispatch::StepBindings& bound) {
  std::vector<Tensor> made;
  made.reserve(outputs.size());
  for (const Output& output : outputs) {
    if (output.same_as >= 0) {
      made.push_back(made[static_cast<std::size_t>(output.same_as)]);
    } else if (output.source >= 0) {
      made.emplace_back(found.slots[static_cast<std::size_t>(output.source)]);
    } else if (output.gradient >= 0) {
      made.emplace_back(found.gradients[static_cast<std::size_t>(output.gradient)]->current());
    } else {
      const FinalValue& value = values[static_cast<std::size_t>(output.value)];
      made.emplace_back(Value(leaf_of(value, found, bound)));
    }
  }
  return made;
}

std::optional<std::vector<Tensor>> Replay::run(std::span<const Tensor> arguments,
                                               std::span<const Number> numbers) {
  // A step without kernels has no device: it only hands tensors on.
  std::optional<dispatch::GraphLock> lock;
  if (step.plan) lock.emplace(step.device);
  Found found;
  if (!look_up(arguments, found).empty()) return std::nullopt;
  make_ready(found);
  dispatch::StepBindings bound = bind(found, numbers);
  if (step.plan) dispatch::run(step, bound);
  publish(found, bound);
  return results(found, bound);
}

/// Builds a replay from what a recorder watched.
class Summary {
 public:
  Summary(CallRecorder& recorder, std::span<const Tensor> results, std::span<const Tensor> adopted)
      : recorder_(recorder), results_(results), adopted_(adopted) {}

  std::shared_ptr<Replay> make() {
    check_results();
    check_leaves();
    look_at_what_stays();
    compute_what_stays();
    describe_sources();
    describe_gradients();
    describe_outputs();
    replay_->draws = recorder_.draws();
    replay_->step = recorder_.recording().finish(kept_, renewed_);
    number_results();
    find_inputs();
    describe_scalars();
    return replay_;
  }

 private:
  void check_results() const {
    for (const Tensor& result : results_) {
      const Value value = result.value();
      if (!value->requires_grad() || value->is_gradient_stop() || value->is_released()) continue;
      throw AutogradError(fmt::format(
          "[jit] a result of shape {} has a recorded gradient ({}), which a replay cannot give. "
          "Call "
          "backward() inside the recorded function, return detach() of it, or call under no_grad",
          value.shape().to_string(), value->op().name));
    }
  }

  void check_leaves() const {
    for (const CallRecorder::CapturedSlot& captured : recorder_.slots()) {
      if (captured.slot->gradient() == captured.gradient) continue;
      throw ArgumentError(
          "[jit] the function changes whether a tensor that was there before requires a gradient "
          "(requires_grad_(), setting data), which a replay cannot. Do it outside");
    }
  }

  static bool has_changed(const CallRecorder::CapturedSlot& captured) {
    // A view is taken again from its base, which was captured too.
    return !captured.slot->is_view() && captured.slot->changes() != captured.changes;
  }

  /// Once: other threads may change a captured tensor meanwhile.
  void look_at_what_stays() {
    for (const Tensor& result : results_) result_nodes_.push_back(result.value().node());
    for (const Tensor& tensor : adopted_) adopted_nodes_.push_back(tensor.value().node());
    // Showing a value may capture more.
    const auto& slots = recorder_.slots();
    const auto& gradients = recorder_.gradients();
    while (changed_nodes_.size() < slots.size() || gradients_now_.size() < gradients.size()) {
      if (changed_nodes_.size() < slots.size()) {
        const CallRecorder::CapturedSlot captured = slots[changed_nodes_.size()];
        changed_nodes_.push_back(has_changed(captured) ? captured.slot->node() : nullptr);
      } else {
        std::shared_ptr<Slot> now = gradients[gradients_now_.size()].gradient->current();
        NodePtr node = now ? now->node() : nullptr;
        gradients_now_.push_back({std::move(now), std::move(node)});
      }
    }
  }

  void compute_what_stays() {
    std::vector<NodePtr> roots;
    const auto add = [&](const NodePtr& node) {
      if (node && !node->is_computed()) roots.push_back(node);
    };
    std::ranges::for_each(result_nodes_, add);
    std::ranges::for_each(adopted_nodes_, add);
    std::ranges::for_each(changed_nodes_, add);
    for (const GradientNow& now : gradients_now_) add(now.node);
    if (!roots.empty()) dispatch::realize(roots, {.keep_for_backward = false});
  }

  int add_value(const NodePtr& node) {
    FinalValue value;
    value.block = recorder_.recording().block_of(*node->storage());
    if (value.block < 0) {
      value.constant = node;
    } else if (recorder_.recording().is_unchanged(value.block)) {
      value.source = source_with(value.block);
    } else {
      kept_.push_back(value.block);
    }
    value.offset = node->storage_offset();
    value.shape = node->shape();
    value.dtype = node->dtype();
    value.is_leaf = node->is_gradient_stop();
    value.is_weak = node->is_weak();
    replay_->values.push_back(std::move(value));
    return static_cast<int>(replay_->values.size()) - 1;
  }

  int source_with(BlockId block) const {
    const auto& slots = recorder_.slots();
    const auto found = std::ranges::find(slots, block, &CallRecorder::CapturedSlot::block);
    return static_cast<int>(found - slots.begin());
  }

  void describe_sources() {
    for (std::size_t i = 0; i < recorder_.slots().size(); ++i) {
      const CallRecorder::CapturedSlot& captured = recorder_.slots()[i];
      Source source{captured.source, signature_of(Value(captured.initial))};
      if (changed_nodes_[i]) {
        source.final_value = add_value(changed_nodes_[i]);
        const FinalValue& value = replay_->values.back();
        source.stays_in_place = value.block == captured.block && value.offset == 0 &&
                                value.shape == source.kind.shape &&
                                value.dtype == source.kind.dtype &&
                                value.is_leaf == source.kind.is_leaf;
      }
      replay_->sources.push_back(std::move(source));
    }
  }

  void describe_gradients() {
    for (std::size_t i = 0; i < recorder_.gradients().size(); ++i) {
      const CallRecorder::CapturedGradient& captured = recorder_.gradients()[i];
      const auto& [now, node] = gradients_now_[i];
      Gradient gradient;
      gradient.where = captured.source;
      gradient.reads = captured.reads;
      gradient.was_there = captured.initial != nullptr;
      gradient.changes = now != captured.initial || !captured.reads;
      if (gradient.changes && now) {
        const auto seen = value_of_slot_.find(now.get());
        gradient.final_value = add_value(node);
        const FinalValue& value = replay_->values.back();
        gradient.is_renewed = !captured.reads && seen == value_of_slot_.end() && value.block >= 0 &&
                              value.source < 0 && value.offset == 0 &&
                              dispatch::owns_block(*node) && !is_given(value.block);
        if (gradient.is_renewed) renewed_.push_back(value.block);
        value_of_slot_[now.get()] = gradient.final_value;
      }
      replay_->gradients.push_back(std::move(gradient));
    }
  }

  bool is_given(BlockId block) const {
    return source_with(block) < static_cast<int>(recorder_.slots().size());
  }

  void describe_outputs() {
    for (std::size_t i = 0; i < results_.size(); ++i) {
      const std::shared_ptr<Slot>& slot = results_[i].slot();
      Output output;
      for (std::size_t k = 0; k < i && output.same_as < 0; ++k) {
        if (results_[k].slot() == slot) output.same_as = static_cast<int>(k);
      }
      const auto& slots = recorder_.slots();
      const auto captured = std::ranges::find(slots, slot, &CallRecorder::CapturedSlot::slot);
      if (captured != slots.end()) output.source = static_cast<int>(captured - slots.begin());
      for (std::size_t k = 0; k < gradients_now_.size(); ++k) {
        if (gradients_now_[k].slot == slot) output.gradient = static_cast<int>(k);
      }
      const bool is_found = output.same_as >= 0 || output.source >= 0 || output.gradient >= 0;
      if (!is_found) output.value = add_value(result_nodes_[i]);
      if (output.value >= 0) replay_->values.back().is_leaf = false;
      replay_->outputs.push_back(output);
    }
    for (std::size_t i = 0; i < adopted_.size(); ++i) {
      replay_->adopted.push_back(adopted_[i].slot());
      replay_->adopted_values.push_back(add_value(adopted_nodes_[i]));
    }
  }

  void number_results() {
    for (FinalValue& value : replay_->values) {
      if (value.block < 0 || value.source >= 0) continue;
      const auto& results = replay_->step.results;
      const auto found = std::ranges::find(results, value.block, &RecordedStep::Result::block);
      value.result = static_cast<int>(found - results.begin());
      // A donated block begins where its tensor does.
      value.offset -= found->offset;
    }
    for (const RecordedStep::Result& result : replay_->step.results) {
      if (!is_given(result.block)) continue;
      Source& source = replay_->sources[static_cast<std::size_t>(source_with(result.block))];
      source.is_overwritten = true;
      // A block that a later failure would need is left alone.
      source.stays_in_place = source.stays_in_place && result.donor >= 0;
    }
  }

  void find_inputs() {
    for (const RecordedStep::Input& input : replay_->step.inputs) {
      replay_->source_of_input.push_back(input.block < 0 ? -1 : source_with(input.block));
    }
  }

  void describe_scalars() {
    const auto& scalars = replay_->step.scalars;
    for (std::size_t i = 0; i < scalars.size(); ++i) {
      const NumberOrigin origin = graph::origin_of(*scalars[i]);
      if (origin.source == NumberSource::kConverted) {
        throw ArgumentError(
            "[jit] a number that changes from call to call was converted to a dtype that does not "
            "hold it. Pass it as a tensor");
      }
      replay_->scalars.push_back(graph::scalar_bits(*scalars[i]));
      // A draw that was noted before the recording is repeated by each replay.
      const bool is_constant = origin.source == NumberSource::kConstant ||
                               (origin.source == NumberSource::kDraw &&
                                static_cast<std::uint64_t>(origin.index) / 2 >= replay_->draws);
      if (!is_constant) replay_->changing.emplace_back(i, origin);
    }
  }

  CallRecorder& recorder_;
  std::span<const Tensor> results_;
  std::span<const Tensor> adopted_;
  std::shared_ptr<Replay> replay_ = std::make_shared<Replay>();
  // What results, adopted tensors and captured gradients show in the end, and captured tensors that
  // changed (null: those that did not).
  struct GradientNow {
    std::shared_ptr<Slot> slot;
    NodePtr node;
  };
  std::vector<NodePtr> result_nodes_, adopted_nodes_, changed_nodes_;
  std::vector<GradientNow> gradients_now_;
  std::vector<BlockId> kept_;
  std::vector<BlockId> renewed_;
  std::map<const Slot*, int> value_of_slot_;
};

}  // namespace

std::shared_ptr<RecordedCall> make_recorded_call(CallRecorder& recorder,
                                                 std::span<const Tensor> results,
                                                 std::span<const Tensor> adopted) {
  return Summary(recorder, results, adopted).make();
}

}  // namespace vkml
