// Writers of the blocks of a plan's results: what a host that observes them hears.
#pragma once

#include <exception>
#include <memory>
#include <utility>

#include "vkml/core/storage.h"

namespace vkml::dispatch {

/// Writer of a donated block, which holds its old value when the submission fails on an index: the
/// failure is reported here only where nobody has seen it yet.
class DonatedBlockWriter final : public Submission {
 public:
  explicit DonatedBlockWriter(std::shared_ptr<Submission> inner) : inner_(std::move(inner)) {}
  void wait() override { inner_->wait_reporting_once(); }
  void wait_reporting_once() override { inner_->wait_reporting_once(); }
  void wait_for_completion() override { inner_->wait_for_completion(); }
  bool may_fail() const override { return false; }
  bool is_done() const override { return inner_->is_done(); }

 private:
  std::shared_ptr<Submission> inner_;
};

/// Writer of a block whose value depends on no index: it is right even where the submission fails
/// on one.
class UncheckedBlockWriter final : public Submission {
 public:
  explicit UncheckedBlockWriter(std::shared_ptr<Submission> inner) : inner_(std::move(inner)) {}
  void wait() override { inner_->wait_for_completion(); }
  void wait_for_completion() override { inner_->wait_for_completion(); }
  bool may_fail() const override { return false; }
  bool is_done() const override { return inner_->is_done(); }

 private:
  std::shared_ptr<Submission> inner_;
};

/// Writer of a block that a plan was overwriting when it failed.
class FailedWriter final : public Submission {
 public:
  // NOLINTNEXTLINE(bugprone-throw-keyword-missing): the cause is kept, and thrown by wait().
  explicit FailedWriter(std::exception_ptr cause) : cause_(std::move(cause)) {}
  void wait() override { std::rethrow_exception(cause_); }
  bool is_done() const override { return true; }

 private:
  std::exception_ptr cause_;
};

}  // namespace vkml::dispatch
