/* SPDX-License-Identifier: Apache-2.0 */
/* The channel that is a program: the notice as JSON on its standard input, plain facts in its environment. */
#include <inttypes.h>
#include <string.h>

#include "alert/channel.h"
#include "base/parse.h"
#include "base/show.h"
#include "base/str.h"

#define ENV_MAX     32
#define ENV_BYTES   ((size_t)64 * 1024)
#define SEARCH_PATH "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* NAME=value, one after the other, each terminated. */
struct environment {
    struct hk_buf text;
    size_t at[ENV_MAX];
    size_t n;
};

static void begin_variable(struct environment *env, const char *name)
{
    if (env->n < ENV_MAX)
        env->at[env->n++] = env->text.len;
    hk_buf_addf(&env->text, "HIKYAKU_ALERT_%s=", name);
}

static void add_text(struct environment *env, const char *name, struct hk_str value)
{
    begin_variable(env, name);
    hk_show_plain(value, HK_WORDS_DETAIL_MAX, &env->text);
    hk_buf_addc(&env->text, '\0');
}

static void add_time(struct environment *env, const char *name, int64_t unix_ms)
{
    char text[HK_TIME_TEXT_MAX];
    (void)hk_format_rfc3339(unix_ms, text);
    add_text(env, name, hk_str_of(text));
}

static void add_words(struct environment *env, const struct hk_notice *n, enum hk_alert_language language)
{
    begin_variable(env, "TITLE");
    hk_notice_title(n, language, &env->text);
    hk_buf_addc(&env->text, '\0');
    begin_variable(env, "TEXT");
    hk_notice_text(n, language, &env->text);
    hk_buf_addc(&env->text, '\0');
}

static void fill(struct environment *env, const struct hk_channel_call *call)
{
    const struct hk_notice *n = call->notice;
    begin_variable(env, "COUNT");
    hk_buf_addf(&env->text, "%" PRIu64, n->count);
    hk_buf_addc(&env->text, '\0');
    add_text(env, "ID", hk_str_of(call->id));
    add_text(env, "NOTICE", hk_str_of(hk_notice_word(n->kind)));
    add_text(env, "KIND", hk_str_of(hk_alert_kind_word(n->about)));
    add_text(env, "SEVERITY", hk_str_of(hk_severity_word(n->severity)));
    add_text(env, "RULE", hk_str_of(n->rule));
    add_text(env, "FINGERPRINT", hk_str_of(n->fingerprint));
    add_time(env, "SINCE", n->since_ms);
    add_time(env, "AT", n->at_ms);
    add_text(env, "DESTINATION", n->destination);
    add_text(env, "REASON", n->reason);
    add_text(env, "EVENT_TYPE", n->event_type);
    add_text(env, "EXAMPLE_ID", n->example_id);
    add_text(env, "DETAIL", n->detail);
    add_text(env, "RELAY", hk_str_of(n->relay));
    add_text(env, "LINK", hk_str_of(hk_words_link(n)));
    add_words(env, n, call->channel->language);
}

static enum hk_code run(const struct hk_channel_call *call, const struct environment *env,
                        struct hk_str input, struct hk_err *err)
{
    const char *variables[ENV_MAX + 2] = {SEARCH_PATH, "LANG=C.UTF-8"};
    for (size_t i = 0; i < env->n; i++)
        variables[i + 2] = env->text.data + env->at[i];
    const struct hk_send_exec program = {.argv = call->channel->argv,
                                         .n_argv = call->channel->n_argv,
                                         .env = variables,
                                         .n_env = env->n + 2,
                                         .input = input,
                                         .timeout_ms = call->channel->timeout_ms,
                                         .abandoned = call->channel->abandoned};
    return hk_send_exec(&program, err);
}

enum hk_code hk_channel_exec(struct hk_channel_call *call, struct hk_err *err)
{
    struct environment env = {.n = 0};
    struct hk_buf input;
    if (call->channel->n_argv == 0)
        return hk_err_set(err, HK_INVALID, "there is no command");
    hk_buf_init(&env.text, ENV_BYTES);
    hk_buf_init(&input, HK_BODY_MAX);
    fill(&env, call);
    hk_body_json(call->notice, call->channel->language, call->id, &input);
    hk_buf_addc(&input, '\n');
    enum hk_code rc = hk_buf_status(&env.text) != HK_OK ? hk_buf_status(&env.text) : hk_buf_status(&input);
    rc = rc == HK_OK ? run(call, &env, hk_buf_str(&input), err) : hk_channel_too_big(rc, err);
    hk_buf_fini(&input);
    hk_buf_fini(&env.text);
    return rc;
}
