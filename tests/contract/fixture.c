/* SPDX-License-Identifier: Apache-2.0 */
/* The fixture. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "fixture.h"

struct certs certs;

int begin_with_certs(void **state)
{
    (void)state;
    (void)signal(SIGPIPE, SIG_IGN);
    certs_make(&certs);
    return 0;
}

int end_with_certs(void **state)
{
    (void)state;
    certs_remove(&certs);
    return 0;
}

struct hk_http_options options_for(const char *url)
{
    return (struct hk_http_options){.name = "billing",
                                    .url = url,
                                    .allow = loopback_allowed,
                                    .n_allow = 2,
                                    .libcurl = by_libcurl,
                                    .version = by_h2 ? 2 : 0};
}

void url_of(char out[64], const struct server *server, const char *scheme, const char *host)
{
    (void)snprintf(out, 64, "%s://%s:%d/hook", scheme, host, server_port(server));
}

char *filled(size_t n)
{
    char *text = malloc(n);
    assert_non_null(text);
    for (size_t i = 0; i < n; i++)
        text[i] = (char)('a' + i % 23);
    return text;
}

const struct step polite[8] = {{OP_REQUEST}, {OP_SEND, OK_EMPTY}, {OP_AGAIN}};

void set_up(struct fixture *f, const struct step *steps, const struct server_tls *tls, const char *host)
{
    f->server = server_start(steps, tls);
    url_of(f->url, f->server, tls ? "https" : "http", host);
    f->options = options_for(f->url);
    if (tls)
        f->options.ca_file = certs.ca;
}

void tear_down(struct fixture *f)
{
    client_close(&f->client);
    server_stop(f->server);
}

const struct hk_message *short_message(void)
{
    static struct hk_message msg;
    msg = message_of("{\"orderId\":42}", 14);
    return &msg;
}
