// The nodes of trees from what a file holds of them.
#include <vector>

#include "trees.hpp"

int check_trees(const i64 *size, i64 count, i64 nodes, const i32 *left) {
    i64 total = 0;
    for (i64 t = 0; t < count; total += size[t++])
        if (size[t] < 1 || size[t] > nodes - total) return SIZES;
    if (total != nodes) return SIZES;
    std::vector<u8> parents(nodes);
    int fault = GCE_OK;
    for (i64 t = 0, root = 0; t < count; root += size[t++])
        for (i64 p = 0; p < size[t]; p++) {
            const i64 child = left[root + p];
            if (child == 0) continue;
            if (child <= p || child + 1 >= size[t]) return ORDER;
            if (parents[root + child] || parents[root + child + 1]) fault = PARENTS;
            parents[root + child] = parents[root + child + 1] = 1;
        }
    for (i64 t = 0, root = 0; t < count; root += size[t++])
        for (i64 p = 1; p < size[t]; p++)
            if (!parents[root + p]) fault = PARENTS;
    return fault;
}

// Put the cuts of inner nodes to their places, 0 to the others, and check that they are trees.
GCE_EXPORT int gce_trees_restore(const i64 *size, i64 count, const u8 *inner, i64 nodes, i64 inputs, const i32 *cut_feature,
                                 const double *cut_threshold, const i32 *cut_left, i32 *feature, double *threshold, i32 *left) {
    return guarded([&]() -> int {
        bool exists = true, ordered = true;
        for (i64 p = 0, cut = 0; p < nodes; p++) {
            feature[p] = inner[p] ? cut_feature[cut] : 0;
            threshold[p] = inner[p] ? cut_threshold[cut] : 0.0;
            left[p] = inner[p] ? cut_left[cut] : 0;
            exists = exists && (!inner[p] || (feature[p] >= 0 && feature[p] < inputs));
            ordered = ordered && (!inner[p] || left[p] > 0);
            cut += inner[p] != 0;
        }
        const int fault = check_trees(size, count, nodes, left);
        if (fault == SIZES) return SIZES;
        return exists ? (ordered ? fault : static_cast<int>(ORDER)) : static_cast<int>(COLUMN);
    });
}
