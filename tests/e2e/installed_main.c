/* SPDX-License-Identifier: Apache-2.0 */
/* A program of somebody else, built against the installed library: calls a flaky service, which answers 503 some times
 * and then works, and prints each wait. installed.sh compares them with what `hikyaku policy plan` promises.
 *
 * Usage: main PRESET SEED FAILURES */
#include <inttypes.h>
#include <stdio.h>

#include <hikyaku/hikyaku.h>

struct service {
    int64_t now_ms; /* the time that this program lives in: waits cost nothing */
    uint32_t failures_left;
    uint32_t calls;
};

static int64_t now_ms(void *arg)
{
    return ((struct service *)arg)->now_ms;
}

static bool sleep_ms(void *arg, uint64_t ms)
{
    ((struct service *)arg)->now_ms += (int64_t)ms;
    return true;
}

static enum hk_code call(void *arg, const struct hk_attempt *attempt, struct hk_facts *facts)
{
    struct service *service = arg;

    service->calls++;
    if (attempt->number != service->calls)
        return HK_CANCELLED;
    facts->status = service->failures_left > 0 ? 503 : 200;
    service->failures_left -= service->failures_left > 0;
    return HK_OK;
}

static void print_wait(void *arg, const struct hk_retry_event *event)
{
    (void)arg;
    printf("%" PRIu64 "\n", event->sleep_ms);
}

/* Digits only, as the test passes them. */
static uint64_t number(const char *text)
{
    uint64_t value = 0;

    for (; *text >= '0' && *text <= '9'; text++)
        value = value * 10 + (uint64_t)(*text - '0');
    return value;
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    uint32_t failures = (uint32_t)number(argv[3]);
    struct service service = {.failures_left = failures};
    struct hk_execute_options options = {
        .preset = argv[1],
        .operation = "flaky",
        .on_retry = print_wait,
        .has_seed = true,
        .seed = number(argv[2]),
        .clock = {.now_ms = now_ms, .wall_ms = now_ms, .sleep_ms = sleep_ms, .arg = &service},
    };
    struct hk_execute_result result;
    struct hk_err err;

    enum hk_code rc = hk_execute(&options, call, &service, &result, &err);
    if (rc != HK_OK) {
        fprintf(stderr, "%s: %s\n", hk_code_name(rc), err.message);
        return 1;
    }
    if (result.attempts != failures + 1 || service.calls != failures + 1 ||
        result.decision.verdict != HK_DELIVERED) {
        fprintf(stderr, "%" PRIu32 " attempts, %" PRIu32 " calls\n", result.attempts, service.calls);
        return 1;
    }
    return 0;
}
