// No kernel touches a byte outside its tensors: what lies right before and right behind them cannot
// be read or written. (The kernels are too slow to compile with AddressSanitizer.)
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>

#include "base/rng.hpp"
#include "numeric/copy.hpp"
#include "tests/numeric/reductions.hpp"

namespace cais::numeric {
namespace {

constexpr std::size_t page_bytes = 4096;
constexpr std::size_t room_bytes = 4 * page_bytes;

/// Pages between two that nobody may touch.
class Fenced {
 public:
  explicit Fenced(Rng& rng) {
    void* const memory =
        ::mmap(nullptr, room_bytes + 2 * page_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(memory, MAP_FAILED);
    memory_ = static_cast<std::byte*>(memory);
    EXPECT_EQ(::mprotect(memory_ + page_bytes, room_bytes, PROT_READ | PROT_WRITE), 0);
    for (std::size_t i = 0; i < room_bytes; ++i) first()[i] = static_cast<std::byte>(rng.next());
  }
  Fenced(const Fenced&) = delete;
  Fenced& operator=(const Fenced&) = delete;
  ~Fenced() { ::munmap(memory_, room_bytes + 2 * page_bytes); }

  std::byte* first() const { return memory_ + page_bytes; }
  /// `bytes` of it that end at the fence behind, or begin at the one before.
  std::byte* tensor(std::size_t bytes, bool at_end) const {
    return at_end ? first() + room_bytes - bytes : first();
  }

 private:
  std::byte* memory_;
};

// What is running, for the one line that a crash has time for.
char running[256];

void on_fault(int) {
  (void)!::write(STDERR_FILENO, "a fence was touched by: ", 24);
  (void)!::write(STDERR_FILENO, running, std::strlen(running));
  (void)!::write(STDERR_FILENO, "\n", 1);
  ::_exit(1);
}

class FencedMemory : public testing::Test {
 protected:
  void SetUp() override {
    struct sigaction action {};
    action.sa_handler = on_fault;
    ::sigaction(SIGSEGV, &action, &old_segv_);
    ::sigaction(SIGBUS, &action, &old_bus_);
  }
  void TearDown() override {
    ::sigaction(SIGSEGV, &old_segv_, nullptr);
    ::sigaction(SIGBUS, &old_bus_, nullptr);
  }

 private:
  struct sigaction old_segv_ {
  }, old_bus_{};
};

class Fences : public FencedMemory, public testing::WithParamInterface<std::size_t> {};

void note(const Reduction& reduction, std::size_t ranks, std::size_t count, const char* how) {
  const std::string words = name_of(reduction) + " of " + std::to_string(ranks) + " ranks, " +
                            std::to_string(count) + " elements, " + how + ", " + instruction_set();
  words.copy(running, sizeof(running) - 1);
  running[std::min(words.size(), sizeof(running) - 1)] = '\0';
}

/// Odd lengths around those of vectors and of unrolled loops.
constexpr std::size_t counts[] = {1,  2,  3,  5,  7,   9,   15,  17,  31,
                                  33, 63, 65, 97, 127, 129, 255, 257, 1031};

TEST_P(Fences, AreNotTouchedByReductions) {
  const std::size_t ranks = GetParam();
  Rng rng(ranks);
  std::deque<Fenced> tensors;
  for (std::size_t i = 0; i < ranks + 2; ++i) tensors.emplace_back(rng);
  InstructionSets().for_each([&] {
    for (const Reduction& reduction : all_reductions(static_cast<std::uint32_t>(ranks))) {
      const auto reducer = Reducer::find(reduction);
      ASSERT_TRUE(reducer);
      for (const std::size_t count : counts) {
        for (const bool at_end : {true, false}) {
          std::vector<const std::byte*> inputs;
          for (std::size_t rank = 0; rank < ranks; ++rank) {
            inputs.push_back(tensors[rank].tensor(count * size_of(reduction.input), at_end));
          }
          const std::size_t bytes = count * size_of(reduction.output);
          std::byte* const outputs[] = {tensors[ranks].tensor(bytes, at_end),
                                        tensors[ranks + 1].tensor(bytes, !at_end)};
          note(reduction, ranks, count, "cached");
          (*reducer)({outputs, 1}, inputs, count);
          (*reducer)(outputs, inputs, count);
          note(reduction, ranks, count, "streaming");
          reducer->stream({outputs, 1}, inputs, count);
          reducer->stream(outputs, inputs, count);
          if (reduction.input != reduction.output) continue;
          note(reduction, ranks, count, "in place");
          std::byte* const own = tensors[0].tensor(bytes, at_end);
          (*reducer)({&own, 1}, inputs, count);
        }
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, Fences, testing::Values(1, 2, 3, 4, 5, 7, 8, 9, 16));

TEST_F(FencedMemory, IsNotTouchedByCopies) {
  Rng rng(1);
  const Fenced from(rng), to(rng);
  InstructionSets().for_each([&] {
    for (std::size_t bytes = 0; bytes < 700; ++bytes) {
      note({}, 1, bytes, "copy_stream");
      for (const bool from_end : {true, false}) {
        for (const bool to_end : {true, false}) {
          copy_stream(to.tensor(bytes, to_end), from.tensor(bytes, from_end), bytes);
        }
      }
    }
  });
}

TEST_F(FencedMemory, IsFenced) {
  Rng rng(1);
  const Fenced fenced(rng);
  EXPECT_EXIT(
      {
        note({}, 1, 1, "the test");
        *(volatile std::byte*)(fenced.first() + room_bytes) = std::byte{1};
      },
      testing::ExitedWithCode(1), "a fence was touched by: sum float32");
}

}  // namespace
}  // namespace cais::numeric
