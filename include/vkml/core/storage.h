// A reference-counted block of device memory, and the submission that writes it.
//
// Storage does not know how to allocate or free: its creator hands in the deleter. That inversion
// lets core own the type while a backend supplies the freeing.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "vkml/core/device.h"

namespace vkml {

/// Work handed to a device's queue. Waiting on it is how the host observes what it wrote.
class Submission {
 public:
  virtual ~Submission() = default;
  /// Returns when the work has finished. Throws its failure (IndexError for a bad index,
  /// DeviceError for a lost device), on every call: a value that was never written is never handed
  /// out.
  virtual void wait() = 0;
  /// The same, but a bad index is thrown only where it was not thrown before: for blocks that hold
  /// their old value then.
  virtual void wait_reporting_once() { wait(); }
  /// Returns when the work has finished, whether or not an index was bad. Throws DeviceError.
  virtual void wait_for_completion() { wait(); }
  /// Whether a block that it writes may turn out to hold no value, as far as is known.
  virtual bool may_fail() const { return true; }
  /// Whether wait() would return at once.
  virtual bool is_done() const = 0;
};

class Storage {
 public:
  using Deleter = std::function<void(Storage&)>;

  /// `host` is the block as the host sees it, or null where it cannot; `handle` is the creator's
  /// own name for the block (an address, an index), which core never interprets.
  Storage(Device device, std::size_t bytes, void* host, std::uint64_t handle, Deleter deleter)
      : device_(device),
        bytes_(bytes),
        host_(host),
        handle_(handle),
        deleter_(std::move(deleter)) {}
  ~Storage() {
    if (deleter_) deleter_(*this);
  }
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  Device device() const { return device_; }
  std::size_t bytes() const { return bytes_; }
  void* host() const { return host_; }
  std::uint64_t handle() const { return handle_; }

  /// The submission that writes this block last; null when it holds its value already.
  std::shared_ptr<Submission> writer() const {
    const std::scoped_lock lock(mutex_);
    return writer_;
  }
  void set_writer(std::shared_ptr<Submission> writer) {
    const std::scoped_lock lock(mutex_);
    writer_ = std::move(writer);
  }

  /// Waits for the writer and throws its failure.
  void wait() const {
    if (const std::shared_ptr<Submission> last = writer()) last->wait();
  }

  /// Blocks the planner from writing in place: somebody outside the graph reads these bytes.
  bool is_exported() const { return exported_; }
  void mark_exported() { exported_ = true; }

 private:
  Device device_;
  std::size_t bytes_;
  void* host_;
  std::uint64_t handle_;
  Deleter deleter_;
  mutable std::mutex mutex_;  // of writer_: the host observes while others realise
  std::shared_ptr<Submission> writer_;
  std::atomic<bool> exported_ = false;
};

using StoragePtr = std::shared_ptr<Storage>;

}  // namespace vkml
