#include "schedule.h"

#include <algorithm>
#include <utility>

#include "vkml/dispatch/exclusive.h"
#include "vkml/dispatch/recording.h"
#include "vkml/ops/elementwise.h"
#include "vkml/ops/gradient_reads.h"

namespace vkml::dispatch {
namespace {

using graph::Family;
using graph::Node;
using graph::NodePtr;

bool is_available(const Node& node) {
  return node.is_computed() || (node.is_view() && node.view_src()->is_computed());
}

/// Whether the old value's block could be the new one's: if nobody else is found to read it.
bool may_donate(const Node& assignment) {
  const NodePtr& old = assignment.source(0);
  if (!old->is_computed() || old->is_view()) return false;
  const StoragePtr& storage = old->storage();
  // What was made from host memory while a step is recorded is the same in every later run.
  const Recording* recording = Recording::current();
  if (recording != nullptr && recording->block_of(*storage) < 0) return false;
  if (!owns_block(*old)) return false;
  // What a failure leaves alone has to be a value.
  const std::shared_ptr<Submission> writer = storage->writer();
  return !writer || !writer->may_fail();
}

/// Sources that forward evaluation needs: of a custom gradient's alias, the first; of an assignment
/// the old value for its block alone.
std::span<const NodePtr> forward_sources(const Node& node) {
  const auto sources = node.sources();
  if (node.family() == Family::kCustom) return sources.first(1);
  if (node.family() == Family::kAssign && !may_donate(node)) return sources.last(1);
  return sources;
}

Role role_of(const Node& node) {
  if (is_available(node)) return Role::kInput;
  if (node.family() == Family::kScalar) return Role::kScalar;
  return node.is_view() ? Role::kAlias : Role::kCompute;
}

bool is_random(const Node& node) {
  return node.family() == Family::kElementwise &&
         ops::row_of(node.op()).rule == ops::DTypeRule::kRandom;
}

/// Structural results are dear, and so are random bits, best kept as what was made of them: a
/// dropout mask has a byte an element. Other elementwise results are recomputed.
bool worth_keeping(const Node& node) {
  switch (node.family()) {
    case Family::kElementwise:
      return is_random(node) || std::ranges::any_of(node.sources(), [](const NodePtr& source) {
               return is_random(*source);
             });
    case Family::kReduce:
    case Family::kCore:
    case Family::kConcat:
    case Family::kViewUpdate:
      return true;
    default:
      return false;
  }
}

void number_storage_classes(Schedule& schedule) {
  std::vector<std::pair<const Storage*, int>> blocks;
  for (int i = 0; i < schedule.size(); ++i) {
    if (schedule[i].role != Role::kInput) continue;
    const Node& node = *schedule[i].node;
    blocks.emplace_back((node.is_computed() ? node : *node.view_src()).storage().get(), i);
  }
  std::ranges::sort(blocks);
  for (std::size_t k = 0; k < blocks.size(); ++k) {
    const bool repeated = k > 0 && blocks[k].first == blocks[k - 1].first;
    schedule[blocks[k].second].storage_class =
        repeated ? schedule[blocks[k - 1].second].storage_class : blocks[k].second;
  }
}

bool schedules_old_value(const Step& step) {
  return step.role == Role::kCompute && step.node->family() == Family::kAssign &&
         step.source_count == 2;
}

/// How often the nodes of the schedule refer to each of it.
std::vector<long> count_references(const Schedule& schedule) {
  std::vector<long> references(schedule.steps.size());
  const auto count = [&](const NodePtr& held) {
    const int position = schedule.index.find(held.get());
    if (position >= 0) ++references[static_cast<std::size_t>(position)];
  };
  for (const Step& step : schedule.steps) {
    if (step.node->is_computed()) continue;
    for (const NodePtr& source : step.node->sources()) count(source);
    if (step.node->is_view()) count(step.node->view_src());
  }
  return references;
}

/// By position: whether a node that still has its sources when the graph has run, and that somebody
/// may use then, refers to the value. A kept node gives up its sources unless gradients need them;
/// one that is not kept has them until it goes, and does not go while something else refers to it.
std::vector<bool> find_outlived(const Schedule& schedule, const std::vector<long>& references) {
  std::vector<bool> outlived(schedule.steps.size());
  const auto mark = [&](const NodePtr& held) {
    const int position = schedule.index.find(held.get());
    if (position >= 0) outlived[static_cast<std::size_t>(position)] = true;
  };
  for (int i = schedule.size(); i-- > 0;) {
    const auto at = static_cast<std::size_t>(i);
    const Step& step = schedule[i];
    const Node& node = *step.node;
    if (node.is_computed()) continue;
    // A leaf gives up its sources once it is computed: no gradient passes through it.
    const bool stays = step.kept
                           ? node.requires_grad() && !node.is_gradient_stop()
                           : outlived[at] || node.weak_from_this().use_count() > references[at];
    if (!stays) continue;
    for (const NodePtr& source : node.sources()) mark(source);
    if (node.is_view()) mark(node.view_src());
  }
  return outlived;
}

/// An assignment may overwrite the old block when, once this graph has run, nobody can read the old
/// value: its storage belongs to one node alone, and every reference to that node comes from nodes
/// of this graph that will have given up their sources.
void find_donations(Schedule& schedule) {
  if (std::ranges::none_of(schedule.steps, schedules_old_value)) return;
  const std::vector<long> references = count_references(schedule);
  std::vector<bool> outlived = find_outlived(schedule, references);
  for (Step& step : schedule.steps) {
    if (!schedules_old_value(step)) continue;
    const NodePtr& old = step.node->source(0);
    const auto position = static_cast<std::size_t>(schedule.index.find(old.get()));
    step.donates = !outlived[position] && is_exclusive(old, references[position]);
    // One block, one new value.
    outlived[position] = outlived[position] || step.donates;
    if (step.donates) continue;
    ++step.first_source;
    --step.source_count;
  }
}

/// Marks what the gradient rule of one step reads.
void mark_gradient_reads(const Schedule& schedule, const Node& node, int position,
                         std::vector<bool>& read) {
  const graph::GradientReads reads = node.gradient_function() != nullptr
                                         ? graph::GradientReads::everything()
                                         : ops::gradient_reads(node.op());
  if (reads.output) read[static_cast<std::size_t>(position)] = true;
  const auto sources = node.sources();
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const int found = reads.operand(i) ? schedule.index.find(sources[i].get()) : -1;
    if (found >= 0) read[static_cast<std::size_t>(found)] = true;
  }
}

/// Keeps what a later backward pass reads: dear results, and cheap ones that get memory anyway
/// because a core reads them. The other cheap ones will be computed again, from their own sources.
void keep_what_gradients_read(Schedule& schedule) {
  std::vector<bool> read(schedule.steps.size());
  std::vector<bool> stored(schedule.steps.size());
  for (int i = 0; i < schedule.size(); ++i) {
    const Step& step = schedule[i];
    if (step.role != Role::kCompute && step.role != Role::kAlias) continue;
    const Node& node = *step.node;
    if (node.requires_grad() && !node.is_gradient_stop())
      mark_gradient_reads(schedule, node, i, read);
    if (node.family() != Family::kCore) continue;
    for (const int source : schedule.sources_of(i)) {
      const Node& value = *schedule[source].node;
      const Node* root = value.is_view() ? value.view_src().get() : &value;
      const int position = schedule.index.find(root);
      if (position >= 0) stored[static_cast<std::size_t>(position)] = true;
    }
  }
  for (int i = schedule.size(); i-- > 0;) {
    const auto at = static_cast<std::size_t>(i);
    Step& step = schedule[i];
    if (!read[at] || (step.role != Role::kCompute && step.role != Role::kAlias)) continue;
    const bool keeps = step.role == Role::kCompute && (worth_keeping(*step.node) || stored[at]);
    step.kept = step.kept || keeps;
    if (step.kept) continue;
    for (const int source : schedule.sources_of(i)) read[static_cast<std::size_t>(source)] = true;
  }
}

}  // namespace

