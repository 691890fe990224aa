/* Pairs of objects that send events to and fro: what an event costs. Ends after so many events, and checks that none was lost. */
#include <stdio.h>
#include <stdlib.h>

#include "worstcase_runtime.h"

enum { PAIRS = 16, EVENTS = 8, COUNT = 400000 };

struct side {
    uint32_t partner;
    uint64_t received;
};

static void receive(void *context, wr_machine *machine, wr_event *event, uint32_t queue)
{
    struct side *side = context;
    uint64_t *hops = wr_event_data(event);

    (void)queue;
    side->received++;
    ++*hops;
    if (wr_send(machine, event, side->partner) != WR_OK)
        wr_free(event); /* a send that fails leaves the event with us */
}

static void must(int code, const char *what)
{
    if (code != WR_OK) {
        fprintf(stderr, "%s: error %d\n", what, code);
        exit(1);
    }
}

int main(void)
{
    const wr_config config = {.cores = 1, .events = 1024, .burst = 32, .wait = WR_SPIN, .watch = 0};
    const wr_object object = {.receive = receive};
    const wr_limits limits = {.events = COUNT};
    static struct side sides[2 * PAIRS];
    uint32_t queues[2 * PAIRS], pool, number;
    wr_machine *machine = wr_machine_new(&config);
    wr_outcome outcome;
    uint64_t received = 0;

    if (machine == NULL)
        return 1;
    must(wr_pool_create(machine, 256, 64, &pool), "pool");
    for (int i = 0; i < 2 * PAIRS; i++) {
        must(wr_object_create(machine, "side", &object, &sides[i], &number), "object");
        must(wr_queue_create(machine, "side", WR_ATOMIC, 4, number, NULL, &queues[i]), "queue");
        must(wr_object_start(machine, number), "start");
    }
    for (int i = 0; i < 2 * PAIRS; i++)
        sides[i].partner = queues[i ^ 1];
    for (int i = 0; i < PAIRS * EVENTS; i++) {
        wr_event *event = wr_alloc(machine, pool, 64);
        if (event == NULL)
            return 1;
        *(uint64_t *)wr_event_data(event) = 0;
        must(wr_send(machine, event, queues[2 * (i % PAIRS)]), "send");
    }
    must(wr_dispatch(machine, 0, &limits, &outcome), "dispatch");
    for (int i = 0; i < 2 * PAIRS; i++)
        received += sides[i].received;
    printf("%llu events, %.1f ns each\n", (unsigned long long)outcome.events, (double)outcome.nanos / outcome.events);
    wr_machine_end(machine);
    return received == outcome.events && received >= COUNT ? 0 : 1;
}
