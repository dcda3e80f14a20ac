#include "data.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "numeric/half.hpp"

namespace cais::perf {
namespace {

constexpr std::size_t period = 97;

bool is_floating(DType dtype) { return is_half(dtype) || dtype <= DType::float64; }

std::uint64_t element(ReduceOp op, std::size_t i, int rank, int generation) {
  const auto shift =
      static_cast<std::uint64_t>(rank) * 13 + static_cast<std::uint64_t>(generation) * 31;
  const std::uint64_t value = (i * 7 + shift) % period;
  return op == ReduceOp::product ? 1 + value % 2 : value;
}

// The integers are added and multiplied modulo 2^64, of which the narrower types keep a part.
template <typename Number>
Number reduce(ReduceOp op, std::size_t i, int ranks, int generation) {
  Number total = static_cast<Number>(element(op, i, 0, generation));
  for (int rank = 1; rank < ranks; ++rank) {
    const Number value = static_cast<Number>(element(op, i, rank, generation));
    if (op == ReduceOp::min) {
      total = std::min(total, value);
    } else if (op == ReduceOp::max) {
      total = std::max(total, value);
    } else {
      total = op == ReduceOp::product ? total * value : total + value;
    }
  }
  return total;
}

// An average of integers is that of the sum as the type holds it, toward zero.
template <typename Integer>
std::uint64_t average_as(std::uint64_t sum, int ranks) {
  return static_cast<std::uint64_t>(std::int64_t{static_cast<Integer>(sum)} / ranks);
}

std::uint64_t integer_average(DType dtype, std::uint64_t sum, int ranks) {
  if (dtype == DType::int8) return average_as<std::int8_t>(sum, ranks);
  if (dtype == DType::uint8) return average_as<std::uint8_t>(sum, ranks);
  return average_as<std::int64_t>(sum, ranks);  // the wider ones do not wrap with these numbers
}

template <typename T>
void store(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof value);
}

}  // namespace

Pattern::Pattern(DType dtype) : dtype_(dtype), table_(period * size_of(dtype)) {}

void Pattern::put(std::size_t place, double value) {
  std::byte* const to = &table_[place * size_of(dtype_)];
  const auto single = static_cast<float>(value);
  if (dtype_ == DType::float64) store(to, value);
  if (dtype_ == DType::float32) store(to, single);
  if (dtype_ == DType::float16) store(to, numeric::Float16::encode(single));
  if (dtype_ == DType::bfloat16) store(to, numeric::BFloat16::encode(single));
}

void Pattern::put(std::size_t place, std::uint64_t value) {
  std::byte* const to = &table_[place * size_of(dtype_)];
  if (size_of(dtype_) == 1) store(to, static_cast<std::uint8_t>(value));
  if (size_of(dtype_) == 4) store(to, static_cast<std::uint32_t>(value));
  if (size_of(dtype_) == 8) store(to, value);
}

Pattern Pattern::contribution(DType dtype, ReduceOp op, int rank, int generation) {
  Pattern pattern(dtype);
  for (std::size_t i = 0; i < period; ++i) {
    if (is_floating(dtype)) {
      pattern.put(i, static_cast<double>(element(op, i, rank, generation)));
    } else {
      pattern.put(i, element(op, i, rank, generation));
    }
  }
  return pattern;
}

Pattern Pattern::reduced(DType dtype, ReduceOp op, int ranks, int generation) {
  Pattern pattern(dtype);
  for (std::size_t i = 0; i < period; ++i) {
    if (is_floating(dtype)) {
      double total = reduce<double>(op, i, ranks, generation);
      if (op == ReduceOp::avg) {
        total = dtype == DType::float64
                    ? total / ranks
                    : double{static_cast<float>(total) / static_cast<float>(ranks)};
      }
      pattern.put(i, total);
      continue;
    }
    std::uint64_t total = reduce<std::uint64_t>(op, i, ranks, generation);
    if (op == ReduceOp::avg) total = integer_average(dtype, total, ranks);
    pattern.put(i, total);
  }
  return pattern;
}

void Pattern::fill(void* to, std::size_t first, std::size_t count) const {
  const std::size_t width = size_of(dtype_);
  auto* at = static_cast<std::byte*>(to);
  for (std::size_t done = 0; done < count;) {
    const std::size_t place = (first + done) % period;
    const std::size_t run = std::min(period - place, count - done);
    std::memcpy(at + done * width, &table_[place * width], run * width);
    done += run;
  }
}

std::size_t Pattern::wrong(const void* from, std::size_t first, std::size_t count) const {
  const std::size_t width = size_of(dtype_);
  const auto* at = static_cast<const std::byte*>(from);
  std::size_t wrong = 0;
  for (std::size_t done = 0; done < count;) {
    const std::size_t place = (first + done) % period;
    const std::size_t run = std::min(period - place, count - done);
    if (std::memcmp(at + done * width, &table_[place * width], run * width) != 0) {
      for (std::size_t i = 0; i < run; ++i) {
        wrong += std::memcmp(at + (done + i) * width, &table_[(place + i) * width], width) != 0;
      }
    }
    done += run;
  }
  return wrong;
}

}  // namespace cais::perf
