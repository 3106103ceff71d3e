/* SPDX-License-Identifier: Apache-2.0 */
/* What librdkafka does by itself: the same records, settings and confirms as the relay's, from memory. For bench/brokers.py.
 *
 * usage: kafka_bare BROKERS TOPIC RECORDS WINDOW LINGER_MS BYTES; prints records a second and CPU microseconds a record */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <librdkafka/rdkafka.h>

#include "base/parse.h"
#include "base/str.h"

static void fail(const char *what)
{
    (void)fprintf(stderr, "kafka_bare: %s\n", what);
    exit(1);
}

static uint64_t number(const char *text)
{
    uint64_t n = 0;
    if (hk_parse_u64(hk_str_of(text), &n, NULL) != HK_OK)
        fail("not a number");
    return n;
}

static double seconds(clockid_t clock)
{
    struct timespec t;
    (void)clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static rd_kafka_t *open_client(const char *brokers, const char *linger)
{
    const char *settings[][2] = {{"bootstrap.servers", brokers},
                                 {"enable.idempotence", "true"},
                                 {"linger.ms", linger},
                                 {"partitioner", "murmur2_random"},
                                 {"socket.nagle.disable", "true"}};
    char why[256];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++)
        if (rd_kafka_conf_set(conf, settings[i][0], settings[i][1], why, sizeof why) != RD_KAFKA_CONF_OK)
            fail(why);
    rd_kafka_conf_set_events(conf, RD_KAFKA_EVENT_DR);
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof why);
    if (!rk)
        fail(why);
    return rk;
}

static void send_one(rd_kafka_t *rk, const char *topic, char *payload, size_t bytes, uint64_t i)
{
    char id[64];
    int len = snprintf(id, sizeof id, "01a1f407-7f85-7356-84ec-%012llx", (unsigned long long)i);
    rd_kafka_resp_err_t code = rd_kafka_producev(
        rk, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_VALUE(payload, bytes),
        RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_HEADER("content-type", "application/json", -1),
        RD_KAFKA_V_HEADER("message-id", id, len), RD_KAFKA_V_HEADER("hikyaku-attempt", "1", 1),
        RD_KAFKA_V_HEADER("event-type", "Bench", -1), RD_KAFKA_V_END);
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR)
        fail(rd_kafka_err2str(code));
}

static uint64_t take_reports(rd_kafka_queue_t *queue)
{
    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, 1000);
    uint64_t n = 0;
    const rd_kafka_message_t *m = NULL;
    while (event && (m = rd_kafka_event_message_next(event)) != NULL) {
        if (m->err != RD_KAFKA_RESP_ERR_NO_ERROR)
            fail(rd_kafka_err2str(m->err));
        n++;
    }
    if (event)
        rd_kafka_event_destroy(event);
    return n;
}

int main(int argc, char **argv)
{
    if (argc != 7)
        fail("usage: kafka_bare BROKERS TOPIC RECORDS WINDOW LINGER_MS BYTES");
    uint64_t n = number(argv[3]), window = number(argv[4]), bytes = number(argv[6]), sent = 0, done = 0;
    char *payload = malloc(bytes + 1);
    if (!payload)
        fail("out of memory");
    memset(payload, 'x', bytes);
    rd_kafka_t *rk = open_client(argv[1], argv[5]);
    rd_kafka_queue_t *queue = rd_kafka_queue_get_main(rk);
    double wall = seconds(CLOCK_MONOTONIC), cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
    while (done < n) {
        for (; sent < n && sent - done < window; sent++)
            send_one(rk, argv[2], payload, bytes, sent);
        done += take_reports(queue);
    }
    wall = seconds(CLOCK_MONOTONIC) - wall;
    cpu = seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    (void)printf("%.0f %.1f\n", (double)n / wall, cpu * 1e6 / (double)n);
    rd_kafka_queue_destroy(queue);
    rd_kafka_destroy(rk);
    free(payload);
    return 0;
}
