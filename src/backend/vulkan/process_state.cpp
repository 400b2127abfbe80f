#include "process_state.h"

#ifndef _WIN32
#include <pthread.h>
#endif

#include <atomic>
#include <cstdlib>
#include <mutex>

#include "vkml/core/error.h"

namespace vkml::vulkan {

namespace {

enum class State { kUsable, kForked, kExiting };

std::atomic<State> g_state{State::kUsable};

std::atomic<void (*)()> g_exit_hook{nullptr};

void handle_exit() {
  if (g_state != State::kUsable) return;
  if (auto* const hook = g_exit_hook.load()) hook();
  g_state = State::kExiting;
}

}  // namespace

void watch_forks() {
  static std::once_flag once;
  std::call_once(once, [] {
#ifndef _WIN32
    pthread_atfork(nullptr, nullptr, [] { g_state = State::kForked; });
#endif
  });
}

bool vulkan_is_usable() { return g_state.load(std::memory_order_relaxed) == State::kUsable; }

std::optional<std::string> why_unusable() {
  switch (g_state.load(std::memory_order_relaxed)) {
    case State::kForked:
      return "this process was forked from one that had used Vulkan, and drivers do not survive a "
             "fork. Start workers with the \"spawn\" method, or use vkml.cpu here";
    case State::kExiting:
      return "the process is exiting";
    case State::kUsable:
      break;
  }
  return std::nullopt;
}

void require_usable() {
  if (const std::optional<std::string> reason = why_unusable()) {
    throw DeviceError("[vulkan] " + *reason);
  }
}

void settle_at_exit(void (*hook)()) {
  g_exit_hook = hook;
  std::atexit(handle_exit);
}

}  // namespace vkml::vulkan
