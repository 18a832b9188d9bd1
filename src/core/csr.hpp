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

// Edges of ranges of rows with about equal numbers of entries.
template <class P>
std::vector<std::int64_t> csr_edges(const P* indptr, std::int64_t n_rows, int n_threads) {
  const std::int64_t n_blocks = n_threads > 1 ? 128 : 1;
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

// Call task(begin, end) for these ranges.
template <class P, class Task>
void for_csr_rows(const P* indptr, std::int64_t n_rows, int n_threads, const Task& task) {
  const std::vector<std::int64_t> edges = csr_edges(indptr, n_rows, n_threads);
  Pool::instance().run(static_cast<std::int64_t>(edges.size()) - 1, n_threads,
                       [&](std::int64_t block) { task(edges[block], edges[block + 1]); });
}

// out (n_rows x k) = CSR matrix times B (n_columns x k).
template <class T, class I, class P>
void csr_times(const P* indptr, const I* indices, const T* data, std::int64_t n_rows, const T* B, std::int64_t n_columns,
               std::int64_t k, T* out, int n_threads) {
  // Rows of B that begin at cache lines and are whole registers, zeros behind their k entries.
  constexpr std::int64_t R = register_bytes / sizeof(T), line = 64 / sizeof(T);
  const std::int64_t width = (k + R - 1) / R * R;
  const auto memory = std::make_unique_for_overwrite<T[]>(n_columns * width + line);
  T* padded = memory.get() + (line - reinterpret_cast<std::uintptr_t>(memory.get()) / sizeof(T) % line);
  parallel_for(n_columns, 1024, n_threads, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) std::fill_n(std::copy_n(B + i * k, k, padded + i * width), width - k, T(0));
  });
  for_csr_rows(indptr, n_rows, n_threads, [&](std::int64_t begin, std::int64_t end) {
    // Four registers at a time, then two, then one.
    for (std::int64_t i = begin; i < end; ++i)
      for (std::int64_t a = 0, size = 0; a < k; a += size) {
        const std::int64_t rest = width - a;
        size = rest >= 4 * R ? 4 * R : rest >= 2 * R ? 2 * R : R;
        const auto part = size == 4 * R ? csr_row<4 * R, T, I> : size == 2 * R ? csr_row<2 * R, T, I> : csr_row<R, T, I>;
        part(indptr[i], indptr[i + 1], indices, data, padded + a, width, out + i * k + a, k - a);
      }
  });
}

// out[p] = (A B')_ij at the places (i, j) of the pattern; A is n_rows x k, B n_columns x k.
template <class T, class I, class P>
void csr_sampled_product(const P* indptr, const I* indices, std::int64_t n_rows, const T* A, const T* B, std::int64_t k,
                         T* out, int n_threads) {
  for_csr_rows(indptr, n_rows, n_threads, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      for (std::int64_t p = indptr[i]; p < indptr[i + 1]; ++p) {
        const T *row = A + i * k, *column = B + static_cast<std::int64_t>(indices[p]) * k;
        T total = 0;
        for (std::int64_t a = 0; a < k; ++a) total += row[a] * column[a];
        out[p] = total;
      }
  });
}

}  // namespace nonneg
