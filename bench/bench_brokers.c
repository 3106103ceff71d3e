/* SPDX-License-Identifier: Apache-2.0 */
/* The least that a publisher can be, for bench/brokers.py to compare a relay with: one blocking socket, one
 * window, the same records and confirms.
 * Usage: bench_brokers amqp|mqtt|nats|redis PORT COUNT WINDOW BYTES; prints messages a second, and CPU microseconds a message. */
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
#include "sink/mqtt/wire.h"
#include "sink/nats/wire.h"
#include "sink/redis/wire.h"

enum {
    IN_MAX = 1 << 20,
    OUT_MAX = 64 << 20,
    BYTES_MAX = 1 << 16
};

#define TYPE "application/json"

struct bare {
    int fd;
    struct hk_buf out;
    char *in;
    size_t in_len;
    unsigned sent, confirmed, window;
    char id[40]; /* of the message: a new one in each run, for brokers that remember them */
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

static void amqp_send(struct bare *b)
{
    enum {
        PROPERTIES = 1u << 15 | 1u << 13 | 1u << 12 | 1u << 7 | 1u << 6 | 1u << 5
    };

    size_t at = hk_amqp_begin_method(&b->out, 1, HK_AMQP_PUBLISH);
    hk_amqp_u16(&b->out, 0);
    hk_amqp_short(&b->out, hk_str_of(""));
    hk_amqp_short(&b->out, hk_str_of("bench"));
    hk_amqp_u8(&b->out, 1);
    hk_amqp_end(&b->out, at);
    at = hk_amqp_begin(&b->out, HK_AMQP_HEADER, 1);
    hk_amqp_u32(&b->out, 60u << 16);
    hk_amqp_u64(&b->out, b->bytes);
    hk_amqp_u16(&b->out, PROPERTIES);
    hk_amqp_short(&b->out, hk_str_of(TYPE));
    size_t table = hk_amqp_begin_table(&b->out);
    hk_amqp_short(&b->out, hk_str_of("hikyaku-attempt"));
    hk_amqp_u8(&b->out, 'S');
    hk_amqp_long(&b->out, hk_str_of("1"));
    hk_amqp_end_table(&b->out, table);
    hk_amqp_u8(&b->out, 2);
    hk_amqp_short(&b->out, hk_str_of(b->id));
    hk_amqp_u64(&b->out, 1794731400);
    hk_amqp_short(&b->out, hk_str_of("Bench"));
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

/* ---- MQTT ---- */

/* The broker says how much it takes at once. */
static void mqtt_open(struct bare *b)
{
    static const char hello[] = "\x10\x12\0\4MQTT\5\2\0\0\0\0\5bench";
    struct hk_mqtt_packet p;
    const char *why = "";
    size_t used = 0;
    (void)hk_buf_add(&b->out, hello, sizeof hello - 1);
    flush(b);
    while (hk_mqtt_read((struct hk_str){b->in, b->in_len}, &p, &used, &why) == HK_MQTT_MORE)
        fill(b);
    eat(b, used);
    b->window = b->window < p.receive_maximum ? b->window : p.receive_maximum;
}

static void mqtt_send(struct bare *b)
{
    static char room[512];
    static struct hk_buf properties = {.data = room, .max = sizeof room - 1, .room = sizeof room};
    struct hk_str topic = hk_str_of("bench");
    hk_buf_reset(&properties);
    hk_mqtt_u8(&properties, HK_MQTT_CONTENT_TYPE);
    hk_mqtt_text(&properties, hk_str_of(TYPE));
    hk_mqtt_pair(&properties, hk_str_of("id"), hk_str_of(b->id));
    hk_mqtt_pair(&properties, hk_str_of("type"), hk_str_of("Bench"));
    hk_mqtt_pair(&properties, hk_str_of("attempt"), hk_str_of("1"));
    hk_mqtt_u8(&b->out, HK_MQTT_PUBLISH << 4 | 1 << 1);
    hk_mqtt_size(&b->out, 2 + topic.len + 2 + hk_mqtt_size_len(properties.len) + properties.len + b->bytes);
    hk_mqtt_text(&b->out, topic);
    hk_mqtt_u16(&b->out, b->sent % 65535 + 1);
    hk_mqtt_size(&b->out, properties.len);
    (void)hk_buf_add(&b->out, properties.data, properties.len);
    (void)hk_buf_add(&b->out, b->body, b->bytes);
}

static size_t mqtt_read(struct bare *b, struct hk_str in)
{
    struct hk_mqtt_packet p;
    const char *why = "";
    size_t used = 0;
    if (hk_mqtt_read(in, &p, &used, &why) != HK_MQTT_WHOLE)
        return 0;
    b->confirmed += p.type == HK_MQTT_PUBACK;
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

static void nats_send(struct bare *b)
{
    char head[256];
    int len = snprintf(head, sizeof head,
                       "NATS/1.0\r\nNats-Msg-Id: %s\r\nHikyaku-Event: Bench\r\nContent-Type: " TYPE
                       "\r\nHikyaku-Attempt: 1\r\n\r\n",
                       b->id);
    (void)hk_buf_addf(&b->out, "HPUB bench.b _INBOX.b.%u %d %zu\r\n%s", b->sent, len, (size_t)len + b->bytes,
                      head);
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
    struct hk_nats_ack ack;
    if (op.kind == HK_NATS_MSG && (!hk_nats_read_ack(op.payload, &ack) || !ack.stored || ack.duplicate))
        die("the stream has not stored a message");
    b->confirmed += op.kind == HK_NATS_MSG;
    return used;
}

/* ---- Redis ---- */

static void redis_open(struct bare *b)
{
    (void)b;
}

static void redis_send(struct bare *b)
{
    static const char *const words[] = {"XADD",         "bench", "*",       "type", "Bench",
                                        "content_type", TYPE,    "attempt", "1",    "id"};
    hk_resp_begin(&b->out, 13);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        hk_resp_text(&b->out, words[i]);
    hk_resp_text(&b->out, b->id);
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
    if (reply.kind != HK_RESP_TEXT)
        die("Redis has not added a message");
    b->confirmed++;
    return used;
}

/* ---- one run ---- */

static const struct {
    const char *name;
    void (*open)(struct bare *b);
    void (*send)(struct bare *b);
    size_t (*read)(struct bare *b, struct hk_str in);
} kinds[] = {{"amqp", amqp_open, amqp_send, amqp_read},
             {"mqtt", mqtt_open, mqtt_send, mqtt_read},
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

static void run(struct bare *b, size_t kind, unsigned count)
{
    while (b->confirmed < count) {
        for (; b->sent < count && b->sent - b->confirmed < b->window; b->sent++) {
            (void)snprintf(b->id, sizeof b->id, "01a1f407-7f85-7356-%04x-%012x", (unsigned)getpid() & 0xffff,
                           b->sent);
            kinds[kind].send(b);
        }
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
        return 0; /* among the other benches there is nothing to do: bench/brokers.py starts it */
    while (kind < sizeof kinds / sizeof kinds[0] && strcmp(kinds[kind].name, argv[1]) != 0)
        kind++;
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)number(argv[2])),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    unsigned count = number(argv[3]);
    b.window = number(argv[4]);
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
    run(&b, kind, count);
    double took = seconds() - began;
    (void)getrusage(RUSAGE_SELF, &use);
    double cpu = (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
                 (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1e6;
    printf("%.0f %.1f\n", count / took, cpu * 1e6 / count);
    hk_buf_fini(&b.out);
    free(b.in);
    (void)close(b.fd);
    return 0;
}
