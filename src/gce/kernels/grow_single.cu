// Forests of one number; kinds of targets are compiled one by one, when they are needed.
#include "grow_forest.cuh"

GCE_KERNEL void GCE_GROW_LARGE(SINGLE) grow_large_single(GCE_PARAMETER Forest forest) {
    grow<true, SINGLE>(forest);
}

GCE_KERNEL void GCE_GROW_SMALL(SINGLE) grow_small_single(GCE_PARAMETER Forest forest) {
    grow<false, SINGLE>(forest);
}
