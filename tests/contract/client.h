/* SPDX-License-Identifier: Apache-2.0 */
/* Drives a sink in tests: a loop, messages, and outcomes that outlive `done`. */
#ifndef HK_TESTS_CLIENT_H
#define HK_TESTS_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loop/loop.h"
#include "sink/http/http.h"
#include "sink/sink.h"

struct outcome {
    unsigned n_done; /* times that `done` ran: 1, or something is wrong */
    enum hk_fault fault;
    int status;
    bool possibly_delivered;
    uint64_t duration_ms;
    size_t n_headers, body_len;
    char retry_after[64];
    bool placed;
    int partition;
    int64_t sequence;
    char code[64];
    char body[4200], error[512], request_headers[8192], response_headers[16384], address[96];
};

struct client {
    struct hk_loop *loop;
    struct hk_sink *sink;
    struct hk_timer *guard; /* ends a test that hangs */
    unsigned want, got;
};

/* The HTTP sink has three wires, our own HTTP/1.1, libcurl and our own HTTP/2, and a suite runs once for each: `test_x`,
 * `test_x libcurl`, `test_x h2`. */
extern bool by_libcurl, by_h2;
void choose_wire(int argc, char **argv); /* from main */

/* A message with everything in it; change what the test is about. */
struct hk_message message_of(const char *payload, size_t len);

/* A loop, and no sink yet: for sinks of other kinds. */
void client_open_loop(struct client *c);
void client_open_http(struct client *c, const struct hk_http_options *options);
void client_close(struct client *c);
/* Starts one; the outcome is filled when client_wait returns. */
void client_send(struct client *c, const struct hk_message *msg, uint64_t timeout_ms, struct outcome *out);
void client_wait(struct client *c); /* for all */
void client_run_ms(struct client *c, uint64_t ms);
void client_deliver(struct client *c, const struct hk_message *msg, uint64_t timeout_ms, struct outcome *out);

extern const struct hk_cidr loopback_allowed[2]; /* 127.0.0.0/8 and ::1 */

#endif
