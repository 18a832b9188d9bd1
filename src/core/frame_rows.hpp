// Sums over the rows that belong to a frame: counts[i] rows from offsets[i] on.
#pragma once

#include <algorithm>
#include <cstdint>

#include "pool.hpp"

namespace nonneg {

// Frames of a task; they follow from nothing but the shapes.
constexpr std::int64_t frames_of_task = 64;

// out (batch x n_frames x m) = sums of squares over the rows of every frame.
template <class T>
void sums_of_squares(const T* X, std::int64_t batch, std::int64_t n_rows, std::int64_t m, const std::int64_t* offsets,
                     const std::int64_t* counts, std::int64_t n_frames, T* out, int n_threads) {
  parallel_for(batch * n_frames, frames_of_task, n_threads, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t frame = begin; frame < end; ++frame) {
      const std::int64_t i = frame % n_frames;
      const T* row = X + (frame / n_frames * n_rows + offsets[i]) * m;
      T* total = out + frame * m;
      for (std::int64_t a = 0; a < m; ++a) total[a] = row[a] * row[a];
      for (std::int64_t r = 1; r < counts[i]; ++r)
        for (std::int64_t a = 0; a < m; ++a) total[a] += row[r * m + a] * row[r * m + a];
    }
  });
}

}  // namespace nonneg
