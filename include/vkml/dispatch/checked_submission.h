// Submissions that tell which of their checks of indices failed, and writers of blocks that depend
// on some of the checks: what the others found is not the failure of such a block.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "vkml/core/storage.h"

namespace vkml::dispatch {

/// The bit of a site (execution_graph.h) in a set of checks; sites that are 32 apart share one.
constexpr std::uint32_t check_of(int site) { return 1u << (site % 32); }

class CheckedSubmission : public Submission {
 public:
  /// wait(), but throws the failure of these checks alone.
  virtual void wait_for_checks(std::uint32_t checks) = 0;
};

class CheckedBlockWriter final : public Submission {
 public:
  CheckedBlockWriter(std::shared_ptr<CheckedSubmission> whole, std::uint32_t checks)
      : whole_(std::move(whole)), checks_(checks) {}
  void wait() override { whole_->wait_for_checks(checks_); }
  void wait_for_completion() override { whole_->wait_for_completion(); }
  bool may_fail() const override { return whole_->may_fail(); }
  bool is_done() const override { return whole_->is_done(); }
  const std::shared_ptr<CheckedSubmission>& whole() const { return whole_; }

 private:
  std::shared_ptr<CheckedSubmission> whole_;
  std::uint32_t checks_;
};

}  // namespace vkml::dispatch
