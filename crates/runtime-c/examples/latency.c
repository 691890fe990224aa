/* Scheduling latency: from a send to the receive, for each kind of queue; a contract that refuses, and the table. */
#include <stdio.h>
#include <stdlib.h>

#include "worstcase_runtime.h"

enum { ROUNDS = 100000 };

static struct {
    uint64_t count, sum, least, most;
} seen;

static void receive(void *context, wr_machine *machine, wr_event *event, uint32_t queue)
{
    uint64_t *sent = wr_event_data(event);
    uint64_t latency = wr_now(machine) - *sent;

    (void)context;
    seen.count++;
    seen.sum += latency;
    seen.least = latency < seen.least ? latency : seen.least;
    seen.most = latency > seen.most ? latency : seen.most;
    if (seen.count < ROUNDS) {
        *sent = wr_now(machine);
        if (wr_send(machine, event, queue) == WR_OK)
            return;
    }
    wr_free(event);
}

static void must(int code, int wanted, const char *what)
{
    if (code != wanted) {
        fprintf(stderr, "%s: answered %d, not %d\n", what, code, wanted);
        exit(1);
    }
}

int main(void)
{
    static const struct {
        uint32_t kind;
        const char *name;
    } kinds[] = {{WR_ATOMIC, "atomic"}, {WR_PARALLEL, "parallel"}, {WR_ORDERED, "ordered"}};
    const wr_config config = {.cores = 1, .events = 64, .burst = 1, .wait = WR_SPIN, .watch = 1};
    const wr_object object = {.receive = receive};
    const wr_limits limits = {.idle_rounds = 10};
    const wr_contract slow = {.distance = 3600000000000, .burst = 1, .budget = 1000, .deadline = 3600000000000};
    wr_machine *machine = wr_machine_new(&config);
    uint32_t pool, number, queue;
    char table[4096];
    wr_event *event;
    uint64_t bound;

    if (machine == NULL)
        return 1;
    must(wr_pool_create(machine, 16, 64, &pool), WR_OK, "pool");
    must(wr_object_create(machine, "latency", &object, NULL, &number), WR_OK, "object");
    must(wr_object_start(machine, number), WR_OK, "start");
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        must(wr_queue_create(machine, kinds[i].name, kinds[i].kind, 4, number, NULL, &queue), WR_OK, "queue");
        seen.count = seen.sum = seen.most = 0;
        seen.least = UINT64_MAX;
        event = wr_alloc(machine, pool, 64);
        *(uint64_t *)wr_event_data(event) = wr_now(machine);
        must(wr_send(machine, event, queue), WR_OK, "send");
        must(wr_dispatch(machine, 0, &limits, NULL), WR_OK, "dispatch");
        if (seen.count != ROUNDS)
            return 1;
        printf("%-9s least %llu, average %llu, most %llu ns\n", kinds[i].name, (unsigned long long)seen.least,
               (unsigned long long)(seen.sum / seen.count), (unsigned long long)seen.most);
    }
    /* One event an hour: the second is refused, and is still ours. */
    must(wr_queue_create(machine, "hourly", WR_ATOMIC, 7, number, &slow, &queue), WR_OK, "queue with a contract");
    must(wr_queue_bound(machine, queue, &bound), WR_OK, "bound");
    event = wr_alloc(machine, pool, 64);
    must(wr_send(machine, event, queue), WR_OK, "first send");
    event = wr_alloc(machine, pool, 64);
    must(wr_send(machine, event, queue), WR_TOO_SOON, "second send");
    wr_free(event);
    wr_table(machine, table, sizeof table);
    fputs(table, stdout);
    wr_machine_end(machine);
    return bound > 0 ? 0 : 1;
}
