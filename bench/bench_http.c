/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP sink against a local nginx: requests a second and CPU for each, unsigned and signed, by our own HTTP/1.1 and by
 * libcurl, beside what `wrk` makes of the same server in the same run. Says so and ends well when nginx is not there. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/str.h"
#include "sink/http/http.h"
#include "sink/null/null.h"

enum {
    PORT = 28189,
    RUN_MS = 3000,
    PAYLOAD = 512
};

static char dir[64] = "/tmp/hk-bench-XXXXXX";
static char payload[PAYLOAD];

struct run {
    struct hk_loop *loop;
    struct hk_sink *sink;
    struct hk_timer *timer;
    struct hk_message msg;
    struct hk_delivery delivery;
    uint64_t done, failed, in_flight;
    bool over;
};

static pid_t start_nginx(void)
{
    char conf[96];
    if (!mkdtemp(dir))
        return -1;
    (void)snprintf(conf, sizeof conf, "%s/nginx.conf", dir);
    FILE *f = fopen(conf, "w");
    if (!f)
        return -1;
    (void)fprintf(
        f,
        "daemon off; master_process off; pid %s/pid; error_log stderr crit;\n"
        "events { worker_connections 1024; }\nhttp { access_log off; keepalive_requests 100000000;\n"
        "client_body_temp_path %s/b; proxy_temp_path %s/p; fastcgi_temp_path %s/f; uwsgi_temp_path %s/u;\n"
        "scgi_temp_path %s/s; server { listen 127.0.0.1:%d; location / { return 204; } } }\n",
        dir, dir, dir, dir, dir, dir, PORT);
    (void)fclose(f);
    pid_t pid = fork();
    if (pid == 0) {
        execlp("nginx", "nginx", "-p", dir, "-c", conf, (char *)NULL);
        execl("/usr/sbin/nginx", "nginx", "-p", dir, "-c", conf, (char *)NULL);
        _exit(127);
    }
    nanosleep(&(struct timespec){.tv_nsec = 500000000}, NULL);
    return waitpid(pid, NULL, WNOHANG) == 0 ? pid : -1;
}

static void send_one(struct run *run);

static void on_done(void *arg, const struct hk_sink_result *result)
{
    struct run *run = arg;
    run->in_flight--;
    run->done++;
    run->failed += result->facts.status / 100 != 2;
    if (!run->over)
        send_one(run);
    else if (run->in_flight == 0)
        hk_loop_stop(run->loop);
}

static void send_one(struct run *run)
{
    if (run->sink->ops->send(run->sink, &run->delivery, NULL) != HK_OK)
        abort();
    run->in_flight++;
}

static void on_time(void *arg)
{
    ((struct run *)arg)->over = true;
}

static double cpu_s(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static double measure(const char *name, const struct hk_http_options *options, unsigned at_once)
{
    struct run run = {.msg = {.message_id = hk_str_of("msg_1"),
                              .event_type = hk_str_of("Bench"),
                              .payload = {payload, PAYLOAD}}};
    struct hk_err err;
    run.delivery = (struct hk_delivery){.msg = &run.msg,
                                        .attempt = 1,
                                        .wall_ms = 1794731400250,
                                        .timeout_ms = 30000,
                                        .done = on_done,
                                        .arg = &run};
    if (hk_loop_new(&run.loop, &err) != HK_OK || hk_timer_new(run.loop, on_time, &run, &run.timer) != HK_OK ||
        (options ? hk_http_open(run.loop, options, &run.sink, &err)
                 : hk_null_open(run.loop, 0, &run.sink, &err)) != HK_OK)
        abort();
    double cpu = cpu_s();
    uint64_t start = hk_loop_now_ms(run.loop);
    hk_timer_start(run.timer, RUN_MS);
    for (unsigned i = 0; i < at_once; i++)
        send_one(&run);
    hk_loop_run(run.loop);
    double seconds = (double)(hk_loop_now_ms(run.loop) - start) / 1e3;
    double rate = (double)run.done / seconds;
    printf("%-22s %4u at once  %9.0f /s  %6.1f us CPU each  %" PRIu64 " failed\n", name, at_once, rate,
           (cpu_s() - cpu) * 1e6 / (double)run.done, run.failed);
    run.sink->ops->close(run.sink);
    hk_timer_free(run.timer);
    hk_loop_free(run.loop);
    return rate;
}

static double run_wrk(void)
{
    char command[512], line[256];
    double rate = 0;
    (void)snprintf(command, sizeof command,
                   "printf 'wrk.method=\"POST\" wrk.body=string.rep(\"x\",%d)' >%s/post.lua; "
                   "wrk -t1 -c64 -d3 -s %s/post.lua http://127.0.0.1:%d/ 2>/dev/null",
                   PAYLOAD, dir, dir, PORT);
    FILE *p = popen(command, "r");
    while (p && fgets(line, sizeof line, p)) {
        if (sscanf(line, "Requests/sec: %lf", &rate) == 1)
            printf("%-22s   64 at once  %9.0f /s\n", "wrk", rate);
    }
    if (p)
        (void)pclose(p);
    return rate;
}

int main(void)
{
    (void)signal(SIGPIPE, SIG_IGN);
    memset(payload, 'x', sizeof payload);
    static const struct hk_cidr loopback = {{127}, 8, false};
    static const char *const secrets[] = {"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"};
    char url[64];
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%d/", PORT);
    struct hk_http_options options = {.url = url, .allow = &loopback, .n_allow = 1};
    measure("null sink", NULL, 64);
    pid_t nginx = start_nginx();
    if (nginx > 0) {
        double best = measure("http", &options, 64);
        measure("http", &options, 16);
        options.max_connections = 256;
        measure("http", &options, 256);
        options.secrets = secrets;
        options.n_secrets = 1;
        measure("http, signed", &options, 64);
        options.libcurl = true;
        measure("libcurl, signed", &options, 64);
        options.n_secrets = 0;
        measure("libcurl", &options, 64);
        double wrk = run_wrk();
        if (wrk > 0)
            printf("http / wrk = %.2f\n", best / wrk);
        (void)kill(nginx, SIGTERM);
        (void)waitpid(nginx, NULL, 0);
    } else {
        puts("nginx does not start here: no figures for HTTP");
    }
    char command[96];
    (void)snprintf(command, sizeof command, "rm -rf '%s'", dir);
    return system(command) == 0 ? 0 : 1;
}
