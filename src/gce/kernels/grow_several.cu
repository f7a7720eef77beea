// Forests of several numbers; kinds of targets are compiled one by one, when they are needed.
#include "grow_forest.cuh"

GCE_KERNEL GCE_GROW_LARGE(SEVERAL) grow_large_several(Forest forest) {
    GCE_SHARED(memory);
    grow<true, SEVERAL>(forest, memory);
}

GCE_KERNEL GCE_GROW_SMALL(SEVERAL) grow_small_several(Forest forest) {
    GCE_SHARED(memory);
    grow<false, SEVERAL>(forest, memory);
}
