/* Carries packets between TUN devices of several network namespaces, late and no faster than a link would.

       slow_link BYTES_PER_SECOND DELAY_NS LIMIT_SECONDS NAMESPACE...

   The device of namespace k is gce<k>; a packet goes to the device that the last byte of its address, k + 1, names. Each
   device sends through a line of its own: a packet leaves it when those before it have left and its own bytes are
   through, and arrives the delay later. Packets come as the kernel makes them of a large write, up to 64 KB with the
   size of the segments beside them (TSO), so that TCP sees segments of the device's MTU, but there are few packets.

   "ready" is written once the devices are there. At SIGTERM, or after the limit, one line tells the packets and the
   bytes that arrived, the packets that a device did not take, and the microseconds of this process on a processor. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { HOSTS = 16, QUEUE = 1024, LARGEST = 66000, HEADER = 10, TARGET = HEADER + 19 };

struct packet {
    long long at;
    int size;
    unsigned char *bytes;
};

/* Packets of one device on their way, a ring in the order of their arrival. */
struct line {
    int device;
    long long free_at;
    unsigned first, last;
    struct packet ring[QUEUE];
};

static struct line lines[HOSTS];
static long long packets, bytes, lost;
static volatile sig_atomic_t ended;

static void end(int signal_number) { (void)signal_number; ended = 1; }

static void fail(const char *what) { perror(what); exit(1); }

static long long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static int opened(const char *namespace, int number) {
    char path[256];
    snprintf(path, sizeof path, "/run/netns/%s", namespace);
    int space = open(path, O_RDONLY | O_CLOEXEC);
    if (space < 0 || setns(space, CLONE_NEWNET)) fail(path);
    close(space);
    int device = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (device < 0) fail("/dev/net/tun");
    struct ifreq about = {0};
    snprintf(about.ifr_name, IFNAMSIZ, "gce%d", number);
    about.ifr_flags = IFF_TUN | IFF_NO_PI | IFF_VNET_HDR;
    if (ioctl(device, TUNSETIFF, &about)) fail("TUNSETIFF");
    if (ioctl(device, TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4)) fail("TUNSETOFFLOAD");
    return device;
}

static void take(struct line *line, double rate, long long delay) {
    while (line->last - line->first < QUEUE) {
        struct packet *packet = &line->ring[line->last % QUEUE];
        if (!packet->bytes && !(packet->bytes = malloc(LARGEST))) fail("malloc");
        packet->size = (int)read(line->device, packet->bytes, LARGEST);
        if (packet->size <= HEADER) return;
        long long begins = now();
        if (line->free_at > begins) begins = line->free_at;
        line->free_at = begins + (long long)((packet->size - HEADER) / rate * 1e9);
        packet->at = line->free_at + delay;
        line->last++;
    }
}

static void deliver(const struct packet *packet, int count) {
    int target = packet->bytes[TARGET] - 1;
    /* IPv4 only: what else the kernel sends by itself has no receiver */
    if (packet->bytes[HEADER] >> 4 != 4 || target < 0 || target >= count) return;
    if (write(lines[target].device, packet->bytes, (size_t)packet->size) < 0) {
        lost++;
        return;
    }
    packets++;
    bytes += packet->size - HEADER;
}

int main(int argc, char **argv) {
    int count = argc - 4;
    if (count < 2 || count > HOSTS) return 2;
    double rate = atof(argv[1]);
    long long delay = atoll(argv[2]);
    struct sigaction action = {.sa_handler = end};
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGALRM, &action, NULL);
    alarm((unsigned)atoi(argv[3]));
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    struct pollfd waiting[HOSTS];
    for (int k = 0; k < count; k++) lines[k].device = opened(argv[4 + k], k);
    puts("ready");
    fflush(stdout);
    while (!ended) {
        long long next = now() + 100000000LL;
        for (int k = 0; k < count; k++) {
            struct line *line = &lines[k];
            while (line->first != line->last && line->ring[line->first % QUEUE].at <= now())
                deliver(&line->ring[line->first++ % QUEUE], count);
            if (line->first != line->last && line->ring[line->first % QUEUE].at < next)
                next = line->ring[line->first % QUEUE].at;
            int full = line->last - line->first == QUEUE;
            waiting[k] = (struct pollfd){.fd = line->device, .events = full ? 0 : POLLIN};
        }
        long long left = next - now();
        if (left < 0) left = 0;
        struct timespec rest = {left / 1000000000LL, left % 1000000000LL};
        if (ppoll(waiting, (nfds_t)count, &rest, NULL) < 0 && errno != EINTR) fail("ppoll");
        for (int k = 0; k < count; k++) take(&lines[k], rate, delay);
    }
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    long long busy = (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000LL;
    busy += used.ru_utime.tv_usec + used.ru_stime.tv_usec;
    printf("%lld %lld %lld %lld\n", packets, bytes, lost, busy);
    return 0;
}
