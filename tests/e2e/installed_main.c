/* SPDX-License-Identifier: Apache-2.0 */
/* A program of somebody else, built against the installed library: calls a service that always answers 503,
 * and prints each wait. installed.sh compares them with what `hikyaku policy plan` promises. */
#include <inttypes.h>
#include <stdio.h>

#include <hikyaku/hikyaku.h>

static int64_t virtual_ms;

static int64_t now_ms(void *arg)
{
    (void)arg;
    return virtual_ms;
}

static bool sleep_ms(void *arg, uint64_t ms)
{
    (void)arg;
    virtual_ms += (int64_t)ms;
    return true;
}

static enum hk_code always_503(void *arg, const struct hk_attempt *attempt, struct hk_facts *facts)
{
    (void)arg;
    (void)attempt;
    facts->status = 503;
    return HK_OK;
}

static void print_wait(void *arg, const struct hk_retry_event *event)
{
    (void)arg;
    printf("%" PRIu64 "\n", event->sleep_ms);
}

int main(void)
{
    struct hk_policy *policy = NULL;
    struct hk_err err;

    if (hk_policy_new("azure-exponential", &policy, &err) != HK_OK) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    struct hk_execute_options options = {
        .policy = policy,
        .on_retry = print_wait,
        .has_seed = true,
        .seed = 42,
        .clock = {.now_ms = now_ms, .wall_ms = now_ms, .sleep_ms = sleep_ms},
    };
    enum hk_code rc = hk_execute(&options, always_503, NULL, NULL, &err);
    hk_policy_free(policy);
    if (rc != HK_GAVE_UP) {
        fprintf(stderr, "expected GAVE_UP, not %s\n", hk_code_name(rc));
        return 1;
    }
    return 0;
}
