/* Datagrams as events: a thread off the cores reads them, an object gets them. */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "worstcase_runtime.h"

enum { DATAGRAMS = 5 };

static unsigned received, waits;
static uint64_t longest;

static void receive(void *context, wr_machine *machine, wr_event *event, uint32_t queue)
{
    const wr_source_data *data = wr_event_data(event);
    uint64_t way = wr_now(machine) - data->read_at;
    char wanted[32];

    (void)context;
    (void)queue;
    snprintf(wanted, sizeof wanted, "number %u", received);
    if (data->length != strlen(wanted) || memcmp(data->bytes, wanted, data->length) != 0) {
        fprintf(stderr, "received %.*s, not %s\n", (int)data->length, (const char *)data->bytes, wanted);
        exit(1);
    }
    longest = way > longest ? way : longest;
    received++;
    wr_free(event);
}

/* Called on the source's thread before each wait. */
static int before(void *context)
{
    ++*(unsigned *)context;
    return 0;
}

/* Called before the first wait: an errno ends the source. */
static int refuse(void *context)
{
    (void)context;
    return EACCES;
}

static void must(int code, int wanted, const char *what)
{
    if (code != wanted) {
        fprintf(stderr, "%s: answered %d, not %d\n", what, code, wanted);
        exit(1);
    }
}

/* How it ended, which is soon. */
static int32_t ended(const wr_source *source)
{
    const struct timespec soon = {.tv_nsec = 1000000};
    wr_source_figures figures;

    for (unsigned i = 0; i < 20000; i++) {
        must(wr_source_read(source, &figures), WR_OK, "figures");
        if (figures.ended != WR_SOURCE_GOES_ON)
            return figures.ended;
        nanosleep(&soon, NULL);
    }
    return WR_SOURCE_GOES_ON;
}

int main(void)
{
    const wr_config config = {.cores = 1, .events = 16, .burst = 1, .wait = WR_BLOCK, .watch = 0};
    const wr_object object = {.receive = receive};
    const wr_limits limits = {.events = 1, .nanos = 20000000000};
    wr_source_spec spec = {.name = "datagrams", .bytes = 32, .before = before, .context = &waits};
    wr_machine *machine = wr_machine_new(&config);
    wr_source_figures figures;
    wr_source *source;
    uint32_t number;
    char text[32];
    int pair[2];

    if (machine == NULL || socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) != 0)
        return 1;
    must(wr_pool_create(machine, 8, 48, &spec.pool), WR_OK, "pool");
    must(wr_object_create(machine, "receiver", &object, NULL, &number), WR_OK, "object");
    must(wr_object_start(machine, number), WR_OK, "start");
    must(wr_queue_create(machine, "arrived", WR_ATOMIC, 0, number, NULL, &spec.queue), WR_OK, "queue");
    must(wr_source_start(machine, &spec, -1, &source), WR_SYSTEM, "no descriptor");
    must(wr_source_start(machine, &spec, pair[0], &source), WR_OK, "source");
    for (unsigned i = 0; i < DATAGRAMS; i++) {
        snprintf(text, sizeof text, "number %u", i);
        if (write(pair[1], text, strlen(text)) < 0)
            return 1;
        must(wr_dispatch(machine, 0, &limits, NULL), WR_OK, "dispatch");
    }
    close(pair[1]);
    must(ended(source), 0, "end of what it reads from");
    must(wr_source_read(source, &figures), WR_OK, "figures");
    wr_source_end(source);
    printf("%u received, %llu sent, %llu refused, %u waits, at most %llu ns from read to receive\n", received,
           (unsigned long long)figures.sent, (unsigned long long)figures.refused, waits,
           (unsigned long long)longest);
    if (received != DATAGRAMS || figures.sent != DATAGRAMS || figures.refused != 0 || waits != DATAGRAMS + 1)
        return 1;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) != 0)
        return 1;
    spec.before = refuse;
    must(wr_source_start(machine, &spec, pair[0], &source), WR_OK, "source");
    must(ended(source), EACCES, "an error before the wait");
    wr_source_end(source);
    close(pair[1]);
    wr_machine_end(machine);
    return 0;
}
