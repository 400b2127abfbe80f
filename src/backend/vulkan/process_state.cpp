#include "process_state.h"

#ifndef _WIN32
#include <pthread.h>
#endif

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <vector>

#include "vkml/core/error.h"

namespace vkml::vulkan {

namespace {

enum class State { kUsable, kForked, kExiting };

std::atomic<State> g_state{State::kUsable};

// Never destroyed: the exit handler reads it while other static objects die.
std::vector<ExitHook>& exit_hooks() {
  static auto* hooks = new std::vector<ExitHook>;
  return *hooks;
}

void handle_exit() {
  if (g_state != State::kUsable) return;
  auto& hooks = exit_hooks();
  for (auto hook = hooks.rbegin(); hook != hooks.rend(); ++hook) (*hook)();
  g_state = State::kExiting;
}

}  // namespace

void watch_process() {
  static std::once_flag once;
  std::call_once(once, [] {
#ifndef _WIN32
    pthread_atfork(nullptr, nullptr, [] { g_state = State::kForked; });
#endif
    std::atexit(handle_exit);
  });
}

bool vulkan_is_usable() { return g_state.load(std::memory_order_relaxed) == State::kUsable; }

void require_usable() {
  switch (g_state.load(std::memory_order_relaxed)) {
    case State::kUsable:
      return;
    case State::kForked:
      throw DeviceError(
          "[vulkan] this process was forked from one that had used Vulkan, and drivers do not "
          "survive a fork. Start workers with the \"spawn\" method, or use vkml.cpu here");
    case State::kExiting:
      throw DeviceError("[vulkan] the process is exiting");
  }
}

void run_at_exit(ExitHook hook) { exit_hooks().push_back(hook); }

}  // namespace vkml::vulkan
