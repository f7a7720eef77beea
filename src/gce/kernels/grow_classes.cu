// Forests of classes; kinds of targets are compiled one by one, when they are needed.
#include "grow_forest.cuh"

GCE_KERNEL void GCE_GROW_LARGE(CLASSES) grow_large_classes(GCE_PARAMETER Forest forest) {
    grow<true, CLASSES>(forest);
}

GCE_KERNEL void GCE_GROW_SMALL(CLASSES) grow_small_classes(GCE_PARAMETER Forest forest) {
    grow<false, CLASSES>(forest);
}
