/* SPDX-License-Identifier: Apache-2.0 */
/* A byte stream to another host, plain or by TLS, that never blocks: for sinks with a protocol of their own. It looks the name
 * up, connects to one address after the other, and checks each against the address policy before it does.
 *
 * All of it belongs to the loop's thread. The calls run from the loop, never from inside a function of this file; each of them
 * may close the stream. The process ignores SIGPIPE (OpenSSL writes to connections that are gone). */
#ifndef HK_SINK_STREAM_STREAM_H
#define HK_SINK_STREAM_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hikyaku/error.h>
#include <hikyaku/facts.h>

#include "base/cidr.h"
#include "loop/loop.h"

struct hk_stream;

/* ---- what TLS needs, read once ---- */

struct hk_stream_tls;

struct hk_stream_tls_files {
    const char *ca_file;              /* NULL: the system's */
    const char *cert_file, *key_file; /* ours; key_file NULL: it is in the cert_file */
    /* "sha256//…", parted by semicolons: the server's public key must be one of these, too. NULL: any. */
    const char *pins;
    const char *alpn; /* the protocol that the server must agree to, "h2"; NULL: none is asked for */
};

/* HK_INVALID names the file. `pins` and `alpn` are not copied. */
enum hk_code hk_stream_tls_new(const struct hk_stream_tls_files *files, struct hk_stream_tls **out_tls,
                               struct hk_err *err) HK_MUSTCHECK;
void hk_stream_tls_free(struct hk_stream_tls *tls); /* accepts NULL; streams that use it may still be open */

/* ---- the stream ---- */

#define HK_STREAM_ERROR_MAX 320

struct hk_stream_end {
    enum hk_fault fault; /* never NONE: RESET also for an orderly end */
    const char *text;    /* one line for a person */
    bool orderly;        /* the other side ended it: the end of a plain stream, or close_notify */
};

struct hk_stream_calls {
    void (*opened)(void *arg); /* connected, and with TLS verified */
    void (*came)(void *arg, struct hk_str bytes);
    void (*drained)(void *arg); /* all that was written is handed to the system */
    /* Exactly once, and the last of the calls, unless it was closed before. The stream is still to be closed. */
    void (*ended)(void *arg, const struct hk_stream_end *end);
};

struct hk_stream_options {
    const char *host; /* a name, or an address without brackets */
    uint16_t port;
    struct hk_stream_tls *tls;   /* NULL: plain */
    const struct hk_cidr *allow; /* though not of the public internet */
    size_t n_allow;
    uint64_t connect_timeout_ms; /* name, TCP and TLS; 0 = 10 s */
    size_t max_pending_bytes;    /* written and not yet out; 0 = 64 MiB */
    bool drained_late;           /* `drained` runs only after a flush that could not hand over all */
    const struct hk_stream_calls *calls;
    void *arg;
};

/* `options` is copied but for `tls`. HK_NOMEM, HK_TOOBIG (the name). */
enum hk_code hk_stream_open(struct hk_loop *loop, const struct hk_stream_options *options,
                            struct hk_stream **out_stream, struct hk_err *err) HK_MUSTCHECK;
/* Says goodbye if that can be done at once. None of the calls runs again. Accepts NULL. */
void hk_stream_close(struct hk_stream *stream);

/* From plain to TLS in the middle, for protocols that begin in plain; from inside `came`, after all that came was read, with nothing
 * pending. `opened` runs once more when the handshake is done. */
void hk_stream_secure(struct hk_stream *stream, struct hk_stream_tls *tls);
/* Keeps the bytes; they go out at the next hk_stream_flush, and then by themselves. HK_TOOBIG: max_pending_bytes. */
enum hk_code hk_stream_write(struct hk_stream *stream, const void *bytes, size_t len) HK_MUSTCHECK;
void hk_stream_flush(struct hk_stream *stream);
/* Nothing lies there unread, and the other side has not ended it, as far as the system knows: asks it. */
bool hk_stream_is_quiet(const struct hk_stream *stream);
size_t hk_stream_pending(const struct hk_stream *stream);
/* Of all bytes that were ever written, those that were handed to the system: what lies behind has not left us. */
uint64_t hk_stream_sent(const struct hk_stream *stream);
const char *hk_stream_address(const struct hk_stream *stream); /* "192.0.2.1:5672"; "" = never connected */

#endif
