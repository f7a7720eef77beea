// Forests of one number; kinds of targets are compiled one by one, when they are needed.
#include "grow_forest.cuh"

GCE_KERNEL GCE_GROW_LARGE(SINGLE) grow_large_single(Forest forest) {
    GCE_SHARED(memory);
    grow<true, SINGLE>(forest, memory);
}

GCE_KERNEL GCE_GROW_SMALL(SINGLE) grow_small_single(Forest forest) {
    GCE_SHARED(memory);
    grow<false, SINGLE>(forest, memory);
}
