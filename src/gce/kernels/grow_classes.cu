// Forests of classes; kinds of targets are compiled one by one, when they are needed.
#include "grow_forest.cuh"

GCE_KERNEL GCE_GROW_LARGE(CLASSES) grow_large_classes(Forest forest) {
    GCE_SHARED(memory);
    grow<true, CLASSES>(forest, memory);
}

GCE_KERNEL GCE_GROW_SMALL(CLASSES) grow_small_classes(Forest forest) {
    GCE_SHARED(memory);
    grow<false, CLASSES>(forest, memory);
}
