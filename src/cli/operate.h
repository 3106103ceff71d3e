/* SPDX-License-Identifier: Apache-2.0 */
/* What operators' commands share: the store behind the settings, who acts and why, exit codes, and the JSON of facts. */
#ifndef HK_CLI_OPERATE_H
#define HK_CLI_OPERATE_H

#include "base/json.h"
#include "cli/cli.h"
#include "config/config.h"
#include "store/admin.h"

#define HK_OPERATE_OUTPUT_MAX ((size_t)256 << 20)

struct hk_operate {
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

#define HK_REASON_TEXT_MAX 512
/* --reason, or asked for on a terminal; NULL: said that it is missing, exit with 2. */
const char *hk_operate_reason(const struct hk_cli *cli, char out[HK_REASON_TEXT_MAX]);

/* The configured destination of that name, or NULL. */
const struct hk_conf_destination *hk_operate_destination(const struct hk_config *config, struct hk_str name);

#define HK_PAYLOAD_MAX ((size_t)64 << 20)
/* TEXT itself, what comes from standard input ("-"), or what is in a file ("@FILE"). False: said why not. */
bool hk_operate_payload(const char *given, struct hk_buf *out);

/* ---- one member of an object ---- */

void hk_put_str(struct hk_json *json, const char *key, struct hk_str s);         /* null when empty */
void hk_put_id(struct hk_json *json, const char *key, int64_t id);               /* a string; null for 0 */
void hk_put_time(struct hk_json *json, const char *key, int64_t ms);             /* RFC 3339; null for 0 */
void hk_put_count(struct hk_json *json, const char *key, struct hk_count count); /* {"n":…,"estimate":…} */
/* As text where it is UTF-8, else as base64 under key + "_base64"; the other is left out. */
void hk_put_bytes(struct hk_json *json, const char *key, struct hk_str bytes);
/* The facts of one row, without its details. */
void hk_put_row(struct hk_json *json, const struct hk_row *row);

int64_t hk_operate_wall_ms(void);

/* ---- for reading ---- */

/* "~" in front of estimates. */
const char *hk_operate_count(struct hk_count count, char out[48]);
/* "3m12s ago", "in 5s", "now"; "-" for 0. */
const char *hk_operate_ago(int64_t ms, int64_t now_ms, char out[64]);

#endif
