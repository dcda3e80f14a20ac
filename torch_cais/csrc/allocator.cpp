#include "allocator.hpp"

#include <c10/core/CPUAllocator.h>

#include <atomic>
#include <mutex>

#include "errors.hpp"
#include "io/shm/arena.hpp"

namespace cais::pytorch {
namespace {

constexpr std::uint8_t above_every_default = 1;  // PyTorch sets its own with priority 0

thread_local int pools_open = 0;

class ArenaAllocator final : public c10::Allocator {
 public:
  ArenaAllocator(io::Arena& arena, std::size_t bytes_min, c10::Allocator& before)
      : arena_(arena), bytes_min_(bytes_min), before_(before) {}

  c10::DataPtr allocate(std::size_t bytes) override {
    const bool serves = pools_open > 0 || whole_process_.load(std::memory_order_relaxed);
    void* memory = serves && bytes >= bytes_min_ ? arena_.allocate(bytes) : nullptr;
    if (memory == nullptr) return before_.allocate(bytes);
    c10::profiledCPUMemoryReporter().New(memory, bytes);
    return {memory, memory, &free_arena, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free_either; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }

  void serve_whole_process(bool on) { whole_process_.store(on, std::memory_order_relaxed); }
  const io::Arena& arena() const { return arena_; }

 private:
  static void free_arena(void* memory);
  static void free_either(void* memory);

  io::Arena& arena_;
  const std::size_t bytes_min_;
  c10::Allocator& before_;
  std::atomic<bool> whole_process_{false};
};

// The process's allocator: PyTorch has one, and so have we.
std::once_flag installing;
ArenaAllocator* installed = nullptr;

void ArenaAllocator::free_arena(void* memory) {
  c10::profiledCPUMemoryReporter().Delete(memory);
  installed->arena_.deallocate(memory);
}

void ArenaAllocator::free_either(void* memory) {
  if (installed->arena_.contains(memory)) {
    free_arena(memory);
  } else {
    installed->before_.raw_deleter()(memory);
  }
}

}  // namespace

void install_allocator(const runtime::Settings& settings) {
  std::call_once(installing, [&] {
    io::Arena* const arena = io::process_arena(settings.arena_bytes_max);
    if (arena == nullptr) {
      throw_error("allocator",
                  Error{ErrorCode::resource_exhausted,
                        "the kernel gives no memory that ranks could share (a memfd of "
                        "CAIS_ARENA_MAX_BYTES); lower that, or unset CAIS_ALLOCATOR"});
    }
    installed = new ArenaAllocator(*arena, settings.allocator_bytes_min, *c10::GetCPUAllocator());
    c10::SetCPUAllocator(installed, above_every_default);
  });
}

void serve_whole_process(bool on) { installed->serve_whole_process(on); }

void enter_pool() { ++pools_open; }
void leave_pool() { --pools_open; }

std::size_t arena_bytes_in_use() {
  return installed == nullptr ? 0 : installed->arena().stats().allocated_bytes;
}

bool in_arena(const void* memory) {
  return installed != nullptr && installed->arena().contains(memory);
}

}  // namespace cais::pytorch
