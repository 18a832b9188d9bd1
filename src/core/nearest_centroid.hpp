// Largest cosines of rows to centroids, with as few products as their bounds allow.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "data_rows.hpp"
#include "pool.hpp"

namespace nonneg {

// Farthest-first search: which row has the largest gain rate (shift - cosine) once all cosines are exact? A cosine that
// lacks some centroids is a lower bound, its gain an upper one; rows whose gain is below one that was reached wait.
template <class T, class Rows>
struct FarthestRow {
  const Rows& rows;
  const T *inverse_norms, *centroids;
  std::int64_t n_centroids;
  const double* rates;  // null for 1
  double shift;
  double* nearest;
  std::int64_t* n_compared;

  // The largest gain that was reached, and its row; of equal gains the first row wins.
  struct Best {
    double gain = -std::numeric_limits<double>::infinity();
    std::int64_t row = -1;

    bool loses_to(double other, std::int64_t i) const { return other > gain || (other == gain && i < row); }
  };

  double gain(std::int64_t i) const { return (rates ? rates[i] : 1.0) * (shift - nearest[i]); }

  // Raise the cosine of row i by the centroids it was not compared with, until its gain is below that of `best`.
  void compare(std::int64_t i, Best& best) const {
    std::int64_t& j = n_compared[i];
    while (j < n_centroids) {
      const double cosine = rows.dot(i, centroids + j++ * rows.n_columns) * inverse_norms[i];
      if (!(cosine > nearest[i])) continue;
      nearest[i] = cosine;
      if (gain(i) < best.gain) break;
    }
    if (j >= n_centroids && best.loses_to(gain(i), i)) best = {gain(i), i};
  }

  void run(int n_threads) const {
    constexpr std::int64_t block = 1024;
    constexpr std::size_t n_probes = 8;
    const std::int64_t n = rows.n_rows;
    // The row of the largest upper bound in every block; the best of these give a gain to beat.
    std::vector<Best> leads((n + block - 1) / block);
    parallel_for(n, block, n_threads, [&](std::int64_t begin, std::int64_t end) {
      Best& lead = leads[begin / block];
      for (std::int64_t i = begin; i < end; ++i)
        if (gain(i) > lead.gain) lead = {gain(i), i};
    });
    std::erase_if(leads, [](const Best& lead) { return lead.row < 0; });
    const auto probes = leads.begin() + static_cast<std::ptrdiff_t>(std::min(n_probes, leads.size()));
    std::partial_sort(leads.begin(), probes, leads.end(),
                      [](const Best& a, const Best& b) { return b.loses_to(a.gain, a.row); });
    Best first;
    for (auto probe = leads.begin(); probe != probes; ++probe) compare(probe->row, first);
    parallel_for(n, block, n_threads, [&](std::int64_t begin, std::int64_t end) {
      Best best = first;
      for (std::int64_t i = begin; i < end; ++i)
        if (n_compared[i] < n_centroids && best.loses_to(gain(i), i)) compare(i, best);
    });
  }
};

template <class T, class Rows>
void update_cosines(const Rows& rows, const T* inverse_norms, const T* centroids, std::int64_t n_centroids,
                    const double* rates, double shift, double* nearest, std::int64_t* n_compared, int n_threads) {
  const FarthestRow<T, Rows> search{rows, inverse_norms, centroids, n_centroids, rates, shift, nearest, n_compared};
  search.run(n_threads);
}

}  // namespace nonneg
