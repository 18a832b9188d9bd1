// Scan of a self-dictionary problem: which point has the lowest score for every residual, and by how much?
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>

#include "blas.hpp"
#include "pool.hpp"

namespace nonneg {

// index[j], lowest[j] = the point of the lowest score x_n'r_j + extra_nj and that score, next[j] = the second lowest one.
// Column j has extra scores at `listed[starts[j]:starts[j + 1]]`. Scores exist a tile at a time.
inline void lowest_scores(const float* points, std::int64_t n_points, const float* residuals, std::int64_t n_columns,
                          std::int64_t m, const std::int64_t* starts, const std::int64_t* listed, const float* extra,
                          std::int64_t* index, float* lowest, float* next, int n_threads) {
  // 384 kB stay in the second cache of a core until they are compared; products of narrower tiles are slower.
  constexpr std::int64_t most_columns = 192, most_points = 512;
  parallel_for(n_columns, most_columns, n_threads, [&](std::int64_t begin, std::int64_t end) {
    const auto scores = std::make_unique_for_overwrite<float[]>(most_points * most_columns);
    const std::int64_t width = end - begin;
    float first[most_columns], second[most_columns];
    std::int32_t at[most_columns];
    std::fill(first, first + width, std::numeric_limits<float>::infinity());
    std::fill(second, second + width, std::numeric_limits<float>::infinity());
    for (std::int64_t start = 0; start < n_points; start += most_points) {
      const std::int64_t size = std::min(most_points, n_points - start);
      gemm(Order::plain, Order::transposed, size, width, m, points + start * m, m, residuals + begin * m, m, scores.get(),
           width);
      for (std::int64_t j = 0; j < width; ++j)
        for (std::int64_t entry = starts[begin + j]; entry < starts[begin + j + 1]; ++entry)
          if (start <= listed[entry] && listed[entry] < start + size)
            scores[(listed[entry] - start) * width + j] += extra[entry];
      std::fill(at, at + width, -1);
      for (std::int32_t point = 0; point < size; ++point) {
        const float* row = scores.get() + point * width;
        for (std::int64_t j = 0; j < width; ++j) {
          const float larger = row[j] < first[j] ? first[j] : row[j];
          second[j] = larger < second[j] ? larger : second[j];
          at[j] = row[j] < first[j] ? point : at[j];
          first[j] = row[j] < first[j] ? row[j] : first[j];
        }
      }
      for (std::int64_t j = 0; j < width; ++j)
        if (at[j] >= 0) index[begin + j] = start + at[j];
    }
    std::copy(first, first + width, lowest + begin);
    std::copy(second, second + width, next + begin);
  });
}

}  // namespace nonneg
