/* SPDX-License-Identifier: Apache-2.0 */
/* What operators' commands share: the store behind the settings, who acts and why, exit codes, and the JSON of facts. */
#ifndef HK_CLI_OPERATE_H
#define HK_CLI_OPERATE_H

#include "base/json.h"
#include "cli/ask.h"
#include "cli/cli.h"
#include "config/config.h"
#include "desk/encode.h"
#include "store/admin.h"

#define HK_OPERATE_OUTPUT_MAX ((size_t)256 << 20)

/* Going away: commands ask the desk (cli/ask.h). */
struct hk_operate {
    struct hk_desk desk;
    struct hk_config *config;
    const char *url;
    const struct hk_store_admin_ops *ops;
    struct hk_admin *admin;
};

/* Reads the configuration and opens the store. Unless HK_EXIT_OK: said why, and nothing is open. */
int hk_operate_open(const struct hk_cli *cli, struct hk_operate *out);
void hk_operate_close(struct hk_operate *op);
/* Says what a call on the open store said, and gives the exit code: 75 for what may work later, 1 for what does not fit
 * the message's state. */
int hk_operate_failed(const struct hk_err *err);

/* Asks the open store, and writes what it says as --json wants it. Anything but HK_OK ends the command with `err`. */
typedef enum hk_code hk_operate_ask(const struct hk_cli *cli, const struct hk_operate *op, struct hk_buf *out,
                                    struct hk_err *err);
/* A command that only shows: opens, asks, closes, prints. Returns the exit code. */
int hk_operate_show(const struct hk_cli *cli, hk_operate_ask *ask);

/* --reason, or asked for on a terminal; NULL: said that it is missing, exit with 2. */
const char *hk_operate_reason(const struct hk_cli *cli, char out[HK_REASON_TEXT_MAX]);

#define HK_PAYLOAD_MAX ((size_t)64 << 20)
/* TEXT itself, what comes from standard input ("-"), or what is in a file ("@FILE"). False: said why not. */
bool hk_operate_payload(const char *given, struct hk_buf *out);

/* ---- for reading ---- */

/* One line, "name             value", made safe for a terminal; nothing when there is no value. */
void hk_operate_fact(struct hk_buf *out, const char *name, struct hk_str value);
/* How long a payload is of which only the first HK_PAYLOAD_MAX bytes were read, and where the whole is: "dead_letters WHERE id"
 * and the id. No line end. */
void hk_operate_cut(struct hk_buf *out, uint64_t bytes, const char *where, int64_t id);
/* "~" in front of estimates. */
const char *hk_operate_count(struct hk_count count, char out[HK_SHOW_NUMBER]);
/* A destination as every table shows it: "(by route)" for a row that names none. */
struct hk_str hk_operate_to(struct hk_str destination);
/* What keeps messages from a destination: a pause, an open breaker; nothing for neither. */
void hk_operate_held(struct hk_buf *out, const struct hk_dest_status *dest, int64_t now_ms);

#endif
