// Dense products in parts on several threads.
//
// Parts follow from shapes alone and each is one call of BLAS on one thread: no digit depends on the number of
// threads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>

#include "blas.hpp"
#include "pool.hpp"

namespace nonneg {

// C (m x n) = op(A) B in parts of `size` rows of C; of A' A only from the diagonal on, the rest is the same.
template <class T>
void multiply(Order a, const T* A, std::int64_t lda, const T* B, T* C, std::int64_t m, std::int64_t n, std::int64_t p,
              std::int64_t size, int n_threads) {
  const bool symmetric = a == Order::transposed && A == B && m == n && lda == n;
  parallel_for(m, size, n_threads, [&](std::int64_t begin, std::int64_t end) {
    const T* rows = A + begin * (a == Order::plain ? lda : 1);
    const std::int64_t first = symmetric ? begin : 0;
    gemm(a, Order::plain, end - begin, n - first, p, rows, lda, B + first, n, C + begin * n + first, n);
  });
  if (symmetric)
    parallel_for(m, size, n_threads, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i)
        for (std::int64_t j = 0; j < begin; ++j) C[i * n + j] = C[j * n + i];
    });
}

// Entries that are added up at once: sums of sums round less than one long sum.
constexpr std::int64_t sum_block = 1 << 12;

// Sums over parts, which are written first: memory that nobody has cleared, and an addition that threads share.
template <class T>
class Parts {
 public:
  Parts(std::int64_t n_parts, std::int64_t size)
      : n_parts_(n_parts), size_(size), data_(std::make_unique_for_overwrite<T[]>(n_parts * size)) {}
  T* operator[](std::int64_t part) { return data_.get() + part * size_; }

  // out = sum of the parts, in their order.
  void add(T* out, int n_threads) const {
    parallel_for(size_, sum_block, n_threads, [&](std::int64_t begin, std::int64_t end) {
      std::fill(out + begin, out + end, T(0));
      for (std::int64_t part = 0; part < n_parts_; ++part)
        for (std::int64_t i = begin; i < end; ++i) out[i] += data_[part * size_ + i];
    });
  }

 private:
  std::int64_t n_parts_, size_;
  std::unique_ptr<T[]> data_;
};

// C (m x n) = A' B for tall arrays, in parts of `size` of their rows, added in order.
template <class T>
void inner_product(const T* A, const T* B, T* C, std::int64_t n_rows, std::int64_t m, std::int64_t n, std::int64_t size,
                   int n_threads) {
  const std::int64_t n_parts = (n_rows + size - 1) / size;
  Parts<T> parts(n_parts, m * n);
  parallel_for(n_rows, size, n_threads, [&](std::int64_t begin, std::int64_t end) {
    gemm(Order::transposed, Order::plain, m, n, end - begin, A + begin * m, m, B + begin * n, n, parts[begin / size], n);
  });
  parts.add(C, n_threads);
}

}  // namespace nonneg
