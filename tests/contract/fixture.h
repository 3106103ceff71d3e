/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the HTTP sink share: a scripted server and a client that talks to it. */
#ifndef HK_TESTS_FIXTURE_H
#define HK_TESTS_FIXTURE_H

#include "../unit/check.h"
#include "base/str.h"
#include "certs.h"
#include "client.h"
#include "server.h"

#define OK_EMPTY "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"

extern struct certs certs;          /* made by the group's set-up */
extern const struct step polite[8]; /* answers 200, always */

/* For cmocka_run_group_tests. */
int begin_with_certs(void **state);
int end_with_certs(void **state);

struct fixture {
    struct server *server;
    struct client client;
    char url[128];
    struct hk_http_options options;
};

/* With both loopbacks allowed. */
struct hk_http_options options_for(const char *url);
void url_of(char out[64], const struct server *server, const char *scheme, const char *host);
/* Starts the server; then change the options, and client_open_http. */
void set_up(struct fixture *f, const struct step *steps, const struct server_tls *tls, const char *host);
void tear_down(struct fixture *f);
const struct hk_message *short_message(void);
char *filled(size_t n); /* free it */

#endif
