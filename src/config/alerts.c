/* SPDX-License-Identifier: Apache-2.0 */
/* What must hold within channels and alerts, which rules there are when none is written, and what rules mean to
 * core/alert.h. */
#include <string.h>

#include "base/cidr.h"
#include "base/str.h"
#include "config/tables.h"
#include "config/text.h"
#include "config/walk.h"

/* ---- texts ---- */

/* Minutes of the day in "22:00"; -1: it is none. */
static int parse_clock(struct hk_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (i == 2 ? s.ptr[i] != ':' : !hk_ascii_isdigit(s.ptr[i]))
            return -1;
    if (s.len != 5)
        return -1;
    int hours = (s.ptr[0] - '0') * 10 + (s.ptr[1] - '0'), minutes = (s.ptr[3] - '0') * 10 + (s.ptr[4] - '0');
    return hours > 23 || minutes > 59 ? -1 : hours * 60 + minutes;
}

/* Minutes east of UTC in "+09:00"; false: it is none. */
static bool parse_zone(struct hk_str s, int32_t *out)
{
    if (hk_str_eqi(s, hk_str_of("Z")) || hk_str_eqi(s, hk_str_of("UTC"))) {
        *out = 0;
        return true;
    }
    if (s.len != 6 || (s.ptr[0] != '+' && s.ptr[0] != '-'))
        return false;
    int minutes = parse_clock((struct hk_str){s.ptr + 1, 5});
    if (minutes < 0 || minutes > 14 * 60)
        return false;
    *out = s.ptr[0] == '-' ? -minutes : minutes;
    return true;
}

bool hk_text_check_clock(struct hk_str s, char why[HK_WHY_MAX])
{
    return parse_clock(s) >= 0 || hk_text_refuse(why, "must be hours and minutes such as \"22:00\"");
}

bool hk_text_check_zone(struct hk_str s, char why[HK_WHY_MAX])
{
    int32_t zone = 0;
    return parse_zone(s, &zone) || hk_text_refuse(why, "must be an offset such as \"+09:00\", or Z");
}

/* With or without a name; alert/mail.c knows more, and refuses the rest before the relay starts. */
bool hk_text_check_email(struct hk_str s, char why[HK_WHY_MAX])
{
    bool at = false;
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.ptr[i];
        if (c < ' ' || c == 0x7f)
            return hk_text_refuse(why, "must be one address, without control characters");
        at = at || c == '@';
    }
    return at || hk_text_refuse(why, "must be an address such as ops@example.com");
}

bool hk_text_check_smtp_url(struct hk_str s, char why[HK_WHY_MAX])
{
    static const char *const schemes[] = {"smtp://", "smtps://"};
    for (size_t i = 0; i < HK_COUNT(schemes); i++) {
        struct hk_str scheme = hk_str_of(schemes[i]);
        if (!hk_str_starts(s, scheme))
            continue;
        struct hk_str rest = {s.ptr + scheme.len, s.len - scheme.len};
        if (memchr(rest.ptr, '@', rest.len))
            return hk_text_refuse(why, "must not hold a name or a password: give \"user\" and \"password\"");
        if (rest.len && rest.ptr[rest.len - 1] == '/')
            rest.len--;
        return hk_text_is_authority(rest) || hk_text_refuse(why, "must name a server, smtp://HOST[:PORT]");
    }
    return hk_text_refuse(why, "must begin with smtp:// or smtps://");
}

/* ---- channels ---- */

void hk_check_email(struct hk_walk *walk, const struct hk_yaml_node *node, void *section)
{
    struct hk_conf_email *email = section;
    const char *key = email->user && !email->password   ? "user"
                      : email->password && !email->user ? "password"
                                                        : NULL;
    if (hk_walk_failed(walk) || walk->env->without_secrets)
        return;
    if (key)
        hk_walk_error(walk, hk_walk_at(walk, node, key), "\"user\" and \"password\" need each other");
    bool plain = strncmp(email->url, "smtp://", 7) == 0 && !email->starttls;
    if (plain && email->password && !hk_text_url_is_local(email->url))
        hk_walk_warn(walk, hk_walk_at(walk, node, "starttls"),
                     "the password may go out unencrypted: starttls is false");
}

static const char *guarded_url(const struct hk_conf_channel *c, const char **out_key)
{
    *out_key = hk_conf_channel_kind_name(c->kind);
    switch (c->kind) {
    case HK_CONF_SLACK:
        return c->slack.url;
    case HK_CONF_WEBHOOK:
        return c->webhook.url;
    case HK_CONF_PAGERDUTY:
        return c->pagerduty.url;
    case HK_CONF_EMAIL:
    case HK_CONF_EXEC:
        break;
    }
    return NULL;
}

static bool is_allowed(const struct hk_conf_channel *c, const struct hk_ip *ip)
{
    const struct hk_cidr *ranges = c->allow.items;
    for (size_t i = 0; i < c->allow.n; i++)
        if (hk_cidr_has(&ranges[i], ip))
            return true;
    return false;
}

