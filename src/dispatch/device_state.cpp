#include "device_state.h"

#include <pthread.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <new>

namespace vkml::dispatch {
namespace {

/// The states, in the order they were made, which is the order in which several are locked. Read
/// without a lock, since who looks one up may hold another one's; nothing is ever removed.
struct Entry {
  Device device;
  DeviceState state;
  std::atomic<Entry*> next{nullptr};
};

struct States {
  std::atomic<Entry*> first{nullptr};
  std::mutex making;  // taken after devices' locks, and held for an allocation at most
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

template <typename Visit>
void for_each_state(Visit visit) {
  for (Entry* entry = states().first.load(std::memory_order_acquire); entry != nullptr;
       entry = entry->next.load(std::memory_order_acquire)) {
    visit(*entry);
  }
}

void lock_for_fork() {
  States& all = states();
  std::atomic<Entry*>* link = &all.first;
  for (;;) {
    while (Entry* entry = link->load(std::memory_order_acquire)) {
      entry->state.mutex.lock();
      link = &entry->next;
    }
    all.making.lock();
    if (link->load(std::memory_order_acquire) == nullptr) return;
    all.making.unlock();  // one more has been made
  }
}

void unlock_in_parent() {
  for_each_state([](Entry& entry) { entry.state.mutex.unlock(); });
  states().making.unlock();
}

void unlock_in_child() {
  // A recursive mutex knows its owner by the kernel's number, and the child's thread has another
  // one: it cannot unlock what it holds.
  for_each_state([](Entry& entry) { new (&entry.state.mutex) DeviceMutex; });
  states().making.unlock();
}

}  // namespace

DeviceState& state_of(Device device) {
  States& all = states();
  const auto find = [&](std::atomic<Entry*>*& link) -> Entry* {
    while (Entry* entry = link->load(std::memory_order_acquire)) {
      if (entry->device == device) return entry;
      link = &entry->next;
    }
    return nullptr;
  };
  std::atomic<Entry*>* link = &all.first;
  if (Entry* const found = find(link)) return found->state;
  auto made = std::make_unique<Entry>();
  made->device = device;
  const std::scoped_lock lock(all.making);
  if (Entry* const found = find(link)) return found->state;
  link->store(made.get(), std::memory_order_release);
  return made.release()->state;
}

GraphLock::GraphLock(Device device) {
  state_of(device);
  for_each_state([this](Entry& entry) { locks_.emplace_back(entry.state.mutex); });
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
