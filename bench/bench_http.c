/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP sink against a local nginx: requests a second and CPU for each, unsigned and signed, by our own HTTP/1.1, our own HTTP/2 and
 * by libcurl, in plain and by TLS, beside what `wrk` makes of the same server in the same run. What is to be compared runs in turns.
 * Says so and ends well when nginx is not there. With an argument ("h2"): HTTP/2 and what it is compared with alone. */
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
    H2C_PORT = 28190,
    TLS_PORT = 28191,
    RUN_MS = 3000,
    TURNS = 3,
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

static bool make_certificate(void)
{
    char command[320];
    (void)snprintf(
        command, sizeof command,
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=127.0.0.1 "
        "-addext subjectAltName=IP:127.0.0.1 -keyout %s/key -out %s/cert >/dev/null 2>&1",
        dir, dir);
    return system(command) == 0; /* NOLINT: our own temporary directory */
}

static pid_t start_nginx(void)
{
    char conf[96];
    if (!mkdtemp(dir) || !make_certificate())
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
        "scgi_temp_path %s/s; http2_max_concurrent_streams 256; ssl_certificate %s/cert; ssl_certificate_key %s/key;\n"
        "server { listen 127.0.0.1:%d; listen 127.0.0.1:%d http2; listen 127.0.0.1:%d ssl http2;\n"
        "location / { return 204; } } }\n",
        dir, dir, dir, dir, dir, dir, dir, dir, PORT, H2C_PORT, TLS_PORT);
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

static double median(double *figures)
{
    double low = figures[0] < figures[1] ? figures[0] : figures[1];
    double high = figures[0] < figures[1] ? figures[1] : figures[0];
    return figures[2] < low ? low : figures[2] > high ? high : figures[2];
}

/* In turns, and the medians. */
static void compare(const char *a_name, const struct hk_http_options *a, const char *b_name,
                    const struct hk_http_options *b, unsigned at_once)
{
    double of_a[TURNS], of_b[TURNS];
    for (int i = 0; i < TURNS; i++) {
        of_a[i] = measure(a_name, a, at_once);
        of_b[i] = measure(b_name, b, at_once);
    }
    printf("%s / %s, %u at once = %.2f\n", a_name, b_name, at_once, median(of_a) / median(of_b));
}

static bool has_h2(void)
{
    const struct hk_http_options options = {.url = "http://127.0.0.1:9/", .version = 2};
    struct hk_loop *loop = NULL;
    struct hk_sink *sink = NULL;
    if (hk_loop_new(&loop, NULL) != HK_OK)
        abort();
    bool has = hk_http_open(loop, &options, &sink, NULL) == HK_OK;
    if (has)
        sink->ops->close(sink);
    hk_loop_free(loop);
    return has;
}

static void measure_h2(const struct hk_http_options *h1)
{
    if (!has_h2()) {
        puts("this build has no HTTP/2 of its own: no figures for it");
        return;
    }
    char h2c_url[64], tls_url[64], ca[96];
    (void)snprintf(h2c_url, sizeof h2c_url, "http://127.0.0.1:%d/", H2C_PORT);
    (void)snprintf(tls_url, sizeof tls_url, "https://127.0.0.1:%d/", TLS_PORT);
    (void)snprintf(ca, sizeof ca, "%s/cert", dir);
    struct hk_http_options h2c = *h1, tls = *h1, tls_curl = *h1;
    h2c.url = h2c_url;
    tls.url = tls_curl.url = tls_url;
    tls.ca_file = tls_curl.ca_file = ca;
    h2c.version = tls.version = 2;
    compare("h2c", &h2c, "http/1.1", h1, 64);
    compare("h2c", &h2c, "http/1.1", h1, 256);
    compare("h2 by TLS", &tls, "h2 by TLS, libcurl", &tls_curl, 64);
}

int main(int argc, char **argv)
{
    (void)argv;
    (void)signal(SIGPIPE, SIG_IGN);
    memset(payload, 'x', sizeof payload);
    static const struct hk_cidr loopback = {{127}, 8, false};
    static const char *const secrets[] = {"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"};
    char url[64];
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%d/", PORT);
    struct hk_http_options options = {.url = url, .allow = &loopback, .n_allow = 1};
    measure("null sink", NULL, 64);
    pid_t nginx = start_nginx();
    if (nginx > 0 && argc > 1) {
        options.max_connections = 256;
        measure_h2(&options);
        (void)kill(nginx, SIGTERM);
        (void)waitpid(nginx, NULL, 0);
    } else if (nginx > 0) {
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
        options.libcurl = false;
        measure_h2(&options);
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
