/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the configuration, the database and the name of the person. */
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "cli/args.h"
#include "cli/out.h"
#include "cli/policy/policies.h"
#include "cli/settings.h"
#include "run/password.h"
#include "run/program.h"

#define LINE_MAX_BYTES ((size_t)1 << 16)

void hk_settings_complain(const struct hk_diags *diags)
{
    for (size_t i = 0; i < diags->n; i++) {
        struct hk_buf line;
        hk_buf_init(&line, LINE_MAX_BYTES);
        hk_diag_format(&diags->items[i], &line);
        hk_out_complaint(hk_buf_cstr(&line));
        hk_buf_fini(&line);
    }
    if (diags->errors + diags->warnings > diags->n)
        (void)fprintf(stderr, "... and %zu more\n", diags->errors + diags->warnings - diags->n);
}

int hk_settings_config(const struct hk_cli *cli, enum hk_settings_for purpose, struct hk_config **out_config)
{
    const char *path = hk_cli_config_path(cli);
    if (path == NULL)
        return hk_config_defaults(out_config) == HK_OK ? HK_EXIT_OK
                                                       : hk_out_error(HK_EXIT_FAILURE, "out of memory");
    struct hk_diags diags;
    hk_diags_init(&diags);
    const struct hk_config_env *env =
        purpose == HK_FOR_ACTING ? hk_config_env_operator() : hk_config_env_system();
    enum hk_code rc = hk_config_load(path, env, &diags, out_config);
    if (rc != HK_OK || purpose != HK_FOR_ACTING) /* warnings are about sending */
        hk_settings_complain(&diags);
    size_t errors = diags.errors;
    hk_diags_fini(&diags);
    if (rc == HK_OK)
        return HK_EXIT_OK;
    if (rc == HK_NOMEM)
        return hk_out_error(HK_EXIT_FAILURE, "out of memory");
    if (purpose == HK_FOR_TRYING)
        return HK_EXIT_CONFIG;
    return hk_out_error(HK_EXIT_CONFIG, "%s cannot be used: %zu error%s", path, errors,
                        errors == 1 ? "" : "s");
}

/* The keeper's descriptor travels in the URL, the one thing that reaches every connection. */
static enum hk_code add_keeper(struct hk_config *config, const char **out_url, struct hk_err *err)
{
    const struct hk_conf_list *command = &config->store.password_command;
    const char *argv[HK_PROGRAM_WORDS_MAX + 1] = {NULL};
    const char *const *words = command->items;
    struct hk_buf url;
    int fd = -1;
    for (size_t i = 0; i < command->n && i < HK_PROGRAM_WORDS_MAX; i++)
        argv[i] = words[i];
    enum hk_code rc = hk_password_keep(argv, &fd, err);
    if (rc != HK_OK)
        return rc;
    hk_buf_init(&url, LINE_MAX_BYTES);
    hk_buf_addf(&url, "%s%c" HK_PASSWORD_PARAMETER "=%d", config->store.url,
                strchr(config->store.url, '?') ? '&' : '?', fd);
    *out_url = hk_buf_status(&url) == HK_OK ? hk_pool_copy_str(&config->arena, hk_buf_str(&url)) : NULL;
    hk_buf_fini(&url);
    return *out_url ? HK_OK : hk_err_set(err, HK_NOMEM, "out of memory");
}

int hk_settings_url(const struct hk_cli *cli, struct hk_config *config, const char **out_url)
{
    struct hk_err err = {.message = ""};
    const char *url = hk_args_value(cli, "db");
    if (url == NULL)
        url = getenv("HIKYAKU_DB");
    *out_url = url != NULL && url[0] != '\0' ? url : config->store.url;
    if (strstr(*out_url, HK_PASSWORD_PARAMETER) != NULL)
        return hk_out_error(HK_EXIT_CONFIG, "the database URL must not have %s: it is hikyaku's own",
                            HK_PASSWORD_PARAMETER);
    if (*out_url != config->store.url || config->store.password_command.n == 0)
        return HK_EXIT_OK;
    enum hk_code rc = add_keeper(config, out_url, &err);
    return rc == HK_OK ? HK_EXIT_OK : hk_out_error(hk_settings_exit(rc), "%s", err.message);
}

enum hk_exit hk_settings_exit(enum hk_code code)
{
    switch (code) {
    case HK_OK:
        return HK_EXIT_OK;
    case HK_BUSY:
    case HK_TIMEOUT:
        return HK_EXIT_TEMPORARY;
    case HK_UNAVAILABLE:
    case HK_IO:
        return HK_EXIT_UNAVAILABLE;
    case HK_NOTFOUND:
    case HK_CONFLICT: /* a table of ours that is not ours: it will not go by itself */
    case HK_UNSUPPORTED:
    case HK_INVALID:
    case HK_RANGE:
        return HK_EXIT_CONFIG;
    case HK_NOMEM:
    case HK_TOOBIG:
    case HK_EXISTS:
    case HK_GAVE_UP:
    case HK_CANCELLED:
    case HK_DENIED:
    case HK_NCODES:
        break;
    }
    return HK_EXIT_FAILURE;
}

const char *hk_settings_actor(const struct hk_cli *cli, char out[HK_ACTOR_MAX])
{
    const char *given = hk_args_value(cli, "actor");
    if (given == NULL || given[0] == '\0')
        given = getenv("HIKYAKU_ACTOR");
    if (given != NULL && given[0] != '\0') {
        (void)snprintf(out, HK_ACTOR_MAX, "%s", given);
        return out;
    }
    char host[64] = "localhost";
    const struct passwd *user = getpwuid(getuid());
    (void)gethostname(host, sizeof host - 1);
    (void)snprintf(out, HK_ACTOR_MAX, "%s@%s", user ? user->pw_name : "unknown", host);
    return out;
}
