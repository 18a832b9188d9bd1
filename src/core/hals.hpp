// Coordinate descent on rows of nonnegative least squares that share one Gram matrix (HALS).
//
// Decreases 0.5 f G f' - c f' over every row f >= 0: for each component a in turn,
//     slope = (f G)_a - c_a,    f_a <- max(f_a - slope / G_aa, 0)
// (Cichocki & Phan 2009, Algorithm 2), with several passes per product and a stopping rule of their own for
// every row (Gillis & Glineur 2012, Algorithm 2). Rows are the lanes of vectors; rows that have stopped leave
// the block. With 32 registers the slopes of several components are summed in one pass over f. The result for a row
// depends on no other row.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <vector>

#include "lanes.hpp"
#include "pool.hpp"

namespace nonneg {

// Rows that are held in cache together.
constexpr std::int64_t hals_block = 128;

// Sizes of the projected gradients at entries f >= 0: those of the slopes, at zero entries of negative ones only.
template <class T>
Lanes<T> violations(const Lanes<T>& slope, const Lanes<T>& f) {
  // At zero the smaller of slope and 0; elsewhere f times this number is above any slope.
  const Lanes<T> counts = smaller(slope, f * spread<T>(std::numeric_limits<T>::max() / 8));
  return larger(counts, spread<T>(0) - counts);
}

template <class T>
class HalsBlock {
 public:
  HalsBlock(const T* gram, std::int64_t k, const std::int64_t* order, std::int64_t n_order, int max_passes, double shrink)
      : gram_(gram), order_(order), k_(k), n_order_(n_order), max_passes_(max_passes),
        shrink2_(static_cast<T>(shrink * shrink)),
        rows_(std::make_unique_for_overwrite<Lanes<T>[]>(2 * k * hals_block / lanes)), f_(reinterpret_cast<T*>(rows_.get())),
        c_(f_ + k * hals_block), change_(hals_block), limit_(hals_block), violation_(hals_block), row_(hals_block) {}

  // Write the updated rows of `initial` to `out`, and return the sum of absolute projected gradients in the first
  // pass. Both arrays are n x k; they may be the same.
  double update(const T* initial, const T* cross, T* out, std::int64_t n) {
    double violation = 0;
    for (std::int64_t begin = 0; begin < n; begin += hals_block) {
      const std::int64_t m = std::min(hals_block, n - begin);
      violation += update_block(initial + begin * k_, cross + begin * k_, out + begin * k_, m);
    }
    return violation;
  }

 private:
  static constexpr std::int64_t lanes = n_lanes<T>;
  // Components whose slopes take half of the registers.
  static constexpr int together = n_simd_registers / (2 * n_registers);

  // Where the first component of row r is; its components follow at distance `lanes`.
  std::int64_t place(std::int64_t r) const { return (r / lanes) * k_ * lanes + r % lanes; }

  double update_block(const T* initial, const T* cross, T* out, std::int64_t m) {
    if (m % lanes)  // lanes without a row are zero
      for (T* array : {f_, c_}) std::fill_n(array + m / lanes * lanes * k_, lanes * k_, T(0));
    for (std::int64_t r = 0; r < m; ++r) {
      row_[r] = r;
      T *f = &f_[place(r)], *c = &c_[place(r)];
      for (std::int64_t a = 0; a < k_; ++a) {
        f[a * lanes] = initial[r * k_ + a];
        c[a * lanes] = -cross[r * k_ + a];
      }
    }
    double violation = 0;
    for (int sweep = 0; sweep < max_passes_ && m > 0; ++sweep) {
      for (std::int64_t v = 0; v < (m + lanes - 1) / lanes; ++v) one_pass(v, sweep == 0);
      if (sweep == 0)
        for (std::int64_t r = 0; r < m; ++r) {
          violation += violation_[r];
          limit_[r] = shrink2_ * change_[r];
        }
      m = leave(out, m, sweep == max_passes_ - 1);
    }
    return violation;
  }

