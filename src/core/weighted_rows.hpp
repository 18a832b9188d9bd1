// Coordinate descent on rows with a Gram matrix each: data with a weight for every entry.
//
// Row i has G = sum of w_ij o_j o_j' over j, plus a ridge: a product of the weights with what pairs of components
// multiply to. Then the descent of hals.hpp. Rows are the lanes of vectors, and so are the entries of their matrices.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <vector>

#include "blas.hpp"
#include "hals.hpp"
#include "pool.hpp"

namespace nonneg {

template <class T>
struct WeightedGrams {
  const T* weights;
  bool by_rows;     // whether the weights of a row lie side by side, or those of a column
  std::int64_t ld;  // distance of rows or columns
  const T* other;   // n_other x k
  std::int64_t n_other, k;
  T ridge;

  std::int64_t n_pairs() const { return k * (k + 1) / 2; }

  // The place of the entry of components a and b in the list of all a <= b.
  std::int64_t pair(std::int64_t a, std::int64_t b) const {
    const std::int64_t low = std::min(a, b), high = std::max(a, b);
    return low * k - low * (low - 1) / 2 + high - low;
  }

  // Add the matrices of m rows to `out`: for every pair one number of each row, and `stride` to the next pair.
  void add(std::int64_t begin, std::int64_t m, T* out, std::int64_t stride) const {
    constexpr std::int64_t cached = 1 << 15, fewest = 64;
    const std::int64_t step = std::min(n_other, std::max(fewest, cached / n_pairs()));
    const auto products = std::make_unique_for_overwrite<T[]>(step * n_pairs());
    for (std::int64_t first = 0; first < n_other; first += step) {
      const std::int64_t n = std::min(step, n_other - first);
      T* product = products.get();
      for (std::int64_t j = first; j < first + n; ++j)
        for (const T *a = other + j * k, *end = a + k; a < end; ++a)
          for (const T* b = a; b < end; ++b) *product++ = *a * *b;
      const T* block = weights + (by_rows ? begin * ld + first : first * ld + begin);
      gemm(Order::transposed, by_rows ? Order::transposed : Order::plain, n_pairs(), m, n, products.get(), n_pairs(), block,
           ld, out, stride, T(1));
    }
    for (std::int64_t a = 0; a < k; ++a)
      for (std::int64_t r = 0; r < m; ++r) out[pair(a, a) * stride + r] += ridge;
  }
};

// As many rows as a vector has lanes.
template <class T>
class WeightedRows {
 public:
  explicit WeightedRows(const WeightedGrams<T>& grams)
      : grams_(grams), k_(grams.k), arrays_(std::make_unique_for_overwrite<Lanes<T>[]>(grams.n_pairs() + 3 * k_)), f_(at(0)),
        c_(at(k_)), inverse_(at(2 * k_)), gram_(at(3 * k_)) {}

  // Take m rows, and for every pair the entries of their matrices, `stride` apart. Lanes without a row are zero.
  void read(std::int64_t m, const T* factor, const T* sums, std::int64_t stride, const T* cross) {
    std::fill(f_, gram_, T(0));
    for (std::int64_t p = 0; p < grams_.n_pairs(); ++p) std::copy_n(sums + p * stride, lanes, gram_ + p * lanes);
    for (std::int64_t a = 0; a < k_; ++a)
      for (std::int64_t r = 0; r < m; ++r) {
        f_[a * lanes + r] = factor[r * k_ + a];
        const T curvature = gram_[grams_.pair(a, a) * lanes + r];
        // Nothing to gain; or a subnormal number, whose inverse may be infinite.
        if (curvature < std::numeric_limits<T>::min()) continue;
        c_[a * lanes + r] = -cross[r * k_ + a];
        inverse_[a * lanes + r] = 1 / curvature;
      }
  }

  // Update the components in `order` in turn.
  void pass(const std::int64_t* order, std::int64_t n_order) {
    Lanes<T> changed = spread<T>(0), violated = changed;
    for (std::int64_t turn = 0; turn < n_order; ++turn) {
      const std::int64_t a = order[turn];
      Lanes<T> slope = load(c_ + a * lanes);
      for (std::int64_t b = 0; b < k_; ++b)
        add_product(slope, load(gram_ + grams_.pair(a, b) * lanes), load(f_ + b * lanes));
      const Lanes<T> old = load(f_ + a * lanes), inverse = load(inverse_ + a * lanes);
      const Lanes<T> moved = larger(old - slope * inverse, spread<T>(0)), step = moved - old;
      store(f_ + a * lanes, moved);
      violated = violated + violations(slope, old);
      changed = changed + step * step;
    }
    store(change, changed);
    store(violation, violated);
  }

  void write(std::int64_t r, T* row) const {
    for (std::int64_t a = 0; a < k_; ++a) row[a] = f_[a * lanes + r];
  }

  static constexpr std::int64_t lanes = n_lanes<T>;
  T change[lanes], violation[lanes];  // of the rows in the last pass

 private:
  T* at(std::int64_t i) const { return reinterpret_cast<T*>(arrays_.get() + i); }

  const WeightedGrams<T>& grams_;
  std::int64_t k_;
  std::unique_ptr<Lanes<T>[]> arrays_;  // begins where a register may
  T *f_, *c_, *inverse_, *gram_;
};

// Update n rows in place; see hals_passes. Rows of a vector that have stopped wait for the others.
template <class T>
double hals_weighted(T* factor, const WeightedGrams<T>& grams, const T* cross, std::int64_t n, const std::int64_t* order,
                     std::int64_t n_order, int max_passes, double shrink, int n_threads) {
  constexpr std::int64_t lanes = WeightedRows<T>::lanes, most_entries = 1 << 18;
  // A product for several vectors takes half the time of one for each of them.
  const std::int64_t k = grams.k, block = std::clamp(most_entries / grams.n_pairs() / lanes * lanes, lanes, hals_block);
  std::vector<double> violations((n + block - 1) / block);
  parallel_for(n, block, n_threads, [&](std::int64_t begin, std::int64_t end) {
    std::vector<T> sums(grams.n_pairs() * block);
    grams.add(begin, end - begin, sums.data(), block);
    WeightedRows<T> rows(grams);
    for (std::int64_t first = begin; first < end; first += lanes) {
      const std::int64_t m = std::min(lanes, end - first);
      rows.read(m, factor + first * k, &sums[first - begin], block, cross + first * k);
      T limit[lanes];
      bool stopped[lanes] = {};
      for (std::int64_t sweep = 0, left = m; sweep < max_passes && left > 0; ++sweep) {
        rows.pass(order, n_order);
        for (std::int64_t r = 0; r < m; ++r) {
          if (sweep == 0) {
            limit[r] = static_cast<T>(shrink * shrink) * rows.change[r];
            violations[begin / block] += rows.violation[r];
          }
          if (stopped[r] || (sweep < max_passes - 1 && rows.change[r] > limit[r])) continue;
          stopped[r] = true;
          --left;
          rows.write(r, factor + (first + r) * k);
        }
      }
    }
  });
  return std::accumulate(violations.begin(), violations.end(), 0.0);
}

}  // namespace nonneg
