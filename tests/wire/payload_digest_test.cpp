#include "wire/payload_digest.hpp"

#include <gtest/gtest.h>

#include <set>

#include "tests/wire/random_bytes.hpp"
#include "wire/bytes.hpp"

namespace cais::wire {
namespace {

PayloadKey random_key(Rng& rng) {
  PayloadKey key;
  for (std::uint32_t& word : key.nh.words) word = static_cast<std::uint32_t>(rng.next());
  key.sip = {rng.next(), rng.next()};
  return key;
}

/// The formula of nh.hpp, as it stands there.
NhHash by_the_formula(std::vector<std::byte> block, const NhKey& key) {
  block.resize((block.size() + nh_stripe_bytes - 1) / nh_stripe_bytes * nh_stripe_bytes);
  NhHash hash{};
  for (std::size_t i = 0; i < block.size() / 4; i += 2) {
    const auto m0 = load_little<std::uint32_t>(&block[4 * i]);
    const auto m1 = load_little<std::uint32_t>(&block[4 * i + 4]);
    const auto product = [&](std::size_t k) {
      const std::uint32_t left = m0 + key.words[k];
      const std::uint32_t right = m1 + key.words[k + 1];
      return std::uint64_t{left} * right;
    };
    hash.first += product(i);
    hash.second += product(i + nh_stripe_bytes / 4);
  }
  return hash;
}

TEST(Nh, IsTheSameOnEveryInstructionSet) {
  Rng rng(1);
  const PayloadKey key = random_key(rng);
  for (std::size_t size = 0; size <= nh_block_bytes; ++size) {
    const auto block = random_bytes(rng, size);
    const NhHash expected = by_the_formula(block, key.nh);
    const auto expect_right = [&, size = size](const NhHash& hash, const char* which) {
      EXPECT_EQ(hash.first, expected.first) << which << " of " << size;
      EXPECT_EQ(hash.second, expected.second) << which << " of " << size;
    };
    expect_right(nh(block, key.nh), "chosen");
    expect_right(kernel::nh_baseline(block.data(), size, key.nh.words.data()), "baseline");
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx2")) {
      expect_right(kernel::nh_avx2(block.data(), size, key.nh.words.data()), "avx2");
    }
    if (__builtin_cpu_supports("avx512f")) {
      expect_right(kernel::nh_avx512(block.data(), size, key.nh.words.data()), "avx512");
    }
#endif
  }
}

TEST(Nh, EachIterationMultipliesEveryWord) {
  Rng rng(2);
  const PayloadKey key = random_key(rng);
  const std::vector<std::byte> zeros(nh_block_bytes);
  const NhHash before = nh(zeros, key.nh);
  for (std::size_t bit = 0; bit < 8 * nh_block_bytes; ++bit) {
    auto block = zeros;
    block[bit / 8] = static_cast<std::byte>(1u << bit % 8);
    EXPECT_NE(nh(block, key.nh).first, before.first) << bit;
    EXPECT_NE(nh(block, key.nh).second, before.second) << bit;
  }
}

TEST(PayloadDigest, TellsLengthsApartAndPiecesNot) {
  Rng rng(3);
  const PayloadKey key = random_key(rng);
  const std::vector<std::byte> zeros(5000);
  std::set<std::uint64_t> seen;
  for (std::size_t size = 0; size <= zeros.size(); ++size) {
    const auto payload = std::span(zeros).first(size);
    EXPECT_TRUE(seen.insert(payload_digest(payload, {}, key)).second) << size;
  }
  const auto bytes = random_bytes(rng, 5000);
  for (int round = 0; round < 500; ++round) {
    const auto payload = std::span(bytes).first(rng.below(bytes.size() + 1));
    const std::size_t cut = rng.below(payload.size() + 1);
    EXPECT_EQ(payload_digest(payload.first(cut), payload.subspan(cut), key),
              payload_digest(payload, {}, key))
        << cut << " of " << payload.size();
  }
}

TEST(PayloadDigest, SeesBlocksThatChangePlaces) {
  Rng rng(4);
  const PayloadKey key = random_key(rng);
  auto payload = random_bytes(rng, 2 * nh_block_bytes);
  const std::uint64_t before = payload_digest(payload, {}, key);
  std::swap_ranges(payload.begin(), payload.begin() + nh_block_bytes,
                   payload.begin() + nh_block_bytes);
  EXPECT_NE(payload_digest(payload, {}, key), before);
}

}  // namespace
}  // namespace cais::wire
