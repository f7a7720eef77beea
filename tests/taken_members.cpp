// Members as threads take them, where another thread is faster between a look at a member and taking it.
#include "take_member.hpp"

namespace {

// The rounds that another thread runs, takes to run and gives back meanwhile.
i64 others_rounds = 0;

struct Counter {
    i64 value;
    Counter *others_done;

    i64 load() const { return value; }
    void store(i64 given) { value = given; }
    bool compare_exchange_strong(i64 &expected, i64 wanted) {
        others_done->value += others_rounds;
        others_rounds = 0;
        if (value != expected) return expected = value, false;
        return value = wanted, true;
    }
};

} // namespace

// The member that is taken, times 100, and the rounds that it has by then; a member that is given back counts.
extern "C" i64 taken_member(i64 members, const i64 *rounds, i64 count, i64 others) {
    Counter done[8], taken[8];
    for (i64 m = 0; m < members; m++) done[m] = {rounds[m], nullptr}, taken[m] = {0, &done[m]};
    others_rounds = others;
    const i64 found = take_member(taken, done, members, count);
    for (i64 m = 0; m < members; m++)
        if (taken[m].value != (m == found)) return -2;
    return found < 0 ? found : 100 * found + done[found].value;
}