void hk_check_channel(struct hk_walk *walk, const struct hk_yaml_node *node, void *section)
{
    struct hk_conf_channel *c = section;
    const char *key = NULL;
    struct hk_ip ip;
    for (int i = HK_CHANNEL_SLACK_OPT; i <= HK_CHANNEL_EXEC_OPT; i++)
        if (HK_GIVEN(c, i))
            c->kind = (enum hk_conf_channel_kind)i;
    if (hk_walk_failed(walk))
        return;
    const char *url = guarded_url(c, &key);
    if (!url && HK_GIVEN(c, HK_CHANNEL_ALLOW_OPT))
        hk_walk_warn(walk, hk_walk_at(walk, node, "allow"), "\"allow\" has no effect with \"%s\"", key);
    if (!url && HK_GIVEN(c, HK_CHANNEL_PROXY_OPT))
        hk_walk_warn(walk, hk_walk_at(walk, node, "proxy"), "\"proxy\" has no effect with \"%s\"", key);
    if (!url || walk->env->without_secrets || !hk_text_url_ip(url, &ip))
        return;
    const char *special = hk_ip_special(&ip);
    if (special && !is_allowed(c, &ip))
        hk_walk_warn(
            walk, hk_walk_at(walk, node, key),
            "notices to this %s address are blocked: list it in \"allow\" of the channel, for example allow: [127.0.0.0/8]",
            special);
}

/* ---- rules ---- */

/* Which options mean something with which kind. */
static bool means(enum hk_alert_kind kind, int opt)
{
    switch (opt) {
    case HK_ALERT_RULE_DESTINATION_OPT:
        return hk_alert_kind_has_letters(kind) || kind == HK_ALERT_DEAD_LETTERS_ABOVE ||
               kind == HK_ALERT_DEAD_LETTERS_RISING || kind == HK_ALERT_BREAKER_OPEN ||
               kind == HK_ALERT_PAUSED;
    case HK_ALERT_RULE_EVENT_OPT:
    case HK_ALERT_RULE_REASON_OPT:
    case HK_ALERT_RULE_FIELDS_OPT:
        return hk_alert_kind_has_letters(kind);
    case HK_ALERT_RULE_ABOVE_OPT:
        return kind == HK_ALERT_DEAD_LETTERS_ABOVE || kind == HK_ALERT_DEAD_LETTERS_RISING;
    case HK_ALERT_RULE_AGE_OPT:
        return kind == HK_ALERT_OLDEST_AGE || kind == HK_ALERT_NO_PROGRESS ||
               kind == HK_ALERT_DEAD_LETTERS_RISING || kind == HK_ALERT_LAG_GROWING;
    default:
        return true;
    }
}

static uint64_t default_age_ms(enum hk_alert_kind kind)
{
    return kind == HK_ALERT_OLDEST_AGE ? 15 * 60000 : kind == HK_ALERT_NO_PROGRESS ? 5 * 60000 : 10 * 60000;
}

void hk_check_alert_rule(struct hk_walk *walk, const struct hk_yaml_node *node, void *section)
{
    struct hk_conf_alert_rule *rule = section;
    if (!HK_GIVEN(rule, HK_ALERT_RULE_WHEN_OPT))
        return;
    for (int i = 0; i < HK_ALERT_RULE_NOPTS; i++)
        if (HK_GIVEN(rule, i) && !means(rule->when, i))
            hk_walk_error(walk, hk_walk_at(walk, node, hk_alert_rule_table.opts[i].key),
                          "\"%s\" means nothing with when: %s", hk_alert_rule_table.opts[i].key,
                          hk_alert_kind_word(rule->when));
    if (!HK_GIVEN(rule, HK_ALERT_RULE_ABOVE_OPT))
        rule->above = rule->when == HK_ALERT_DEAD_LETTERS_RISING ? 10 : 100;
    if (!HK_GIVEN(rule, HK_ALERT_RULE_AGE_OPT))
        rule->age_ms = default_age_ms(rule->when);
    if (!HK_GIVEN(rule, HK_ALERT_RULE_FOR_OPT))
        rule->for_ms = hk_alert_kind_is_own(rule->when) ? 30000 : 0;
}

void hk_check_quiet(struct hk_walk *walk, const struct hk_yaml_node *node, void *section)
{
    struct hk_conf_quiet *quiet = section;
    if (hk_walk_failed(walk) || (!quiet->from && !quiet->to))
        return;
    if (!quiet->from || !quiet->to) {
        hk_walk_error(walk, hk_walk_at(walk, node, quiet->from ? "from" : "to"),
                      "\"from\" and \"to\" need each other");
        return;
    }
    quiet->hours = (struct hk_quiet_hours){.on = true,
                                           .from_min = (uint32_t)parse_clock(hk_str_of(quiet->from)),
                                           .to_min = (uint32_t)parse_clock(hk_str_of(quiet->to)),
                                           .let_through = quiet->let_through};
    (void)parse_zone(hk_str_of(quiet->zone), &quiet->hours.zone_min);
    if (quiet->hours.from_min == quiet->hours.to_min)
        hk_walk_error(walk, hk_walk_at(walk, node, "to"),
                      "\"to\" is \"from\": the quiet hours would have no length");
}

