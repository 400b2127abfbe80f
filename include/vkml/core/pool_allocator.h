// Memory for what is made and dropped all the time, nodes and slots: a free list for each thread
// and type, so that recording an operator takes no lock and rarely asks the system for memory.
#pragma once

#include <cstddef>
#include <new>
#include <vector>

namespace vkml {

/// A standard allocator whose single-object blocks come from this thread's free list.
template <typename T>
class PoolAllocator {
 public:
  using value_type = T;
  PoolAllocator() = default;
  template <typename U>
  PoolAllocator(const PoolAllocator<U>&) {}  // NOLINT(google-explicit-constructor)

  T* allocate(std::size_t count) {
    if (count == 1) {
      FreeList* list = this_thread();
      if (list != nullptr && !list->blocks.empty()) {
        void* block = list->blocks.back();
        list->blocks.pop_back();
        return static_cast<T*>(block);
      }
    }
    return static_cast<T*>(::operator new (count * sizeof(T), std::align_val_t{alignof(T)}));
  }
  void deallocate(T* block, std::size_t count) {
    if (count == 1) {
      FreeList* list = this_thread();
      if (list != nullptr && list->blocks.size() < kKept) {
        list->blocks.push_back(block);
        return;
      }
    }
    ::operator delete (block, std::align_val_t{alignof(T)});
  }
  template <typename U>
  bool operator==(const PoolAllocator<U>&) const {
    return true;
  }

 private:
  static constexpr std::size_t kKept = 8192;
  struct FreeList {
    FreeList() { blocks.reserve(kKept); }
    ~FreeList() {
      for (void* block : blocks) ::operator delete (block, std::align_val_t{alignof(T)});
    }
    std::vector<void*> blocks;
  };
  /// Null once the thread is being torn down: nodes may outlive their thread's list.
  static FreeList* this_thread() {
    thread_local bool gone = false;
    struct Guard {
      FreeList list;
      bool* flag;
      explicit Guard(bool* f) : flag(f) {}
      ~Guard() { *flag = true; }
    };
    if (gone) return nullptr;
    thread_local Guard guard(&gone);
    return &guard.list;
  }
};

}  // namespace vkml
