/* SPDX-License-Identifier: Apache-2.0 */
/* OpenSSL, as far as a stream needs it. */
#ifndef HK_SINK_STREAM_TLS_H
#define HK_SINK_STREAM_TLS_H

#include "sink/stream/stream.h"

struct hk_tls_session;

/* What a step came to. */
enum hk_tls_step {
    HK_TLS_DONE = 0,   /* for reads and writes: so many bytes */
    HK_TLS_WANT_READ,  /* try again when there is something to read … */
    HK_TLS_WANT_WRITE, /* … or room to write */
    HK_TLS_END,        /* close_notify */
    HK_TLS_CUT,        /* the connection ended without one */
    HK_TLS_UNTRUSTED,  /* the certificate was not accepted */
    HK_TLS_UNAGREED,   /* the server does not speak the protocol that it was asked for */
    HK_TLS_FAILED
};

/* NULL: out of memory. `host` is what the certificate must name. */
struct hk_tls_session *hk_tls_session_new(struct hk_stream_tls *tls, int fd, const char *host);
void hk_tls_session_free(struct hk_tls_session *s);
enum hk_tls_step hk_tls_handshake(struct hk_tls_session *s);
enum hk_tls_step hk_tls_read(struct hk_tls_session *s, void *room, size_t len, size_t *out_len);
enum hk_tls_step hk_tls_write(struct hk_tls_session *s, const void *bytes, size_t len, size_t *out_len);
void hk_tls_goodbye(struct hk_tls_session *s);
/* Why the last step failed. */
void hk_tls_why(const struct hk_tls_session *s, char out[HK_STREAM_ERROR_MAX]);

#endif
