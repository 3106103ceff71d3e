/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku config check: everything that is wrong with a file, or what it holds. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "alert/conf.h"
#include "base/json.h"
#include "cli/args.h"
#include "cli/out.h"
#include "cli/policy/policies.h"
#include "cli/settings.h"
#include "config/config.h"
#include "config/tables.h"
#include "desk/put.h"
#include "store/store.h"

#define STDIN_MAX  ((size_t)4 << 20)
#define REPORT_MAX ((size_t)1 << 20)

static const char stdin_name[] = "<stdin>";

struct counts {
    size_t policies, destinations, routes, rules, channels;
};

static struct counts count(const struct hk_config *config)
{
    struct counts n = {.policies = config->policy_conf.n,
                       .destinations = config->destinations.n,
                       .routes = config->routes.n,
                       .rules = config->validate.n,
                       .channels = config->channels.n};
    return n;
}

static enum hk_code read_stdin(struct hk_buf *out)
{
    char chunk[4096];
    size_t n = 0;

    while ((n = fread(chunk, 1, sizeof chunk, stdin)) > 0)
        if (hk_buf_add(out, chunk, n) != HK_OK)
            break;
    return ferror(stdin) ? HK_IO : hk_buf_status(out);
}

static enum hk_code load(const char *path, struct hk_diags *diags, struct hk_config **out_config)
{
    struct hk_buf text;

    if (strcmp(path, "-") != 0)
        return hk_config_load(path, NULL, diags, out_config);
    hk_buf_init(&text, STDIN_MAX);
    enum hk_code rc = read_stdin(&text);
    if (rc == HK_OK)
        rc = hk_config_parse(hk_buf_cstr(&text), text.len, stdin_name, NULL, diags, out_config);
    else
        hk_diags_add(diags, HK_SEVERITY_ERROR, stdin_name, (struct hk_pos){0, 0},
                     rc == HK_TOOBIG ? "larger than 4 MiB" : "cannot be read");
    hk_buf_fini(&text);
    return rc;
}

/* What a relay would say when it starts. A file that is not here may be where the relay runs. */
static enum hk_code check_channels(const char *file, const struct hk_config *config, struct hk_diags *diags)
{
    const struct hk_conf_channel *conf = NULL;

    for (size_t i = 0; (conf = hk_config_channel(config, i)) != NULL; i++) {
        struct hk_err err = {.message = ""};
        enum hk_code rc = hk_channel_check_conf(config, conf, &err);
        if (rc == HK_NOMEM)
            return rc;
        if (rc != HK_OK)
            hk_diags_add(diags, rc == HK_NOTFOUND ? HK_SEVERITY_WARNING : HK_SEVERITY_ERROR, file,
                         (struct hk_pos){0, 0}, "channel \"%s\": %s%s", conf->name, err.message,
                         rc == HK_NOTFOUND ? " here; no relay starts like this" : "");
    }
    return HK_OK;
}

/* A relay says so when it starts. Here rather than where the file is read: --db may name another store. */
static void check_store(const char *file, const struct hk_config *config, struct hk_diags *diags)
{
    struct hk_err err = {.message = ""};
    if (!hk_store_by_url(config->store.url, &err))
        hk_diags_add(diags, HK_SEVERITY_ERROR, file, (struct hk_pos){0, 0}, "store: %s", err.message);
}

/* Does it hold policies and nothing else? Then it is for programs that retry by themselves. */
static bool is_of_policies(const struct hk_config *config)
{
    bool others = false;
    for (size_t i = 0; i < hk_root_table.n_opts; i++)
        others |= HK_GIVEN(config, i) && strcmp(hk_root_table.opts[i].key, "policies") != 0 &&
                  strcmp(hk_root_table.opts[i].key, "default_policy") != 0;
    return config->policy_conf.n > 0 && !others;
}

/* It is allowed, as `run` works without any file. */
static void check_destinations(const char *file, const struct hk_config *config, struct hk_diags *diags)
{
    if (config->destinations.n == 0 && !is_of_policies(config))
        hk_diags_add(
            diags, HK_SEVERITY_WARNING, file, (struct hk_pos){0, 0},
            "no destinations: a relay with this file delivers nothing; it makes every message a dead "
            "letter (UNKNOWN_DESTINATION)");
}

