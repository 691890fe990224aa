/* An event machine with a worst-case contract: the C face of the crate `runtime`.
 *
 * Semantics are OpenEM's where it has any: an event is the application's from alloc or receive until send or free; a send that
 * fails leaves it with the caller; objects receive between start and stop only. See docs/runtime.md.
 * All times are ns. Functions answer 0 or a WR_ error.
 */
#ifndef WORSTCASE_RUNTIME_H
#define WORSTCASE_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wr_machine wr_machine;
/* Owned by whoever has the pointer. */
typedef struct wr_event wr_event;
/* A thread that makes an event of each read of a descriptor. */
typedef struct wr_source wr_source;

enum wr_error {
    WR_OK = 0,
    WR_POOL_EMPTY = 1,
    WR_TOO_LARGE = 2,
    WR_NO_SUCH_QUEUE = 3,
    WR_NO_SUCH_THING = 4,
    WR_WRONG_KIND = 5,
    WR_NO_ROOM = 6,
    WR_TOO_SOON = 7,   /* the queue's contract allows no other event yet */
    WR_ORDER_FULL = 8,
    WR_WRONG_STATE = 9,
    WR_START_FAILED = 10,
    WR_TOO_NEAR = 11,
    WR_TOO_FAR = 12,
    WR_CANCELLED = 13, /* the event is the caller's again */
    WR_GROUP_BUSY = 14,
    WR_GROUP_IDLE = 15,
    WR_GROUP_STALE = 16,
    WR_NO_SUCH_CORE = 17,
    WR_DEADLINE = 18,  /* a bound exceeds its deadline */
    WR_OVERLOAD = 19,  /* no bound exists */
    WR_PANIC = 20,
    WR_NULL = 21,      /* a pointer that must not be null was */
    WR_SYSTEM = 22,    /* no descriptor, no thread or no memory could be had from the kernel */
    WR_APPLICATION = 1000
};

enum wr_kind { WR_ATOMIC = 0, WR_PARALLEL = 1, WR_ORDERED = 2, WR_LOCAL = 3, WR_UNSCHEDULED = 4 };

enum wr_wait { WR_SPIN = 0, WR_PAUSE = 1, WR_BLOCK = 2 };

typedef struct {
    uint32_t cores;
    uint32_t events;   /* of all pools together */
    uint32_t burst;    /* events of a queue before rings and timers are looked at again; 1 gives the least bounds */
    uint32_t wait;     /* enum wr_wait */
    uint32_t watch;    /* 1: run and response times are measured */
    uint32_t publish;  /* receives of a core that are kept for `worstcase guard --pid`; 0: none */
} wr_config;

/* What may arrive, how long it runs, by when it is done. */
typedef struct {
    uint64_t distance;
    uint32_t burst;
    uint64_t budget;
    uint64_t deadline;
} wr_contract;

/* Functions of an object; all but receive may be null. start and start_local answer 0, or the start fails. */
typedef struct {
    int (*start)(void *context, wr_machine *machine);
    int (*start_local)(void *context, wr_machine *machine);
    void (*receive)(void *context, wr_machine *machine, wr_event *event, uint32_t queue);
    void (*stop_local)(void *context, wr_machine *machine);
    void (*stop)(void *context, wr_machine *machine);
} wr_object;

typedef struct {
    uint64_t rounds, events, nanos, idle_rounds; /* 0: no limit */
} wr_limits;

typedef struct {
    uint64_t rounds, events, nanos;
} wr_outcome;

wr_machine *wr_machine_new(const wr_config *config); /* null for a configuration that cannot be */
void wr_machine_end(wr_machine *machine);            /* no core may dispatch any more */

int wr_pool_create(wr_machine *, uint32_t count, uint32_t size, uint32_t *pool);
int wr_object_create(wr_machine *, const char *name, const wr_object *functions, void *context, uint32_t *object);
int wr_object_start(wr_machine *, uint32_t object);
int wr_object_stop(wr_machine *, uint32_t object);
/* object is ignored for unscheduled queues; contract may be null; level 0 to 7. */
int wr_queue_create(wr_machine *, const char *name, uint32_t kind, uint32_t level, uint32_t object,
                    const wr_contract *contract, uint32_t *queue);
int wr_queue_remove(wr_machine *, uint32_t queue);
/* The bound on a queue's response; WR_NO_SUCH_THING without a contract. */
int wr_queue_bound(wr_machine *, uint32_t queue, uint64_t *nanos);

wr_event *wr_alloc(wr_machine *, uint32_t pool, uint32_t size); /* null: the pool is empty */
void wr_free(wr_event *event);
void *wr_event_data(wr_event *event);
uint32_t wr_event_size(const wr_event *event);
/* From receive functions and from other threads. The event stays with the caller where this does not answer 0. */
int wr_send(wr_machine *, wr_event *event, uint32_t queue);
wr_event *wr_take(wr_machine *, uint32_t queue); /* of an unscheduled queue; null: none is there */

/* Makes the calling thread the core until a limit is reached. One thread a core at a time. */
int wr_dispatch(wr_machine *, uint32_t core, const wr_limits *limits, wr_outcome *outcome);
uint64_t wr_now(const wr_machine *);
uint32_t wr_core(void); /* UINT32_MAX where the caller is none */

/* Inside receive functions. */
void wr_atomic_processing_end(void);
void wr_ordered_processing_end(void);

int wr_group_create(wr_machine *, uint32_t *group);
int wr_group_apply(wr_machine *, uint32_t group, uint32_t count, wr_event *notification, uint32_t queue);
int wr_send_group(wr_machine *, wr_event *event, uint32_t queue, uint32_t group);

int wr_timeout_create(wr_machine *, uint32_t queue, uint32_t *timeout);
int wr_timeout_set(uint32_t timeout, uint64_t due, uint64_t period, wr_event *event);
int wr_timeout_acknowledge(wr_event *event);

/* What a source's events hold; the bytes are filled up to a multiple of 8 by zeroes. Events of its pool have 16 bytes more than
 * wr_source_spec.bytes, rounded up to 8. */
typedef struct {
    uint64_t length;  /* bytes that were read */
    uint64_t read_at; /* when, as wr_now has it */
    uint8_t bytes[];
} wr_source_data;

typedef struct {
    const char *name; /* the thread's; 15 bytes are shown */
    uint32_t pool;
    uint32_t bytes;   /* of a read, at most: 4 of UIO, 8 of an eventfd or a timerfd, those of a datagram */
    uint32_t queue;
    int (*before)(void *context); /* on the source's thread before each wait, as UIO may need it; may be null. Not 0: an errno that ends it */
    void *context;
} wr_source_spec;

enum { WR_SOURCE_GOES_ON = -1 };

typedef struct {
    uint64_t sent;
    uint64_t refused; /* reads that are lost: the pool was empty, or the queue refused */
    int32_t ended;    /* WR_SOURCE_GOES_ON; 0 at the end of what it reads from; else the errno of the call that ended it */
} wr_source_figures;

/* Starts one with the calling thread's policy, priority and CPUs. The descriptor is the source's from then on, and closed where this
 * fails. */
int wr_source_start(wr_machine *, const wr_source_spec *spec, int descriptor, wr_source **source);
int wr_source_read(const wr_source *source, wr_source_figures *figures);
void wr_source_end(wr_source *source); /* waits until its thread has ended */

/* Worst observed against bound, as text; how many bytes it has, without the 0 at its end. */
size_t wr_table(wr_machine *, char *text, size_t size);

#ifdef __cplusplus
}
#endif
#endif
