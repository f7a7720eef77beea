// Forests of several numbers; kinds of targets are compiled one by one, when they are needed.
#include "grow_forest.cuh"

GCE_KERNEL void GCE_GROW_LARGE(SEVERAL) grow_large_several(GCE_PARAMETER Forest forest) {
    grow<true, SEVERAL>(forest);
}

GCE_KERNEL void GCE_GROW_SMALL(SEVERAL) grow_small_several(GCE_PARAMETER Forest forest) {
    grow<false, SEVERAL>(forest);
}
