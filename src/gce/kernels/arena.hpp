// Memory that a caller lends to a kernel: a tree takes about as long to grow as fresh pages take to arrive.
#pragma once

#include "portable.hpp"

class Arena {
  public:
    // Without memory it only counts what would be taken.
    explicit Arena(void *memory) : memory_(static_cast<char *>(memory)) {}

    template <class T> T *take(i64 count) {
        T *taken = memory_ ? reinterpret_cast<T *>(memory_ + used_) : nullptr;
        used_ += (count * static_cast<i64>(sizeof(T)) + 63) / 64 * 64;
        return taken;
    }

    i64 used() const { return used_; }

  private:
    char *memory_;
    i64 used_ = 0;
};