void hk_check_alerts(struct hk_walk *walk, const struct hk_yaml_node *node, void *section)
{
    const struct hk_conf_alerts *alerts = section;
    const struct hk_conf_alert_rule *rules = alerts->rules.items;
    const struct hk_yaml_node *list = hk_yaml_get(node, "rules");
    const struct hk_yaml_node *item = list && list->kind == HK_YAML_SEQUENCE ? list->first : NULL;
    for (size_t i = 0; item && i < alerts->rules.n; i++, item = item->next)
        for (size_t k = 0; k < i; k++)
            if (rules[i].name && rules[k].name && strcmp(rules[i].name, rules[k].name) == 0) {
                hk_walk_error(walk, hk_walk_at(walk, item, "name"),
                              "there are two alert rules \"%s\": names tell them apart", rules[i].name);
                break;
            }
}

/* What is told when channels are configured and no rules. */
static const struct hk_conf_alert_rule standard[] = {
    {.name = "dead-letter", .when = HK_ALERT_DEAD_LETTER, .severity = HK_ALERT_WARNING},
    {.name = "dead-letters-rising",
     .when = HK_ALERT_DEAD_LETTERS_RISING,
     .above = 100,
     .age_ms = 10 * 60000,
     .severity = HK_ALERT_CRITICAL},
    {.name = "oldest-age",
     .when = HK_ALERT_OLDEST_AGE,
     .age_ms = 15 * 60000,
     .for_ms = 60000,
     .severity = HK_ALERT_WARNING},
    {.name = "breaker-open", .when = HK_ALERT_BREAKER_OPEN, .for_ms = 60000, .severity = HK_ALERT_WARNING},
    {.name = "paused", .when = HK_ALERT_PAUSED, .for_ms = 3600000, .severity = HK_ALERT_INFO},
    {.name = "store-unreachable",
     .when = HK_ALERT_STORE_UNREACHABLE,
     .for_ms = 30000,
     .severity = HK_ALERT_CRITICAL},
    {.name = "no-progress", .when = HK_ALERT_NO_PROGRESS, .age_ms = 5 * 60000, .severity = HK_ALERT_CRITICAL},
    {.name = "lag-growing", .when = HK_ALERT_LAG_GROWING, .age_ms = 10 * 60000, .severity = HK_ALERT_WARNING},
    {.name = "requeue-failed", .when = HK_ALERT_REQUEUE_FAILED, .severity = HK_ALERT_WARNING},
    {.name = "key-missing", .when = HK_ALERT_KEY_MISSING, .for_ms = 30000, .severity = HK_ALERT_CRITICAL},
};

/* ---- reading ---- */

const struct hk_conf_channel *hk_config_channel(const struct hk_config *config, size_t i)
{
    const struct hk_conf_channel *items = config->channels.items;
    return i < config->channels.n ? &items[i] : NULL;
}

const struct hk_conf_alert_rule *hk_config_alert_rule(const struct hk_config *config, size_t i)
{
    const struct hk_conf_alert_rule *items = config->alerts.rules.items;
    if (config->channels.n && !config->alerts.rules.n)
        return i < HK_COUNT(standard) ? &standard[i] : NULL;
    return i < config->alerts.rules.n ? &items[i] : NULL;
}

bool hk_config_knows_rule(const struct hk_config *config, const char *name)
{
    const struct hk_conf_alert_rule *rules = config->alerts.rules.n ? config->alerts.rules.items : standard;
    size_t n = config->alerts.rules.n ? config->alerts.rules.n : HK_COUNT(standard);
    for (size_t i = 0; i < n; i++)
        if (rules[i].name && strcmp(rules[i].name, name) == 0)
            return true;
    return false;
}

struct hk_alert_rule hk_conf_rule(const struct hk_conf_alert_rule *rule)
{
    return (struct hk_alert_rule){.name = rule->name,
                                  .kind = rule->when,
                                  .severity = rule->severity,
                                  .destination = rule->destination,
                                  .event_type = rule->event_type,
                                  .reason = rule->reason,
                                  .above = rule->above,
                                  .age_ms = rule->age_ms,
                                  .for_ms = rule->for_ms};
}

bool hk_conf_rule_has(const struct hk_conf_alert_rule *rule, const struct hk_conf_channel *channel)
{
    const char *name = NULL;
    if (rule->severity < channel->severity)
        return false;
    for (size_t i = 0; (name = hk_conf_text(&rule->channels, i)) != NULL; i++)
        if (strcmp(name, channel->name) == 0)
            return true;
    return rule->channels.n == 0;
}

const char *hk_conf_channel_kind_name(enum hk_conf_channel_kind kind)
{
    return hk_channel_table.opts[kind].key;
}

enum hk_alert_language hk_conf_language(const struct hk_config *config, const struct hk_conf_channel *channel)
{
    return HK_GIVEN(channel, HK_CHANNEL_LANGUAGE_OPT) ? channel->language : config->alerts.language;
}
