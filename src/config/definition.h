/* SPDX-License-Identifier: Apache-2.0 */
/* A destination that is kept in the store: its text is what would stand under its name in the configuration, as YAML or JSON, and it is
 * read along the same tables. Whoever may write to the database must not gain rights on the relay's host, so it may do less than a
 * file, and every relay checks that when it reads it:
 *
 *   secrets        by reference only, never literally
 *   ${NAME}        only names that begin with HIKYAKU_SECRET_, without a default
 *   ${file:PATH}   only below the folder definitions.secrets; so are ca_file, cert_file and key_file
 *   allow          only within definitions.allow */
#ifndef HK_CONFIG_DEFINITION_H
#define HK_CONFIG_DEFINITION_H

#include "config/config.h"

#define HK_DEFINITION_VARIABLE "HIKYAKU_SECRET_"
#define HK_DEFINITION_REFER                                                                                  \
    "a definition holds none. Write ${" HK_DEFINITION_VARIABLE                                               \
    "NAME} for a variable of the relay, or ${file:NAME} for a file of its definitions.secrets"

/* What is wrong, and where: a JSON pointer into the definition ("" = all of it). */
struct hk_definition_wrong {
    const char *pointer, *message;
};

#define HK_DEFINITION_WRONGS_MAX 20

struct hk_definition_wrongs {
    struct hk_definition_wrong items[HK_DEFINITION_WRONGS_MAX];
    size_t n;
    size_t more; /* that are not among them */
};

struct hk_definition_ask {
    const struct hk_config *config; /* its policies and `definitions` hold */
    const char *name;
    struct hk_str text;
    /* False: what the text refers to may be missing here, and is left out. For those who look and act but send nothing. */
    bool secrets;
    const struct hk_config_env *env; /* NULL: the real environment and files */
};

/* Reads one. All that `out` holds lies in `mem` (wipe it: hk_pool_wipe), which may hold more afterwards also on an error. `wrongs` may be
 * NULL; its texts lie in `mem`. HK_INVALID: `err` says what is wrong, and `wrongs` all of it. HK_NOMEM. */
enum hk_code hk_config_define(const struct hk_definition_ask *ask, struct hk_pool *mem,
                              struct hk_conf_destination *out, struct hk_definition_wrongs *wrongs,
                              struct hk_err *err) HK_MUSTCHECK;

/* A retry policy by itself, as it would stand under its name in the configuration: for people who try one before they put it there. It
 * takes nothing from outside. `*out` belongs to the caller (hk_policy_free). `wrongs` as above. HK_INVALID, HK_NOMEM. */
enum hk_code hk_config_define_policy(struct hk_str text, struct hk_pool *mem, struct hk_policy **out,
                                     struct hk_definition_wrongs *wrongs, struct hk_err *err) HK_MUSTCHECK;

/* The text as JSON in one line, references as they stand: how definitions are kept. HK_INVALID, HK_NOMEM. */
enum hk_code hk_config_definition_json(struct hk_str text, struct hk_buf *out,
                                       struct hk_err *err) HK_MUSTCHECK;

/* Does a definition that is kept keep the order of keys, and pass over dead heads then? Of the text alone: no policy, no secret is looked
 * at, and nothing is checked. */
struct hk_definition_order {
    bool by_key, skip_dead;
};

struct hk_definition_order hk_config_definition_order(struct hk_str json);

/* Is it a queue of Cloud Tasks? Of the text alone, too: one that no relay can use is still a queue. */
bool hk_config_definition_is_queue(struct hk_str json);

/* One definition of a file that holds many. */
struct hk_definition_item {
    const char *name;
    struct hk_str text; /* JSON in one line */
};

/* A file of definitions by name, or with them under the key "destinations", as YAML or JSON. `*out` lies in `mem`. HK_INVALID, HK_NOMEM. */
enum hk_code hk_config_definitions(struct hk_str text, struct hk_pool *mem, struct hk_definition_item **out,
                                   size_t *out_n, struct hk_err *err) HK_MUSTCHECK;

/* Does the path lead to what is below the folder, with no ".." in it and no link out of it? `may_miss`: what is not there passes, if its
 * text does. HK_DENIED: it does not, or `folder` is NULL. HK_NOTFOUND: there is nothing. HK_IO. */
enum hk_code hk_folder_check(const char *folder, const char *path, bool may_miss,
                             struct hk_err *err) HK_MUSTCHECK;

#endif
