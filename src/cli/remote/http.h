/* SPDX-License-Identifier: Apache-2.0 */
/* One request at a time to a relay's HTTP API, by libcurl. The connection is kept for the next one. */
#ifndef HK_CLI_REMOTE_HTTP_H
#define HK_CLI_REMOTE_HTTP_H

#include "base/buf.h"

struct hk_remote_http;

struct hk_remote_place {
    const char *server;  /* https://host:port, http://…, or unix:/path/of/the/socket */
    const char *token;   /* NULL: none */
    const char *ca_file; /* NULL: the system's */
};

#define HK_REMOTE_HEADERS 4

struct hk_remote_call {
    const char *method;
    const char *path; /* from / on, encoded */
    const char *content_type;
    struct hk_str body;
    const char *headers[HK_REMOTE_HEADERS]; /* "If-Match: …"; up to a NULL */
    /* Called about once a second while nothing happens; true ends the request. May be NULL. */
    bool (*stop)(void *arg);
    void *arg;
    /* Takes the body of a 2xx as it comes, in place of the answer's buffer; false ends the request (HK_CANCELLED). Such an answer may take
     * as long as it likes while something comes. NULL: the body is kept. */
    bool (*take)(void *arg, struct hk_str bytes);
    void *take_arg;
};

struct hk_remote_answer {
    long status;
    bool is_problem; /* application/problem+json */
    struct hk_buf body;
};

/* HK_INVALID: no such address; HK_NOMEM. */
enum hk_code hk_remote_http_new(const struct hk_remote_place *place, struct hk_remote_http **out_http,
                                struct hk_err *err) HK_MUSTCHECK;
void hk_remote_http_free(struct hk_remote_http *http);
/* HK_OK: there is an answer, whatever its status. HK_UNAVAILABLE: the server cannot be reached; HK_TIMEOUT; HK_CANCELLED; HK_TOOBIG.
 * HK_IO: the answer began, but its end is missing. `out->body` is the caller's to free in any case. */
enum hk_code hk_remote_http_ask(struct hk_remote_http *http, const struct hk_remote_call *call,
                                struct hk_remote_answer *out, struct hk_err *err) HK_MUSTCHECK;

#endif