  void one_pass(std::int64_t v, bool is_first) {
    T* f = &f_[v * k_ * lanes];
    const T* c = &c_[v * k_ * lanes];
    Lanes<T> changed = spread<T>(0), violated = changed;
    std::int64_t turn = 0;
    for (; turn + together <= n_order_; turn += together)
      update_components<together>(f, c, order_ + turn, is_first, changed, violated);
    for (; turn < n_order_; ++turn) update_components<1>(f, c, order_ + turn, is_first, changed, violated);
    store(&change_[v * lanes], changed);
    if (is_first) store(&violation_[v * lanes], violated);
  }

  // Update n components in turn. Their slopes are summed in one pass over f; later ones add what earlier ones moved.
  template <int n>
  void update_components(T* f, const T* c, const std::int64_t* order, bool is_first, Lanes<T>& changed,
                         Lanes<T>& violated) const {
    const T* gram[n];
    Lanes<T> slope[n];
    for (int i = 0; i < n; ++i) {
      gram[i] = gram_ + order[i] * k_;
      slope[i] = load(c + order[i] * lanes);
    }
    for (std::int64_t b = 0; b < k_; ++b) {
      const Lanes<T> f_b = load(f + b * lanes);
      NONNEG_UNROLL
      for (int i = 0; i < n; ++i) add_product(slope[i], gram[i][b], f_b);
    }
    NONNEG_UNROLL
    for (int i = 0; i < n; ++i) {
      const std::int64_t a = order[i];
      const T curvature = gram[i][a];
      if (!(curvature > 0) && curvature == curvature) continue;  // nothing to gain
      const Lanes<T> old = load(f + a * lanes);
      if (is_first) violated = violated + violations(slope[i], old);
      const Lanes<T> moved = larger(old - slope[i] * spread(1 / curvature), spread<T>(0));
      store(f + a * lanes, moved);
      const Lanes<T> step = moved - old;
      changed = changed + step * step;
      NONNEG_UNROLL
      for (int j = i + 1; j < n; ++j) add_product(slope[j], gram[j][a], step);
    }
  }

  // Write rows that have converged; the last of the others take their places. Return how many are left.
  std::int64_t leave(T* out, std::int64_t m, bool is_last) {
    for (std::int64_t r = m - 1; r >= 0; --r) {
      if (!is_last && change_[r] > limit_[r]) continue;
      const T* f = &f_[place(r)];
      for (std::int64_t a = 0; a < k_; ++a) out[row_[r] * k_ + a] = f[a * lanes];
      if (--m != r) move(m, r);
    }
    return m;
  }

  void move(std::int64_t from, std::int64_t to) {
    for (T* array : {f_, c_})
      for (std::int64_t a = 0; a < k_; ++a) array[place(to) + a * lanes] = array[place(from) + a * lanes];
    limit_[to] = limit_[from];
    row_[to] = row_[from];
  }

  const T* gram_;
  const std::int64_t* order_;
  std::int64_t k_, n_order_;
  int max_passes_;
  T shrink2_;
  std::unique_ptr<Lanes<T>[]> rows_;  // begins where a register may
  T *f_, *c_;
  std::vector<T> change_, limit_, violation_;
  std::vector<std::int64_t> row_;
};

// Update n rows in ranges of `block`; see HalsBlock::update.
template <class T>
double hals_passes(T* out, const T* initial, const T* gram, const T* cross, std::int64_t n, std::int64_t k,
                   const std::int64_t* order, std::int64_t n_order, int max_passes, double shrink, std::int64_t block,
                   int n_threads) {
  std::vector<double> violations((n + block - 1) / block);
  parallel_for(n, block, n_threads, [&](std::int64_t begin, std::int64_t end) {
    HalsBlock<T> descent(gram, k, order, n_order, max_passes, shrink);
    violations[begin / block] = descent.update(initial + begin * k, cross + begin * k, out + begin * k, end - begin);
  });
  return std::accumulate(violations.begin(), violations.end(), 0.0);
}

}  // namespace nonneg
