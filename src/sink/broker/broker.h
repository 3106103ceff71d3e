/* SPDX-License-Identifier: Apache-2.0 */
/* What the sinks of all brokers share: deliveries that wait for the connection, deliveries that wait for their confirm, deadlines,
 * room, and the report. A kind adds how a message is written, and what the broker's answers mean.
 *
 * A delivery is a flight: QUEUED until it can be written, WRITTEN until it is settled, then ENDED; `done` runs from a timer of the
 * sink, never from inside a callback of the link. A flight whose time is up ends at once; what the broker says of it later finds its
 * number gone (struct hk_flights). */
#ifndef HK_SINK_BROKER_BROKER_H
#define HK_SINK_BROKER_BROKER_H

#include "sink/broker/fields.h"
#include "sink/broker/link.h"
#include "sink/sink.h"

#define HK_BROKER_WINDOW 1000 /* deliveries of one sink: what brokers are quick with */

struct hk_broker;
struct hk_flight;

struct hk_flight_list {
    struct hk_flight *first, *last;
    size_t n;
};

struct hk_flight {
    struct hk_flight *next, *prev;
    struct hk_flight_list *in;
    struct hk_broker *sink;
    const struct hk_message *msg;
    uint32_t attempt;
    hk_sink_done_fn *done;
    void *arg;
    uint64_t start_ms, deadline_ms;
    uint64_t number;     /* of the kind: a delivery tag, a request's number */
    uint64_t written_at; /* of the stream: its last byte */
    unsigned redirects;  /* how often it was written anew */
    size_t company;      /* how many may travel in its request (load.h); 0: as many as the sink takes */
    bool returned;       /* the broker has given it back, and its confirm is still to come */

    /* the verdict */
    enum hk_fault fault;
    int status; /* of HTTP; 0: there was none, or it is another protocol */
    bool possibly_delivered, placed;
    int32_t partition;
    int64_t sequence;
    uint64_t duration_ms;
    char code[48], words[512], error[HK_LINK_TEXT_MAX + 96];
    char address[HK_IP_TEXT_MAX + 16];
    const struct hk_sink_result *answer; /* of the kind, for hk_broker_report: what came, … */
    struct hk_str part, hint; /* … what of it is about this one, and for how long this one is to wait */
};

/* Flights by the numbers that they were written under, first to last. */
struct hk_flights {
    struct hk_flight **at; /* a ring; NULL: settled */
    size_t room;           /* a power of 2 */
    uint64_t first, next;  /* numbers; first == next: empty */
};

/* A kind. Where a function says NULL, it may be left out. */
struct hk_broker_ops {
    const char *name;
    size_t bytes;                   /* of the kind's longer struct */
    size_t target_max, scratch_max; /* of hk_broker.target and .scratch */
    const struct hk_fields_rule *fields;
    /* For hk_broker_open: what the kind adds, from its own options; a kind with a link joins it here. On error `fini` runs. */
    enum hk_code (*open)(struct hk_broker *b, const void *options, struct hk_err *err);
    /* A kind without a link (hk_broker_join is never called) has this one instead of the ones for links: writes what is queued, and
     * knows the deadlines of what is written (hk_flight_written). NULL: there is a link. */
    void (*pump)(struct hk_broker *b);
    /* A delivery has been queued. NULL: nothing. */
    void (*queued)(struct hk_broker *b, struct hk_flight *flight, const struct hk_delivery *delivery);
    /* The link is ready: make ready what this destination needs. Then hk_broker_pump. NULL: nothing. */
    void (*begin)(struct hk_broker *b);
    /* The link is lost: forget what was made ready. NULL: nothing. */
    void (*end)(struct hk_broker *b);
    /* May this one be written now? NULL: always. */
    bool (*may_write)(struct hk_broker *b, const struct hk_flight *flight);
    /* Writes it, and gives it its number. HK_INVALID, HK_TOOBIG: it can never be, for the reason in `err`. HK_NOMEM. */
    enum hk_code (*write)(struct hk_broker *b, struct hk_flight *flight, struct hk_err *err);
    /* A written flight has ended though the broker has not settled it: its number is to mean nothing. */
    void (*forget)(struct hk_broker *b, struct hk_flight *flight);
    /* Does the broker take nothing at the moment? Its words, or NULL. NULL: it always takes. */
    const char *(*blocked)(const struct hk_broker *b);
    /* Where it goes, as members of a JSON object. */
    void (*show)(struct hk_broker *b, const struct hk_message *msg, struct hk_json *json);
    /* Adds what the kind knows to a report. NULL: nothing. */
    void (*report)(const struct hk_flight *flight, struct hk_sink_result *result);
    /* From the sink's own timer, after hk_broker_later; may change the link. NULL: never. */
    void (*later)(struct hk_broker *b);
    /* The relay ends: ends what was written, soon. NULL: at once, as possibly delivered. */
    void (*abort)(struct hk_broker *b);
    /* Leaves the connection tidy, and frees what the longer struct holds; also of one that was not opened to the end. */
    void (*fini)(struct hk_broker *b);
};

