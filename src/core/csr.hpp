// Products of a matrix in compressed sparse rows with tall dense matrices.
#pragma once

#include <algorithm>
#include <cstdint>
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

// The part of one row of the product that lies in W columns: sums stay in registers.
template <int W, class T, class I>
inline void csr_row(std::int64_t begin, std::int64_t end, const I* indices, const T* data, const T* B, std::int64_t k,
                    T* out) {
  T sums[W] = {};
  for (std::int64_t p = begin; p < end; ++p) {
    NONNEG_PREFETCH(B + static_cast<std::int64_t>(indices[std::min(p + csr_ahead, end - 1)]) * k);
    const T value = data[p];
    const T* row = B + static_cast<std::int64_t>(indices[p]) * k;
    for (int a = 0; a < W; ++a) sums[a] += value * row[a];
  }
  for (int a = 0; a < W; ++a) out[a] = sums[a];
}

// Rows [begin, end) of the product with B (n_columns x k), W columns at a time; the last ones overlap those before.
template <int W, class T, class I, class P>
void csr_times_rows(const P* indptr, const I* indices, const T* data, const T* B, std::int64_t k, T* out, std::int64_t begin,
                    std::int64_t end) {
  if constexpr (W > 1)
    if (k < W) return csr_times_rows<W / 2>(indptr, indices, data, B, k, out, begin, end);
  for (std::int64_t i = begin; i < end; ++i) {
    const auto first = static_cast<std::int64_t>(indptr[i]), last = static_cast<std::int64_t>(indptr[i + 1]);
    T* row = out + i * k;
    std::int64_t a = 0;
    for (; a + W <= k; a += W) csr_row<W>(first, last, indices, data, B + a, k, row + a);
    if (a < k) csr_row<W>(first, last, indices, data, B + k - W, k, row + k - W);
  }
}

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
void csr_times(const P* indptr, const I* indices, const T* data, std::int64_t n_rows, const T* B, std::int64_t k, T* out,
               int n_threads) {
  const auto edges = csr_blocks(indptr, n_rows, n_threads > 1 ? csr_n_blocks : 1);
  Pool::instance().run(static_cast<std::int64_t>(edges.size()) - 1, n_threads, [&](std::int64_t block) {
    constexpr int widest = 4 * register_bytes / sizeof(T);  // sums of four registers
    csr_times_rows<widest>(indptr, indices, data, B, k, out, edges[block], edges[block + 1]);
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
