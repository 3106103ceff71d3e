/* SPDX-License-Identifier: Apache-2.0 */
/* Every sink under the same contract. */
#include <signal.h>
#include <stdio.h>

#include "fixture.h"
#include "sink/batch/batch.h"
#include "sink/null/null.h"
#include "sink_suite.h"
#include "sink_threads.h"

static struct server *quick_server, *slow_server;
static const struct step mute[8] = {{OP_REQUEST}, {OP_HOLD}};

static struct hk_sink *open_null(struct hk_loop *loop, uint64_t latency_ms)
{
    struct hk_sink *sink = NULL;
    return hk_null_open(loop, latency_ms, &sink, NULL) == HK_OK ? sink : NULL;
}

static struct hk_sink *quick_null(struct hk_loop *loop)
{
    return open_null(loop, 0);
}

static struct hk_sink *slow_null(struct hk_loop *loop)
{
    return open_null(loop, 10000);
}

static struct hk_sink *open_http(struct hk_loop *loop, const struct server *server)
{
    char url[64];
    url_of(url, server, "http", "127.0.0.1");
    struct hk_http_options options = options_for(url);
    struct hk_sink *sink = NULL;
    return hk_http_open(loop, &options, &sink, NULL) == HK_OK ? sink : NULL;
}

static struct hk_sink *quick_http(struct hk_loop *loop)
{
    return open_http(loop, quick_server);
}

static struct hk_sink *slow_http(struct hk_loop *loop)
{
    return open_http(loop, slow_server);
}

static struct hk_sink *open_batch(struct hk_loop *loop, const struct server *server)
{
    char url[64];
    url_of(url, server, "http", "127.0.0.1");
    struct hk_batch_options options = {
        .http = options_for(url), .messages = 7, .bytes = 1 << 20, .wait_ms = 2, .window = 200};
    struct hk_sink *sink = NULL;
    return hk_batch_open(loop, &options, &sink, NULL) == HK_OK ? sink : NULL;
}

static struct hk_sink *quick_batch(struct hk_loop *loop)
{
    return open_batch(loop, quick_server);
}

static struct hk_sink *slow_batch(struct hk_loop *loop)
{
    return open_batch(loop, slow_server);
}

static struct hk_sink *quick_threads(struct hk_loop *loop)
{
    return threads_open(loop, &(struct threads_script){.window = 0});
}

static struct hk_sink *slow_threads(struct hk_loop *loop)
{
    return threads_open(loop, &(struct threads_script){.mute = true});
}

static struct hk_sink *narrow_threads(struct hk_loop *loop)
{
    return threads_open(loop, &(struct threads_script){.window = 3});
}

static struct hk_sink *stuck_threads(struct hk_loop *loop)
{
    return threads_open(loop, &(struct threads_script){.stuck = true});
}

static struct hk_sink *refusing_threads(struct hk_loop *loop)
{
    return threads_open(loop, &(struct threads_script){.refuse = 7});
}

int main(int argc, char **argv)
{
    choose_wire(argc, argv);
    static const struct sink_maker makers[] = {{"null", quick_null, slow_null},
                                               {"http", quick_http, slow_http},
                                               {"batch", quick_batch, slow_batch},
                                               {"threads", quick_threads, slow_threads, narrow_threads,
                                                stuck_threads, threads_release, refusing_threads}};
    (void)signal(SIGPIPE, SIG_IGN);
    quick_server = server_start(polite, NULL);
    slow_server = server_start(mute, NULL);
    int failed = sink_suite(makers, COUNT(makers));
    threads_release();
    assert_true(threads_flushes() < 8 * 100); /* they were sent together */
    server_stop(quick_server);
    server_stop(slow_server);
    return failed;
}
