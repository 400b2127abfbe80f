#include "vkml/dispatch/device_mutex.h"

#include <atomic>

namespace vkml::dispatch {
namespace {

void just_wait(const std::function<void()>& wait) { wait(); }

std::atomic<BlockingWait> blocking_wait{&just_wait};

}  // namespace

void set_blocking_wait(BlockingWait wait) { blocking_wait.store(wait); }

void DeviceMutex::lock() {
  if (mutex_.try_lock()) return;
  blocking_wait.load()([this] { mutex_.lock(); });
}

}  // namespace vkml::dispatch
