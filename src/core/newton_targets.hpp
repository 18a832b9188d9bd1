// Newton steps of rows whose Hessians, scaled to a unit diagonal, are the same matrix of correlations.
//
// The quadratic model of a row f with gradient g and diagonal d is minimized over f >= 0 by a few coordinate passes
// in the variables f sqrt(d); an entry that is not small in its row loses at most four fifths.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "hals.hpp"
#include "pool.hpp"

namespace nonneg {

// Coordinate passes over the problem of a row; one that changes it by at most this fraction of the first is the last.
constexpr int newton_passes = 4;
constexpr double newton_shrink = 0.1;
// An entry decreases at most to this fraction in one step; to zero only if it is a small part of its row.
constexpr double largest_fall = 0.2, small_part = 1e-3;

// What a line search needs of a row: the penalty along the step is linear t + quadratic t^2 / 2, `slope` the
// derivative of the whole at 0; and the norm of the projected gradient relative to the row.
template <class T>
struct NewtonNotes {
  T residual, linear, quadratic, slope;
};

template <class T>
class NewtonTargets {
 public:
  NewtonTargets(const T* correlations, std::int64_t k, const std::int64_t* order, std::int64_t n_order, T l1, T l2, T least)
      : correlations_(correlations), order_(order), k_(k), n_order_(n_order), l1_(l1), l2_(l2), least_(least),
        descent_(correlations, k, order, n_order, newton_passes, newton_shrink), root_(hals_block * k),
        cross_(hals_block * k) {}

  // Write the steps of m rows, at most hals_block.
  void steps(const T* factor, const T* gradient, const T* diagonal, T* direction, NewtonNotes<T>* notes, std::int64_t m) {
    for (std::int64_t i = 0; i < m; ++i) notes[i].residual = scale(i, factor, gradient, diagonal, direction);
    descent_.update(direction, cross_.data(), direction, m);
    for (std::int64_t i = 0; i < m; ++i)
      finish(factor + i * k_, gradient + i * k_, &root_[i * k_], direction + i * k_, notes[i]);
  }

 private:
  // Write the row in the variables f sqrt(d), and c = f G - g of its quadratic problem; return the residual.
  T scale(std::int64_t i, const T* factor, const T* gradient, const T* diagonal, T* direction) {
    const T *f = factor + i * k_, *g = gradient + i * k_, *d = diagonal + i * k_;
    T* __restrict scaled = direction + i * k_, * __restrict c = &cross_[i * k_], * __restrict root = &root_[i * k_];
    const T least = least_;
    T size = 0, moved = 0;
    for (std::int64_t a = 0; a < k_; ++a) {
      root[a] = std::sqrt(std::max(d[a], least));
      const T slope = g[a] / root[a], value = f[a] * root[a];
      scaled[a] = value;
      c[a] = -slope;
      size += value * value;
      const T projected = value - std::max(value - slope, T(0));
      moved += projected * projected;
    }
    std::int64_t b = 0;
    for (; b + 4 <= k_; b += 4) {  // four terms per sum that is read and written
      const T *first = correlations_ + b * k_, *second = first + k_, *third = second + k_, *fourth = third + k_;
      const T p = scaled[b], q = scaled[b + 1], r = scaled[b + 2], s = scaled[b + 3];
      for (std::int64_t a = 0; a < k_; ++a) c[a] += (p * first[a] + q * second[a]) + (r * third[a] + s * fourth[a]);
    }
    for (; b < k_; ++b)
      for (std::int64_t a = 0; a < k_; ++a) c[a] += scaled[b] * correlations_[b * k_ + a];
    return std::sqrt(moved) / (size > 0 ? std::sqrt(size) : T(1));
  }

  void finish(const T* f, const T* g, T* root, T* d, NewtonNotes<T>& notes) const {
    T largest = 0;
    for (std::int64_t a = 0; a < k_; ++a) largest = std::max(largest, f[a]);
    T* step = root;  // each root is read before its place is written
    for (std::int64_t a = 0; a < k_; ++a) {
      const T target = d[a] / root[a], lowest = f[a] <= largest * T(small_part) ? T(0) : f[a] * T(largest_fall);
      step[a] = std::max(target, lowest) - f[a];
      d[a] = 0;
    }
    for (std::int64_t turn = 0; turn < n_order_; ++turn) d[order_[turn]] = step[order_[turn]];
    T linear = 0, quadratic = 0, slope = 0;
    for (std::int64_t a = 0; a < k_; ++a) {
      linear += (l1_ + l2_ * f[a]) * d[a];
      quadratic += l2_ * d[a] * d[a];
      slope += g[a] * d[a];
    }
    notes.linear = linear, notes.quadratic = quadratic, notes.slope = slope;
  }

  const T* correlations_;
  const std::int64_t* order_;
  std::int64_t k_, n_order_;
  T l1_, l2_, least_;
  HalsBlock<T> descent_;
  std::vector<T> root_, cross_;
};

// Write the steps of n rows, and their notes as four rows of length n.
template <class T>
void newton_targets(const T* factor, const T* gradient, const T* diagonal, const T* correlations, std::int64_t n,
                    std::int64_t k, const std::int64_t* order, std::int64_t n_order, double l1, double l2, double least,
                    T* direction, T* notes, int n_threads) {
  parallel_for(n, hals_block, n_threads, [&](std::int64_t begin, std::int64_t end) {
    NewtonTargets<T> targets(correlations, k, order, n_order, static_cast<T>(l1), static_cast<T>(l2), static_cast<T>(least));
    std::vector<NewtonNotes<T>> own(end - begin);
    targets.steps(factor + begin * k, gradient + begin * k, diagonal + begin * k, direction + begin * k, own.data(),
                  end - begin);
    for (std::int64_t i = begin; i < end; ++i) {
      const NewtonNotes<T>& row = own[i - begin];
      notes[i] = row.residual, notes[n + i] = row.linear, notes[2 * n + i] = row.quadratic, notes[3 * n + i] = row.slope;
    }
  });
}

}  // namespace nonneg
