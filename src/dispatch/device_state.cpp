#include "device_state.h"

#include <pthread.h>

#include <map>
#include <mutex>
#include <new>

namespace vkml::dispatch {
namespace {

struct States {
  std::mutex mutex;
  std::map<int, DeviceState> by_device;  // by key_of()
};

/// A child of fork() has one thread, so a lock that another one held would never be released: the
/// fork waits for all of them.
void lock_for_fork();
void unlock_in_parent();
void unlock_in_child();

States& states() {
  static auto* all = [] {
    pthread_atfork(&lock_for_fork, &unlock_in_parent, &unlock_in_child);
    return new States;
  }();
  return *all;
}

void lock_for_fork() {
  states().mutex.lock();
  for (auto& [device, state] : states().by_device) state.mutex.lock();
}

void unlock_in_parent() {
  for (auto& [device, state] : states().by_device) state.mutex.unlock();
  states().mutex.unlock();
}

void unlock_in_child() {
  // A recursive mutex knows its owner by the kernel's number, and the child's thread has another
  // one: it cannot unlock what it holds.
  for (auto& [device, state] : states().by_device) new (&state.mutex) DeviceMutex;
  states().mutex.unlock();
}

}  // namespace

DeviceState& state_of(Device device) {
  States& all = states();
  const std::scoped_lock lock(all.mutex);
  return all.by_device[key_of(device)];
}

GraphLock::GraphLock(Device device) {
  States& all = states();
  state_of(device);
  std::vector<DeviceState*> found;
  {
    const std::scoped_lock lock(all.mutex);
    for (auto& [key, state] : all.by_device) found.push_back(&state);
  }
  // Always in the same order, so that two threads cannot wait for each other.
  for (DeviceState* state : found) locks_.emplace_back(state->mutex);
}

CacheStatistics cache_statistics(Device device) {
  DeviceState& state = state_of(device);
  const std::scoped_lock lock(state.mutex);
  CacheStatistics statistics = state.statistics;
  statistics.plans = state.cache.size();
  return statistics;
}

void clear_cache(Device device) {
  DeviceState& state = state_of(device);
  const std::scoped_lock lock(state.mutex);
  state.cache.clear();
}

}  // namespace vkml::dispatch
