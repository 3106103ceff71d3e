/* SPDX-License-Identifier: Apache-2.0 */
/* From the configuration's lists to rules. */
#include "base/mem.h"
#include "config/payload.h"

static const char *const *texts(const struct hk_conf_list *list)
{
    return (const char *const *)list->items;
}

enum hk_code hk_config_make_validate(const struct hk_config *config, struct hk_validate **out,
                                     struct hk_err *err)
{
    const size_t n = config->validate.n;
    struct hk_validate *validate = NULL;
    struct hk_validate_rule *rules = hk_mem_zalloc(n, sizeof rules[0]);
    if (!rules)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    for (size_t i = 0; i < n; i++) {
        const struct hk_conf_validate *conf = hk_config_validate(config, i);
        rules[i] = (struct hk_validate_rule){
            .event_type = conf->event_type,
            .json = conf->json,
            .required = texts(&conf->required),
            .n_required = conf->required.n,
            .max_size_bytes = conf->max_size_bytes,
        };
    }
    enum hk_code rc = n ? hk_validate_new(rules, n, &validate, err) : HK_OK;
    hk_mem_free(rules);
    if (rc == HK_OK)
        *out = validate;
    return rc;
}

enum hk_code hk_config_make_masks(const struct hk_config *config, struct hk_masks **out, struct hk_err *err)
{
    const size_t n = config->masks.n;
    struct hk_masks *masks = NULL;
    struct hk_mask_rule *rules = hk_mem_zalloc(n, sizeof rules[0]);
    if (!rules)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    for (size_t i = 0; i < n; i++) {
        const struct hk_conf_mask *conf = hk_config_mask(config, i);
        rules[i] = (struct hk_mask_rule){
            .event_type = conf->event_type,
            .paths = texts(&conf->paths),
            .n_paths = conf->paths.n,
            .headers = texts(&conf->headers),
            .n_headers = conf->headers.n,
        };
    }
    enum hk_code rc = n ? hk_masks_new(rules, n, &masks, err) : HK_OK;
    hk_mem_free(rules);
    if (rc == HK_OK)
        *out = masks;
    return rc;
}
