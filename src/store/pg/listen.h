/* SPDX-License-Identifier: Apache-2.0 */
/* Listening for what wakes a relay: a thread with a connection of its own, which sends nothing but LISTEN and, now and then,
 * the question whether it is still worth while. Behind a pooler, or where `hikyaku init --notify` was not run, it hangs up and
 * looks again later. notify.c has the other end: what is run with every INSERT. */
#ifndef HK_STORE_PG_LISTEN_H
#define HK_STORE_PG_LISTEN_H

#include "store/store.h"

/* What there is to listen for: the outbox's oid; is there a trigger; does it fire; may this role use the flag?
 * The listening session has the search path that it was given: hence every name is qualified. */
#define HK_PG_WAKE_COLUMNS                                                                                   \
    "f.outbox::pg_catalog.int8, t.tgname IS NOT NULL, coalesce(t.tgenabled OPERATOR(pg_catalog.=) 'O' "      \
    "OR t.tgenabled OPERATOR(pg_catalog.=) 'A', false), CASE WHEN c.relkind OPERATOR(pg_catalog.=) 'S' "     \
    "THEN pg_catalog.has_sequence_privilege(f.wake, 'SELECT') "                                              \
    "AND pg_catalog.has_sequence_privilege(f.wake, 'UPDATE') ELSE false END"
#define HK_PG_WAKE_FROM                                                                                      \
    "FROM (SELECT pg_catalog.to_regclass('@outbox')::pg_catalog.oid, "                                       \
    "pg_catalog.to_regclass('@outbox_wake')::pg_catalog.oid) AS f (outbox, wake) "                           \
    "LEFT JOIN pg_catalog.pg_class c ON c.oid OPERATOR(pg_catalog.=) f.wake "                                \
    "LEFT JOIN pg_catalog.pg_trigger t ON t.tgrelid OPERATOR(pg_catalog.=) f.outbox "                        \
    "AND pg_catalog.concat('\"', t.tgname, '\"') OPERATOR(pg_catalog.=) '@@outbox_wake_up'"

/* Sessions that listen hold an advisory lock, shared, on this and the outbox's oid ("hiky"): so that `doctor` can count them,
 * whoever's they are. */
#define HK_PG_LISTENERS "1751739257"

struct hk_pg_listen_options {
    const char *url;
    void (*wake)(void *arg);
    void *arg;
    uint64_t look_ms; /* how often it is asked whether there is something to listen for */
    uint64_t backoff_min_ms, backoff_max_ms; /* between connections that fail */
};

/* hk_pg_listen with other times. */
enum hk_code hk_pg_listen_start(const struct hk_pg_listen_options *options, struct hk_listener **out_listener,
                                struct hk_err *err);

/* As store.h has them. */
enum hk_code hk_pg_listen(const char *url, void (*wake)(void *arg), void *arg,
                          struct hk_listener **out_listener, struct hk_err *err);
enum hk_listening hk_pg_listening(struct hk_listener *listener, char out_why[HK_LISTENING_WHY_MAX]);
void hk_pg_unlisten(struct hk_listener *listener);

#endif
