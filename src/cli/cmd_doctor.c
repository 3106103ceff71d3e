/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku doctor */
#include "base/str.h"
#include "cli/ask.h"
#include "cli/out.h"
#include "cli/policy/policies.h"
#include "cli/table.h"
#include "daemon/guard.h"
#include "desk/doctor.h"

/* With its secrets, else without; else the default. False: there is no memory. What is wrong with it has been printed. */
static bool take_config(const struct hk_cli *cli, struct hk_doctor_ask *asked, struct hk_config **out)
{
    struct hk_config *whole = NULL;
    asked->known = true;
    asked->file = hk_cli_config_path(cli);
    asked->broken = hk_settings_config(cli, HK_FOR_ACTING, out) != HK_EXIT_OK;
    if (asked->broken)
        return hk_config_defaults(out) == HK_OK;
    /* an operator may lack them; a relay that is started like this may not */
    asked->complete = hk_settings_config(cli, HK_FOR_TRYING, &whole) == HK_EXIT_OK;
    if (asked->complete) {
        hk_config_free(*out);
        *out = whole;
    }
    return true;
}

static void print_findings(const struct hk_ask *ask, const void *result, struct hk_buf *out)
{
    const struct hk_diagnosis *all = result;
    (void)ask;
    for (size_t i = 0; i < all->n; i++) {
        (void)hk_buf_addf(out, "%-4s  %-13s ", hk_note_names[all->items[i].level], all->items[i].check);
        (void)hk_table_safe(out, hk_str_of(all->items[i].text), 0);
        (void)hk_buf_addc(out, '\n');
    }
    (void)hk_buf_addf(out, "\n%zu ok, %zu to look at, %zu wrong\n", all->found[HK_NOTE_OK],
                      all->found[HK_NOTE_WARN], all->found[HK_NOTE_FAIL]);
}

int hk_cmd_doctor(struct hk_cli *cli)
{
    struct hk_ask ask;
    int code = hk_ask_read(cli, &ask);
    struct hk_doctor_ask *asked = ask.request;
    const struct hk_diagnosis *all = ask.result;
    bool elsewhere = false;
    if (code == HK_EXIT_OK)
        code = hk_ask_elsewhere(&ask, &elsewhere);
    if (code == HK_EXIT_OK && !elsewhere && !take_config(cli, asked, &ask.config))
        code = hk_out_error(HK_EXIT_FAILURE, "out of memory");
    const char *url = NULL;
    if (code == HK_EXIT_OK && !elsewhere)
        code = hk_settings_url(cli, ask.config, &url);
    if (code == HK_EXIT_OK && !elsewhere) {
        asked->can_lock = hk_guard_can_lock();
        asked->is_root = hk_guard_is_root();
        hk_desk_init(&ask.desk, ask.config, url);
    }
    if (code == HK_EXIT_OK)
        code = hk_ask_run(&ask);
    if (code == HK_EXIT_OK) {
        code = hk_ask_print(&ask, print_findings);
        code = all->found[HK_NOTE_FAIL] > 0 ? HK_EXIT_FAILURE : code;
    }
    hk_ask_end(&ask);
    return code;
}