static const char *plural(size_t n)
{
    return n == 1 ? "" : "s";
}

static int print_text(const char *file, const struct hk_diags *diags, const struct hk_config *config)
{
    hk_settings_complain(diags);
    if (config == NULL)
        return hk_out_error(HK_EXIT_CONFIG, "%s: %zu error%s", file, diags->errors, plural(diags->errors));
    struct counts n = count(config);
    (void)printf("%s: ok: %zu polic%s, %zu destination%s, %zu route%s", file, n.policies,
                 n.policies == 1 ? "y" : "ies", n.destinations, plural(n.destinations), n.routes,
                 plural(n.routes));
    if (n.rules > 0)
        (void)printf(", %zu validation rule%s", n.rules, plural(n.rules));
    if (n.channels > 0)
        (void)printf(", %zu channel%s", n.channels, plural(n.channels));
    if (diags->warnings > 0)
        (void)printf(" (%zu warning%s)", diags->warnings, plural(diags->warnings));
    (void)printf("\n");
    return HK_EXIT_OK;
}

static void diags_json(struct hk_json *json, const char *key, const struct hk_diags *diags,
                       enum hk_severity severity)
{
    hk_json_key(json, key);
    hk_json_array(json);
    for (size_t i = 0; i < diags->n; i++) {
        const struct hk_diag *diag = &diags->items[i];
        if (diag->severity != severity)
            continue;
        hk_json_object(json);
        hk_put_cstr(json, "file", diag->file);
        hk_put_u64(json, "line", diag->at.line);
        hk_put_u64(json, "col", diag->at.col);
        hk_put_cstr(json, "message", diag->message);
        hk_json_end(json);
    }
    hk_json_end(json);
}

static int print_json(const char *file, const struct hk_diags *diags, const struct hk_config *config)
{
    struct hk_json json;
    struct hk_buf buf;

    hk_buf_init(&buf, REPORT_MAX);
    hk_json_init(&json, &buf, true);
    hk_json_object(&json);
    hk_put_bool(&json, "ok", config != NULL);
    hk_put_cstr(&json, "file", file);
    diags_json(&json, "errors", diags, HK_SEVERITY_ERROR);
    diags_json(&json, "warnings", diags, HK_SEVERITY_WARNING);
    if (config != NULL) {
        struct counts n = count(config);
        hk_put_u64(&json, "policies", n.policies);
        hk_put_u64(&json, "destinations", n.destinations);
        hk_put_u64(&json, "routes", n.routes);
        hk_put_u64(&json, "validate", n.rules);
        hk_put_u64(&json, "channels", n.channels);
    }
    hk_json_end(&json);
    (void)hk_buf_addc(&buf, '\n');
    int code = hk_out_buffer(&buf);
    return code == HK_EXIT_OK && config == NULL ? HK_EXIT_CONFIG : code;
}

int hk_cmd_config_check(struct hk_cli *cli)
{
    const char *path = cli->n_operands > 0 ? cli->operands[0] : hk_cli_config_path(cli);
    struct hk_config *config = NULL;
    struct hk_diags diags;
    int code = HK_EXIT_OK;

    if (path == NULL)
        return hk_out_error(HK_EXIT_USAGE,
                            "which file? Name one, or set HIKYAKU_CONFIG; there is no ./hikyaku.yaml here");
    const char *file = strcmp(path, "-") == 0 ? stdin_name : path;
    hk_diags_init(&diags);
    enum hk_code rc = load(path, &diags, &config);
    if (rc == HK_OK)
        rc = check_channels(file, config, &diags);
    if (rc == HK_OK) {
        check_store(file, config, &diags);
        check_destinations(file, config, &diags);
    }
    if (config && diags.errors > 0) {
        hk_config_free(config);
        config = NULL;
    }
    if (rc == HK_NOMEM)
        code = hk_out_error(HK_EXIT_FAILURE, "not enough memory to read '%s'", path);
    else if (hk_args_flag(cli, "json"))
        code = print_json(file, &diags, config);
    else
        code = print_text(file, &diags, config);
    hk_config_free(config);
    hk_diags_fini(&diags);
    return code;
}
