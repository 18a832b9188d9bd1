// Products of a matrix in compressed sparse rows with tall dense matrices.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "lanes.hpp"
#include "pool.hpp"

namespace nonneg {

#if defined(__GNUC__)
#define NONNEG_PREFETCH(address) __builtin_prefetch(address)
#else
#define NONNEG_PREFETCH(address)
#endif

// Entries ahead of its turn at which a row of the dense matrix is fetched.
constexpr std::int64_t csr_ahead = 8;

// The first n of W columns of one row of the product. Entries take turns with two sums, which stay in registers.
template <int W, class T, class I>
inline void csr_row(std::int64_t begin, std::int64_t end, const I* indices, const T* data, const T* B, std::int64_t width,
                    T* out, std::int64_t n) {
  T even[W] = {}, odd[W] = {};
  const auto row = [&](std::int64_t p) {
    NONNEG_PREFETCH(B + static_cast<std::int64_t>(indices[std::min(p + csr_ahead, end - 1)]) * width);
    return B + static_cast<std::int64_t>(indices[p]) * width;
  };
  std::int64_t p = begin;
  for (; p + 1 < end; p += 2) {
    const T *first = row(p), *second = row(p + 1);
    for (int a = 0; a < W; ++a) even[a] += data[p] * first[a];
    for (int a = 0; a < W; ++a) odd[a] += data[p + 1] * second[a];
  }
  if (p < end) {
    const T* last = row(p);
    for (int a = 0; a < W; ++a) even[a] += data[p] * last[a];
  }
  for (std::int64_t a = 0; a < std::min<std::int64_t>(n, W); ++a) out[a] = even[a] + odd[a];
}

// Rows that begin at cache lines and have whole registers, zeros behind their k entries.
template <class T>
class PaddedRows {
 public:
  static constexpr std::int64_t register_size = register_bytes / sizeof(T);

  PaddedRows(const T* B, std::int64_t n, std::int64_t k, int n_threads)
      : width((k + register_size - 1) / register_size * register_size),
        memory_(std::make_unique_for_overwrite<T[]>(n * width + line)) {
    const auto offset = reinterpret_cast<std::uintptr_t>(memory_.get()) / sizeof(T) % line;
    T* to = memory_.get() + (line - offset);
    parallel_for(n, 1024, n_threads, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        std::copy(B + i * k, B + (i + 1) * k, to + i * width);
        std::fill(to + i * width + k, to + (i + 1) * width, T(0));
      }
    });
    rows = to;
  }

  const std::int64_t width;
  const T* rows;

 private:
  static constexpr std::int64_t line = 64 / sizeof(T);
  std::unique_ptr<T[]> memory_;
};

// The rows at which blocks of about equal numbers of entries begin; they follow from the pattern alone.
template <class P>
std::vector<std::int64_t> csr_blocks(const P* indptr, std::int64_t n_rows, std::int64_t n_blocks) {
  std::vector<std::int64_t> edges{0};
  const auto total = static_cast<std::int64_t>(indptr[n_rows] - indptr[0]) + n_rows;  // an empty row costs, too
  for (std::int64_t block = 1; block < n_blocks; ++block) {
    std::int64_t low = edges.back(), high = n_rows;
    while (low < high) {  // the first row that has so much before it
      const std::int64_t middle = (low + high) / 2;
      const auto before = static_cast<std::int64_t>(indptr[middle] - indptr[0]) + middle;
      if (before < total / n_blocks * block) low = middle + 1;
      else high = middle;
    }
    if (low > edges.back()) edges.push_back(low);
  }
  if (n_rows > edges.back()) edges.push_back(n_rows);
  return edges;
}

constexpr std::int64_t csr_n_blocks = 128;

// out (n_rows x k) = CSR matrix times B (n_columns x k).
template <class T, class I, class P>
void csr_times(const P* indptr, const I* indices, const T* data, std::int64_t n_rows, const T* B, std::int64_t n_columns,
               std::int64_t k, T* out, int n_threads) {
  const auto edges = csr_blocks(indptr, n_rows, n_threads > 1 ? csr_n_blocks : 1);
  const PaddedRows<T> padded(B, n_columns, k, n_threads);
  constexpr int R = PaddedRows<T>::register_size;
  Pool::instance().run(static_cast<std::int64_t>(edges.size()) - 1, n_threads, [&](std::int64_t block) {
    for (std::int64_t i = edges[block]; i < edges[block + 1]; ++i) {
      const auto first = static_cast<std::int64_t>(indptr[i]), last = static_cast<std::int64_t>(indptr[i + 1]);
      for (std::int64_t a = 0; a < k;) {
        // Four registers at a time, then two, then one.
        const std::int64_t left = padded.width - a;
        const auto part = left >= 4 * R ? csr_row<4 * R, T, I> : left >= 2 * R ? csr_row<2 * R, T, I> : csr_row<R, T, I>;
        part(first, last, indices, data, padded.rows + a, padded.width, out + i * k + a, k - a);
        a += left >= 4 * R ? 4 * R : left >= 2 * R ? 2 * R : R;
      }
    }
  });
}

// out[p] = (A B')_ij at the places (i, j) of the pattern; A is n_rows x k, B n_columns x k.
template <class T, class I, class P>
void csr_sampled_product(const P* indptr, const I* indices, std::int64_t n_rows, const T* A, const T* B, std::int64_t k,
                         T* out, int n_threads) {
  const auto edges = csr_blocks(indptr, n_rows, n_threads > 1 ? csr_n_blocks : 1);
  Pool::instance().run(static_cast<std::int64_t>(edges.size()) - 1, n_threads, [&](std::int64_t block) {
    for (std::int64_t i = edges[block]; i < edges[block + 1]; ++i) {
      const T* row = A + i * k;
      for (auto p = static_cast<std::int64_t>(indptr[i]); p < static_cast<std::int64_t>(indptr[i + 1]); ++p) {
        const T* column = B + static_cast<std::int64_t>(indices[p]) * k;
        T total = 0;
        for (std::int64_t a = 0; a < k; ++a) total += row[a] * column[a];
        out[p] = total;
      }
    }
  });
}

}  // namespace nonneg