Schedule make_schedule(std::span<const NodePtr> roots, bool keep_for_backward) {
  constexpr int kOpen = -2;
  Schedule schedule;
  struct Frame {
    Node* node;
    Role role;
    std::span<const NodePtr> sources;
    std::uint32_t next;
  };
  std::vector<Frame> stack;
  const auto visit = [&](Node* node) {
    if (schedule.index.find(node) != -1) return;
    schedule.index.insert(node, kOpen);
    const Role role = role_of(*node);
    const bool is_recorded = role == Role::kCompute || role == Role::kAlias;
    stack.push_back(
        {node, role, is_recorded ? forward_sources(*node) : std::span<const NodePtr>(), 0});
  };
  for (const NodePtr& root : roots) {
    visit(root.get());
    while (!stack.empty()) {
      Frame& frame = stack.back();
      if (frame.next < frame.sources.size()) {
        visit(frame.sources[frame.next++].get());
        continue;
      }
      Step step;
      step.node = frame.node;
      step.role = frame.role;
      step.first_source = static_cast<int>(schedule.sources.size());
      step.source_count = static_cast<int>(frame.sources.size());
      for (const NodePtr& source : frame.sources) {
        schedule.sources.push_back(schedule.index.find(source.get()));
      }
      step.kept = step.role != Role::kInput && frame.node->has_slot();
      schedule.index.update(frame.node, schedule.size());
      schedule.steps.push_back(step);
      stack.pop_back();
    }
    Step& step = schedule[schedule.index.find(root.get())];
    if (step.role != Role::kInput) step.kept = true;
  }
  if (keep_for_backward) keep_what_gradients_read(schedule);
  // A kept view keeps its root.
  for (int i = 0; i < schedule.size(); ++i) {
    const Step& step = schedule[i];
    if (step.role == Role::kAlias && step.kept) {
      schedule[schedule.index.find(step.node->view_src().get())].kept = true;
    }
  }
  number_storage_classes(schedule);
  find_donations(schedule);
  return schedule;
}

}  // namespace vkml::dispatch
