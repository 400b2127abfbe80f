// Joins the plans of a recorded step's parts into one. Pure.
//
// A block is one buffer of the joined plan: parts that read a block which an earlier part wrote
// read that buffer, and an assignment that a part writes over a block is written to the same
// buffer.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "vkml/dispatch/execution_graph.h"
#include "vkml/dispatch/recording.h"

namespace vkml::dispatch {

/// A part of a step: an ExecutionGraph before its memory is planned, and what it is bound to.
struct RecordedPart {
  ExecutionGraph graph;
  std::vector<RecordedStep::Input> inputs;
  std::vector<RecordedStep::Result> results;  // donors are inputs of this part
  std::vector<int> result_nodes;              // positions in graph.nodes
  std::vector<graph::NodePtr> scalars;
};

struct JoinedParts {
  ExecutionGraph graph;
  std::vector<RecordedStep::Input> inputs;
  std::vector<RecordedStep::Result> results;
};

/// `kept` and `renewed` as in Recording::finish().
JoinedParts join(std::vector<RecordedPart> parts, std::span<const BlockId> kept,
                 std::span<const BlockId> renewed);

}  // namespace vkml::dispatch
