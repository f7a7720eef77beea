// An extension module without contents, so that build tools treat the library as one; and which library suits the processor.
#include <Python.h>

#include "common.hpp"

#if defined(_MSC_VER)
#include <immintrin.h>
#include <intrin.h>
#endif

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "kernels", nullptr, -1, nullptr, nullptr, nullptr, nullptr, nullptr};

PyMODINIT_FUNC GCE_MODULE(void) { return PyModule_Create(&module); }

// 0: baseline, 1: AVX2 with fused products, 2: AVX-512.
GCE_EXPORT int gce_cpu_level() {
#if (defined(__x86_64__) || defined(_M_X64)) && defined(__GNUC__)
    __builtin_cpu_init();
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
    const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                        __builtin_cpu_supports("avx512cd");
    return avx2 ? (avx512 ? 2 : 1) : 0;
#elif defined(_M_X64)
    int leaf[4] = {}, more[4] = {};
    __cpuid(leaf, 1);
    __cpuidex(more, 7, 0);
    // the operating system saves the wide registers, and the processor has FMA, AVX2 and BMI2, or all of AVX-512
    const bool saved = (leaf[2] >> 27 & 1) && (_xgetbv(0) & 0x6) == 0x6;
    const bool avx2 = saved && (leaf[2] >> 12 & 1) && (more[1] >> 5 & 1) && (more[1] >> 8 & 1);
    const int all = 1 << 16 | 1 << 17 | 1 << 28 | 1 << 30 | int(1u << 31);
    return avx2 ? ((_xgetbv(0) & 0xE6) == 0xE6 && (more[1] & all) == all ? 2 : 1) : 0;
#else
    return 0;
#endif
}
