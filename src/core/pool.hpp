// Thread pool: workers claim blocks of a task by an atomic counter, look for the next task for a moment, then sleep.
//
// The calling thread works too, and nobody waits for a worker that comes late: it finds no block left. Which
// thread computes a block never matters, because blocks follow from shapes alone. A call from inside a task,
// or while another thread uses the pool, runs on the calling thread. After a fork the child starts anew.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#endif

namespace nonneg {

inline void relax() {
#if defined(__x86_64__) && defined(__GNUC__)
  __builtin_ia32_pause();  // its header has 47,000 lines
#elif defined(__aarch64__) && !defined(_MSC_VER)
  asm volatile("yield");
#endif
}

class Pool {
 public:
  // The one pool of the process.
  static Pool& instance() {
    static std::once_flag once;
    std::call_once(once, [] {
      current() = new Pool;
#if defined(__unix__) || defined(__APPLE__)
      // The threads do not exist in a child, and a lock may be held by one of them: the old pool is left alone.
      pthread_atfork(nullptr, nullptr, [] { current() = new Pool; });
#endif
    });
    return *current();
  }

  // Call task(block) for every block below n_blocks, on up to n_threads threads.
  template <class Task>
  void run(std::int64_t n_blocks, int n_threads, const Task& task) {
    run(
        n_blocks, n_threads, [](const void* own, std::int64_t block) { (*static_cast<const Task*>(own))(block); }, &task);
  }

 private:
  using Call = void (*)(const void* task, std::int64_t block);

  // One function for all tasks: as a template it would be compiled for each of them.
  void run(std::int64_t n_blocks, int n_threads, Call call, const void* task) {
    if (n_blocks <= 0) return;
    std::unique_lock<std::mutex> turn(turn_, std::defer_lock);
    if (n_threads <= 1 || n_blocks == 1 || inside() || !turn.try_lock()) {
      for (std::int64_t block = 0; block < n_blocks; ++block) call(task, block);
      return;
    }
    struct Inside {  // nested calls run on this thread
      Inside() { inside() = true; }
      ~Inside() { inside() = false; }
    } guard;
    Job job{call, task, n_blocks};
    const auto wanted = static_cast<std::size_t>(std::min<std::int64_t>(n_threads, n_blocks) - 1);
    while (workers_.size() < wanted) workers_.emplace_back([this, at = workers_.size()] { serve(at); });
    limit_.store(wanted, std::memory_order_relaxed);
    job_.store(&job, std::memory_order_release);
    generation_.fetch_add(1, std::memory_order_release);
    if (sleeping_.load() > 0) {
      std::lock_guard<std::mutex> hold(mutex_);
      wake_.notify_all();
    }
    work(job);
    // Nobody enters any more; then wait for those inside.
    job_.store(nullptr);
    for (int turns = 0; present_.load(std::memory_order_acquire) > 0; ++turns) {
      relax();
      if (turns % 64 == 63) std::this_thread::yield();
    }
    if (job.error) std::rethrow_exception(job.error);
  }

  struct Job {
    Call call;
    const void* task;
    std::int64_t n_blocks;
    std::atomic<std::int64_t> next{0};
    std::atomic<bool> failed{false};
    std::exception_ptr error = nullptr;
  };

  // Daemon threads: they sleep when there is no work, and end with the process.
  struct Worker {
    template <class Serve>
    explicit Worker(Serve serve) {
      std::thread(serve).detach();
    }
  };

  static Pool*& current() {
    static Pool* pool = nullptr;
    return pool;
  }
  static bool& inside() {
    thread_local bool flag = false;
    return flag;
  }

  static void work(Job& job) {
    for (std::int64_t block; (block = job.next.fetch_add(1, std::memory_order_relaxed)) < job.n_blocks;) {
      if (job.failed.load(std::memory_order_relaxed)) return;
      try {
        job.call(job.task, block);
      } catch (...) {
        if (!job.failed.exchange(true)) job.error = std::current_exception();
      }
    }
  }

  void serve(std::size_t number) {
    using clock = std::chrono::steady_clock;
    // Iterations have serial parts of a few tenths of a millisecond, and waking all workers takes as long.
    constexpr auto patience = std::chrono::milliseconds(1);
    inside() = true;
    for (std::uint64_t seen = 0;;) {
      auto until = clock::now() + patience;
      for (int turns = 0; generation_.load(std::memory_order_acquire) == seen; ++turns) {
        relax();
        if (turns % 64 != 63) continue;
        std::this_thread::yield();
        if (clock::now() < until) continue;
        std::unique_lock<std::mutex> hold(mutex_);
        ++sleeping_;
        wake_.wait(hold, [&] { return generation_.load() != seen; });
        --sleeping_;
      }
      seen = generation_.load(std::memory_order_acquire);
      if (number >= limit_.load(std::memory_order_relaxed)) continue;
      // Announced before the look at the job: the caller clears the job first and then waits for us.
      present_.fetch_add(1);
      if (Job* job = job_.load()) work(*job);
      present_.fetch_sub(1, std::memory_order_release);
    }
  }

  std::mutex turn_, mutex_;
  std::condition_variable wake_;
  std::vector<Worker> workers_;
  alignas(64) std::atomic<std::uint64_t> generation_{0};
  alignas(64) std::atomic<Job*> job_{nullptr};
  alignas(64) std::atomic<int> present_{0};
  std::atomic<std::size_t> limit_{0};
  std::atomic<int> sleeping_{0};
};

// Call task(begin, end) for ranges of `size` rows that cover n rows.
template <class Task>
void parallel_for(std::int64_t n, std::int64_t size, int n_threads, const Task& task) {
  Pool::instance().run((n + size - 1) / size, n_threads, [&](std::int64_t block) {
    const std::int64_t begin = block * size;
    task(begin, std::min(begin + size, n));
  });
}

}  // namespace nonneg
