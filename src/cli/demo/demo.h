/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of `hikyaku demo`: a receiver that misbehaves, and an application that commits orders. */
#ifndef HK_CLI_DEMO_DEMO_H
#define HK_CLI_DEMO_DEMO_H

#include <stdbool.h>
#include <stdint.h>

#include <hikyaku/error.h>

/* ---- the receiver: an HTTP server of its own, which counts what really arrived ---- */

struct hk_demo_receiver;

struct hk_demo_counts {
    unsigned requests;
    unsigned accepted; /* answered 200, repeats included */
    unsigned unique;   /* different message ids that were accepted */
    unsigned unavailable, limited, refused, hung;
};

/* On a free port of 127.0.0.1. Answers 30 % with 503, some with 429 and Retry-After: 1, hangs once, and refuses with 422
 * what says "poison", with words that say so. */
enum hk_code hk_demo_receiver_start(uint64_t seed, struct hk_demo_receiver **out_receiver, unsigned *out_port,
                                    struct hk_err *err) HK_MUSTCHECK;
struct hk_demo_counts hk_demo_receiver_counts(struct hk_demo_receiver *receiver);
/* Was a message with this number accepted? */
bool hk_demo_receiver_has(struct hk_demo_receiver *receiver, unsigned order);
void hk_demo_receiver_stop(struct hk_demo_receiver *receiver);

/* ---- the application: orders and outbox rows in one transaction ---- */

/* Makes its own table `orders` in the database. */
enum hk_code hk_demo_app_open(const char *path, void **out_app, struct hk_err *err) HK_MUSTCHECK;
/* One order and its message, committed or rolled back together. */
enum hk_code hk_demo_app_order(void *app, unsigned order, bool poison, bool commit,
                               struct hk_err *err) HK_MUSTCHECK;
void hk_demo_app_close(void *app);

#endif
