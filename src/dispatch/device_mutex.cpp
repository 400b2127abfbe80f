#include "vkml/dispatch/device_mutex.h"

#include <atomic>

namespace vkml::dispatch {
namespace {

void just_call(const std::function<void()>& work) { work(); }

std::atomic<LongWorkRunner> long_work_runner{&just_call};

}  // namespace

void set_long_work_runner(LongWorkRunner runner) { long_work_runner.store(runner); }

void run_long(const std::function<void()>& work) { long_work_runner.load()(work); }

void DeviceMutex::lock() {
  if (mutex_.try_lock()) return;
  run_long([this] { mutex_.lock(); });
}

}  // namespace vkml::dispatch
