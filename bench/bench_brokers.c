/* SPDX-License-Identifier: Apache-2.0 */
/* The least that a publisher can be, for bench/publishers.py to compare a relay with: one blocking socket, one window, the same confirms.
 * Usage: bench_brokers amqp|nats|redis PORT COUNT WINDOW BYTES; prints seconds, and CPU seconds. */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/parse.h"
#include "base/str.h"
#include "sink/amqp/wire.h"
#include "sink/nats/wire.h"
#include "sink/redis/wire.h"

enum {
    IN_MAX = 1 << 20,
    OUT_MAX = 64 << 20,
    BYTES_MAX = 1 << 16
};

struct bare {
    int fd;
    struct hk_buf out;
    char *in;
    size_t in_len;
    unsigned confirmed;
    size_t bytes;
    char body[BYTES_MAX];
};

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static void flush(struct bare *b)
{
    size_t at = 0;
    if (hk_buf_status(&b->out) != HK_OK)
        die("memory");
    while (at < b->out.len) {
        ssize_t n = write(b->fd, b->out.data + at, b->out.len - at);
        if (n <= 0)
            die("write");
        at += (size_t)n;
    }
    hk_buf_reset(&b->out);
}

static void fill(struct bare *b)
{
    ssize_t n = read(b->fd, b->in + b->in_len, IN_MAX - b->in_len);
    if (n <= 0)
        die("read");
    b->in_len += (size_t)n;
}

static void eat(struct bare *b, size_t used)
{
    memmove(b->in, b->in + used, b->in_len - used);
    b->in_len -= used;
}

/* ---- AMQP ---- */

static void amqp_wait(struct bare *b, uint32_t id)
{
    struct hk_amqp_frame f;
    struct hk_amqp_method m = {.id = 0};
    const char *why = "";
    while (m.id != id) {
        size_t used = 0;
        if (hk_amqp_read_frame((struct hk_str){b->in, b->in_len}, &f, &used, &why) != HK_AMQP_WHOLE) {
            fill(b);
            continue;
        }
        (void)hk_amqp_read_method(f.payload, &m);
        eat(b, used);
    }
}

static void amqp_open(struct bare *b)
{
    (void)hk_buf_add(&b->out, "AMQP\0\0\x09\x01", 8);
    flush(b);
    amqp_wait(b, HK_AMQP_START);
    size_t at = hk_amqp_begin_method(&b->out, 0, HK_AMQP_START_OK);
    hk_amqp_end_table(&b->out, hk_amqp_begin_table(&b->out));
    hk_amqp_short(&b->out, hk_str_of("PLAIN"));
    hk_amqp_long(&b->out, (struct hk_str){"\0guest\0guest", 12});
    hk_amqp_short(&b->out, hk_str_of("en_US"));
    hk_amqp_end(&b->out, at);
    flush(b);
    amqp_wait(b, HK_AMQP_TUNE);
    at = hk_amqp_begin_method(&b->out, 0, HK_AMQP_TUNE_OK);
    hk_amqp_u16(&b->out, 1);
    hk_amqp_u32(&b->out, 131072);
    hk_amqp_u16(&b->out, 0);
    hk_amqp_end(&b->out, at);
    at = hk_amqp_begin_method(&b->out, 0, HK_AMQP_OPEN);
    hk_amqp_short(&b->out, hk_str_of("/"));
    hk_amqp_u16(&b->out, 0);
    hk_amqp_end(&b->out, at);

    static const enum hk_amqp_id ids[] = {HK_AMQP_CHANNEL_OPEN, HK_AMQP_SELECT};

    for (size_t i = 0; i < 2; i++) {
        at = hk_amqp_begin_method(&b->out, 1, ids[i]);
        hk_amqp_u8(&b->out, 0);
        hk_amqp_end(&b->out, at);
    }
    flush(b);
    amqp_wait(b, HK_AMQP_SELECT_OK);
}

static void amqp_send(struct bare *b, unsigned n)
{
    char id[16];
    (void)snprintf(id, sizeof id, "m-%05u", n);
    size_t at = hk_amqp_begin_method(&b->out, 1, HK_AMQP_PUBLISH);
    hk_amqp_u16(&b->out, 0);
    hk_amqp_short(&b->out, hk_str_of(""));
    hk_amqp_short(&b->out, hk_str_of("bench"));
    hk_amqp_u8(&b->out, 1);
    hk_amqp_end(&b->out, at);
    at = hk_amqp_begin(&b->out, HK_AMQP_HEADER, 1);
    hk_amqp_u32(&b->out, 60u << 16);
    hk_amqp_u64(&b->out, b->bytes);
    hk_amqp_u16(&b->out, 1u << 12 | 1u << 7); /* delivery mode, message id */
    hk_amqp_u8(&b->out, 2);
    hk_amqp_short(&b->out, hk_str_of(id));
    hk_amqp_end(&b->out, at);
    at = hk_amqp_begin(&b->out, HK_AMQP_BODY, 1);
    (void)hk_buf_add(&b->out, b->body, b->bytes);
    hk_amqp_end(&b->out, at);
}