/* Each kind has a longer one. */
struct hk_broker {
    struct hk_sink sink;
    struct hk_sink_ops sink_ops;
    const struct hk_broker_ops *ops;
    struct hk_loop *loop;
    struct hk_link *link; /* NULL: not joined yet */
    struct hk_link_user user;
    char *name;            /* of the destination */
    char *ce_source;       /* NULL: no CloudEvents */
    const char *body_type; /* of what goes out in place of the payload; NULL: the payload goes out */
    size_t window;
    struct hk_flight_list queued, written, ended, spare;
    struct hk_timer *soon, *clock;
    uint64_t clock_ms; /* what it is set to; UINT64_MAX = nothing */
    bool was_busy, running, closed, wants_later;
    struct hk_fields fields;
    struct hk_buf target;  /* where a message goes, filled in: hk_broker_target */
    struct hk_buf scratch; /* for the kind, while it writes a message */
    struct hk_buf shown_request, shown_response;
};

struct hk_broker_options {
    const char *name; /* the destination's */
    bool cloudevents;
    const char *cloudevents_source; /* NULL: /hikyaku */
    size_t window;                  /* 0: HK_BROKER_WINDOW */
};

/* A destination of this kind: its memory, what all kinds have, and then ops->open with `kind_options`. HK_INVALID, HK_NOMEM, with a message
 * that names the destination. */
enum hk_code hk_broker_open(const struct hk_broker_ops *ops, struct hk_loop *loop,
                            const struct hk_broker_options *options, const void *kind_options,
                            struct hk_sink **out_sink, struct hk_err *err) HK_MUSTCHECK;
/* The first half alone. `b` is zeroed memory of the kind's longer struct, from hk_mem_zalloc; it belongs to hk_broker_destroy from here on,
 * whatever is returned. */
enum hk_code hk_broker_init(struct hk_broker *b, const struct hk_broker_ops *ops, struct hk_loop *loop,
                            const struct hk_broker_options *options, struct hk_err *err) HK_MUSTCHECK;
void hk_broker_destroy(struct hk_broker *b);

/* ---- for the kind ---- */

/* A copy of a name's pattern (payload/names.h). HK_INVALID, with a message that begins with `what`: it is none; HK_NOMEM. */
enum hk_code hk_broker_pattern(const char *what, const char *pattern, char **out,
                               struct hk_err *err) HK_MUSTCHECK;
/* A pattern filled in for this message, in b->target, whose status says whether that was possible. `msg` NULL: without a message. */
struct hk_str hk_broker_target(struct hk_broker *b, const char *pattern, const struct hk_message *msg);
enum hk_code hk_broker_join(struct hk_broker *b, const struct hk_link_options *options,
                            struct hk_err *err) HK_MUSTCHECK;
/* The same, from one link to another; on error it stays where it is. Only from `later`. */
enum hk_code hk_broker_change(struct hk_broker *b, const struct hk_link_options *options,
                              struct hk_err *err) HK_MUSTCHECK;
struct hk_broker *hk_broker_of(struct hk_link_user *user);
void hk_broker_pump(struct hk_broker *b);     /* writes what may be written */
void hk_broker_has_room(struct hk_broker *b); /* the broker takes messages again */
/* Looks after deadlines, and writes what may be written, at that time. */
void hk_broker_look_at(struct hk_broker *b, uint64_t at_ms);
/* Reports now all that has ended, for a kind whose answers do not outlive the callback that they come in. Only from a callback of the
 * loop. False: the sink was closed, and is gone. */
bool hk_broker_report(struct hk_broker *b);
/* Runs `later` soon. */
void hk_broker_later(struct hk_broker *b);
/* Of a kind without a link: it is being sent, and the kind will end it in time. */
void hk_flight_written(struct hk_flight *f);
/* It was written, and the broker has surely not taken it: it is written again. */
void hk_flight_requeue(struct hk_flight *f);
/* It was answered with that status of HTTP. */
void hk_flight_judged(struct hk_flight *f, int status);
void hk_flight_confirm(struct hk_flight *f, int32_t partition, int64_t sequence);
/* `code` and `words` may be NULL; `error` NULL: made of both. */
void hk_flight_fail(struct hk_flight *f, enum hk_fault fault, bool possibly_delivered, const char *code,
                    const char *words, const char *error);
/* It cannot be written: HK_INVALID and HK_TOOBIG never, any other code not now. */
void hk_flight_refuse(struct hk_flight *f, enum hk_code rc, const char *why);
/* All that are written, or that are queued. A lost confirm may be a delivery: of the written ones it is told of those whose last byte
 * has left us. */
void hk_broker_fail_written(struct hk_broker *b, enum hk_fault fault, const char *code, const char *words,
                            const char *error);
void hk_broker_fail_queued(struct hk_broker *b, enum hk_fault fault, const char *code, const char *words,
                           const char *error);

/* ---- numbers ---- */

void hk_flights_fini(struct hk_flights *f);
void hk_flights_reset(struct hk_flights *f, uint64_t first); /* empty; the next number is `first` */
bool hk_flights_add(struct hk_flights *f,
                    struct hk_flight *flight); /* gives it its number; false: no memory, or too many */
/* A number that is nobody's. False: as above. */
bool hk_flights_skip(struct hk_flights *f);
struct hk_flight *hk_flights_get(const struct hk_flights *f,
                                 uint64_t number); /* NULL: settled, forgotten, or never given */
void hk_flights_drop(struct hk_flights *f, uint64_t number);

#endif
