/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/2 for the scripted server, so that the suites that speak of HTTP/1.1 hold for a client of HTTP/2 as well: requests become
 * text of HTTP/1.1, one after the other, and the script's text becomes the frames of an answer. What is no HTTP/1.1 goes out
 * as it is. Bodies end by Content-Length, or with the connection. */
#ifndef HK_TESTS_H2_GATE_H
#define HK_TESTS_H2_GATE_H

#include <stdbool.h>
#include <stddef.h>

struct h2_gate;

struct h2_gate_calls {
    bool (*write)(void *arg, const char *bytes, size_t len); /* to the client; false: it is gone */
    void (*text)(void *arg, const char *bytes, size_t len);  /* of a request */
    void (*asked)(void *arg);                                /* a request came whole, in front or not */
    bool (*read)(void *arg); /* waits a little for bytes, and calls h2_gate_came; false: the client is gone */
    void *arg;
};

struct h2_gate *h2_gate_new(const struct h2_gate_calls *calls);
void h2_gate_free(struct h2_gate *gate);                                /* accepts NULL */
bool h2_gate_came(struct h2_gate *gate, const char *bytes, size_t len); /* false: the client is gone */
/* The script answers. Returns when all of it is out; false: the client does not want it. */
bool h2_gate_answer(struct h2_gate *gate, const char *text, size_t len);

#endif
