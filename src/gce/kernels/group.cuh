// Blocks that grow a tree together, and wait for each other without the host.
#pragma once

#include "threads.cuh"

// Counters of a group in global memory, 0 at the start.
struct Counters {
    u32 arrived, released;
};

class Group {
  public:
    Group(Counters *counters, i64 block, i64 blocks) : counters_(counters), block_(block), blocks_(blocks) {}

    i64 block() const { return block_; }
    i64 blocks() const { return blocks_; }
    // A warp of the group, and how many there are.
    i64 warp() const { return block_ * WARPS + ::warp(); }
    i64 warps() const { return blocks_ * WARPS; }
    // A thread of the group, and how many there are.
    i64 thread() const { return block_ * THREADS + ::thread(); }
    i64 threads() const { return blocks_ * THREADS; }

    // Wait for all blocks. The last one that arrives does `work` before the others go on: what it writes they read.
    template <class Work> void meet(Work work) {
        GCE_SHARED bool last;
        synchronise();
        phase_++;
        if (::thread() == 0) {
            fence();
            last = add_atomic(&counters_->arrived, 1u) + 1 == static_cast<u32>(blocks_) * phase_;
            fence();
        }
        synchronise();
        if (last) {
            work();
            synchronise();
            if (::thread() == 0) {
                fence();
                write_fresh(&counters_->released, phase_);
            }
        } else if (::thread() == 0) {
            while (read_fresh(&counters_->released) < phase_)
                spin();
            fence();
        }
        synchronise();
    }

    void meet() {
        meet([] {});
    }

  private:
    Counters *counters_;
    i64 block_, blocks_;
    u32 phase_ = 0;
};
