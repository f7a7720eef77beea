// What all kernels share.
#pragma once

#include <new>

#include "portable.hpp"

#if defined(_WIN32)
#define GCE_EXPORT extern "C" __declspec(dllexport)
#else
#define GCE_EXPORT extern "C" __attribute__((visibility("default")))
#endif

// What a kernel that can fail returns.
constexpr int GCE_OK = 0;
constexpr int GCE_OUT_OF_MEMORY = -1;

// Run a kernel that allocates: no exception may leave the library.
template <class Kernel> int guarded(Kernel kernel) {
    try {
        return kernel();
    } catch (const std::bad_alloc &) {
        return GCE_OUT_OF_MEMORY;
    }
}