static size_t amqp_read(struct bare *b, struct hk_str in)
{
    struct hk_amqp_frame f;
    struct hk_amqp_method m;
    const char *why = "";
    size_t used = 0;
    if (hk_amqp_read_frame(in, &f, &used, &why) != HK_AMQP_WHOLE)
        return 0;
    if (f.type == HK_AMQP_METHOD && hk_amqp_read_method(f.payload, &m) && m.id == HK_AMQP_ACK)
        b->confirmed = m.multiple ? (unsigned)m.tag : b->confirmed + 1;
    return used;
}

/* ---- NATS ---- */

static void nats_open(struct bare *b)
{
    (void)hk_buf_adds(
        &b->out,
        "CONNECT {\"verbose\":false,\"pedantic\":false,\"headers\":true,\"no_responders\":true}\r\nSUB _INBOX.b.* 1\r\n");
    flush(b);
}

static void nats_send(struct bare *b, unsigned n)
{
    char head[64];
    int len = snprintf(head, sizeof head, "NATS/1.0\r\nNats-Msg-Id: b-%05u\r\n\r\n", n);
    (void)hk_buf_addf(&b->out, "HPUB bench.b _INBOX.b.%u %d %zu\r\n%s", n, len, (size_t)len + b->bytes, head);
    (void)hk_buf_add(&b->out, b->body, b->bytes);
    (void)hk_buf_adds(&b->out, "\r\n");
}

static size_t nats_read(struct bare *b, struct hk_str in)
{
    struct hk_nats_op op;
    const char *why = "";
    size_t used = 0;
    if (hk_nats_read(in, &op, &used, &why) != HK_NATS_WHOLE)
        return 0;
    b->confirmed += op.kind == HK_NATS_MSG;
    return used;
}

/* ---- Redis ---- */

static void redis_open(struct bare *b)
{
    (void)b;
}

static void redis_send(struct bare *b, unsigned n)
{
    hk_resp_begin(&b->out, 7);
    hk_resp_text(&b->out, "XADD");
    hk_resp_text(&b->out, "bench");
    hk_resp_text(&b->out, "*");
    hk_resp_text(&b->out, "id");
    hk_resp_u64(&b->out, n);
    hk_resp_text(&b->out, "data");
    hk_resp_word(&b->out, (struct hk_str){b->body, b->bytes});
}

static size_t redis_read(struct bare *b, struct hk_str in)
{
    struct hk_resp reply;
    const char *why = "";
    size_t used = 0;
    if (hk_resp_read(in, &reply, &used, &why) != HK_RESP_WHOLE)
        return 0;
    b->confirmed++;
    return used;
}

/* ---- one run ---- */

static const struct {
    const char *name;
    void (*open)(struct bare *b);
    void (*send)(struct bare *b, unsigned n);
    size_t (*read)(struct bare *b, struct hk_str in);
} kinds[] = {{"amqp", amqp_open, amqp_send, amqp_read},
             {"nats", nats_open, nats_send, nats_read},
             {"redis", redis_open, redis_send, redis_read}};

static unsigned number(const char *text)
{
    uint64_t n = 0;
    if (hk_parse_u64(hk_str_of(text), &n, NULL) != HK_OK || n > 10000000)
        die(text);
    return (unsigned)n;
}

static double seconds(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void run(struct bare *b, size_t kind, unsigned count, unsigned window)
{
    unsigned sent = 0;
    while (b->confirmed < count) {
        while (sent < count && sent - b->confirmed < window)
            kinds[kind].send(b, sent++);
        flush(b);
        fill(b);
        size_t at = 0, used;
        while ((used = kinds[kind].read(b, (struct hk_str){b->in + at, b->in_len - at})) > 0)
            at += used;
        eat(b, at);
    }
}

int main(int argc, char **argv)
{
    static struct bare b;
    struct rusage use;
    size_t kind = 0;
    if (argc != 6)
        return 0; /* among the other benches there is nothing to do: bench/publishers.py starts it */
    while (kind < sizeof kinds / sizeof kinds[0] && strcmp(kinds[kind].name, argv[1]) != 0)
        kind++;
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)number(argv[2])),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    unsigned count = number(argv[3]), window = number(argv[4]);
    b.bytes = number(argv[5]);
    b.fd = socket(AF_INET, SOCK_STREAM, 0);
    b.in = malloc(IN_MAX);
    hk_buf_init(&b.out, OUT_MAX);
    if (kind == sizeof kinds / sizeof kinds[0] || b.bytes > sizeof b.body || !b.in ||
        connect(b.fd, (struct sockaddr *)&at, sizeof at) != 0)
        die("start");
    (void)setsockopt(b.fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    memset(b.body, 'x', sizeof b.body);
    kinds[kind].open(&b);
    double began = seconds();
    run(&b, kind, count, window);
    double took = seconds() - began;
    (void)getrusage(RUSAGE_SELF, &use);
    double cpu = (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
                 (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1e6;
    printf("%.4f %.4f\n", took, cpu);
    hk_buf_fini(&b.out);
    free(b.in);
    (void)close(b.fd);
    return 0;
}
