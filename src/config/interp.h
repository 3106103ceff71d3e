/* SPDX-License-Identifier: Apache-2.0 */
/* ${VAR}, ${VAR:-default} and ${file:PATH} in values; $${ is a literal ${. */
#ifndef HK_CONFIG_INTERP_H
#define HK_CONFIG_INTERP_H

#include "config/env.h"
#include "config/yaml.h"

#define HK_INTERP_FILE_MAX  (64u * 1024)
#define HK_INTERP_TOTAL_MAX (4u * 1024 * 1024) /* all that one configuration takes from outside */

/* The folder of `file`, to which relative paths belong ("" for the working one), into `out`, and `path` behind it. */
enum hk_code hk_interp_join(const char *file, struct hk_str path, struct hk_buf *out);

/* Replaces the scalars of the tree; what cannot be replaced is reported and becomes HK_YAML_BAD. A value that took
 * anything from outside is marked secret. HK_OK or HK_NOMEM. */
enum hk_code hk_interp_tree(struct hk_yaml *yaml, const char *file, const struct hk_config_env *env,
                            struct hk_diags *diags) HK_MUSTCHECK;

#endif
