// Coordinate descent on rows of nonnegative least squares that share one Gram matrix (HALS).
//
// Decreases 0.5 f G f' - c f' over every row f >= 0: for each component a in turn,
//     slope = (f G)_a - c_a,    f_a <- max(f_a - slope / G_aa, 0)
// (Cichocki & Phan 2009, Algorithm 2), with several passes per product and a stopping rule of their own for
// every row (Gillis & Glineur 2012, Algorithm 2). Rows are the lanes of vectors; rows that have stopped leave
// the block. The result for a row depends on no other row.
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

template <class T>
class HalsBlock {
 public:
  HalsBlock(const T* gram, std::int64_t k, const std::int64_t* order, std::int64_t n_order, int max_passes, double shrink)
      : gram_(gram), order_(order), k_(k), n_order_(n_order), max_passes_(max_passes),
        shrink2_(static_cast<T>(shrink * shrink)), f_(std::make_unique_for_overwrite<T[]>(k * hals_block)),
        c_(std::make_unique_for_overwrite<T[]>(k * hals_block)), change_(hals_block), limit_(hals_block),
        violation_(hals_block), row_(hals_block) {}

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

  // Where the first component of row r is; its components follow at distance `lanes`.
  std::int64_t place(std::int64_t r) const { return (r / lanes) * k_ * lanes + r % lanes; }

  double update_block(const T* initial, const T* cross, T* out, std::int64_t m) {
    if (m % lanes)  // lanes without a row are zero
      for (T* array : {f_.get(), c_.get()}) std::fill_n(array + m / lanes * lanes * k_, lanes * k_, T(0));
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
    const Lanes<T> zero = spread<T>(0), huge = spread<T>(std::numeric_limits<T>::max() / 8);
    Lanes<T> changed = zero, violated = zero;
    for (std::int64_t turn = 0; turn < n_order_; ++turn) {
      const std::int64_t a = order_[turn];
      const T* gram_a = gram_ + a * k_;
      if (!(gram_a[a] > 0) && gram_a[a] == gram_a[a]) continue;  // no curvature, nothing to gain
      Lanes<T> slope = load(c + a * lanes);
      for (std::int64_t b = 0; b < k_; ++b) add_product(slope, gram_a[b], f + b * lanes);
      const Lanes<T> old = load(f + a * lanes);
      if (is_first) {
        // At a zero entry only a negative slope counts: min(slope, 0).
        const Lanes<T> counts = smaller(slope, old * huge);
        violated = violated + larger(counts, zero - counts);
      }
      const Lanes<T> moved = larger(old - slope * spread(1 / gram_a[a]), zero);
      store(f + a * lanes, moved);
      const Lanes<T> step = moved - old;
      changed = changed + step * step;
    }
    store(&change_[v * lanes], changed);
    if (is_first) store(&violation_[v * lanes], violated);
  }

  // Write rows that have converged; move the others up and return their number.
  std::int64_t leave(T* out, std::int64_t m, bool is_last) {
    std::int64_t kept = 0;
    for (std::int64_t r = 0; r < m; ++r) {
      const T *f = &f_[place(r)], *c = &c_[place(r)];
      if (is_last || !(change_[r] > limit_[r])) {
        for (std::int64_t a = 0; a < k_; ++a) out[row_[r] * k_ + a] = f[a * lanes];
        continue;
      }
      if (kept != r) {
        T *to_f = &f_[place(kept)], *to_c = &c_[place(kept)];
        for (std::int64_t a = 0; a < k_; ++a) {
          to_f[a * lanes] = f[a * lanes];
          to_c[a * lanes] = c[a * lanes];
        }
        limit_[kept] = limit_[r];
        row_[kept] = row_[r];
      }
      ++kept;
    }
    return kept;
  }

  const T* gram_;
  const std::int64_t* order_;
  std::int64_t k_, n_order_;
  int max_passes_;
  T shrink2_;
  std::unique_ptr<T[]> f_, c_;
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
