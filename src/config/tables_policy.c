/* SPDX-License-Identifier: Apache-2.0 */
/* The option tables of a retry policy. They hold no defaults: what is not given comes from the preset. */
#include "base/parse.h"
#include "config/tables.h"
#include "config/text.h"

#define AT(type, member) .offset = offsetof(type, member)
#define PRESET           .otherwise = "as the preset"
#define TIME             .max = HK_DURATION_MAX_MS
#define COUNT            .max = UINT32_MAX

static const struct hk_word kind_words[] = {
    {"fixed", HK_BACKOFF_FIXED},
    {"linear", HK_BACKOFF_LINEAR},
    {"exponential", HK_BACKOFF_EXPONENTIAL},
    {"list", HK_BACKOFF_LIST},
    {"cloud-tasks", HK_BACKOFF_CLOUD_TASKS},
    {"azure-exponential", HK_BACKOFF_AZURE_EXPONENTIAL},
    {"azure-linear", HK_BACKOFF_AZURE_LINEAR},
    {NULL, 0},
};

static const struct hk_opt wait_elem = {.type = HK_OPT_DURATION, TIME};

static const struct hk_opt backoff_opts[HK_BACKOFF_NOPTS] = {
    [HK_BACKOFF_KIND_OPT] =
        {"kind", HK_OPT_ENUM, AT(struct hk_conf_backoff, kind), .words = kind_words, PRESET,
         .help = "how waits grow; another kind than the preset's starts from its own defaults"},
    [HK_BACKOFF_BASE_OPT] = {"base", HK_OPT_DURATION, AT(struct hk_conf_backoff, base_ms), .min = 1, TIME,
                             PRESET, .example = "1s", .help = "the first wait (all kinds but list)"},
    [HK_BACKOFF_DELTA_OPT] = {"delta", HK_OPT_DURATION, AT(struct hk_conf_backoff, base_ms), .min = 1, TIME,
                              .example = "10s", .help = "another name of base, for the azure kinds"},
    [HK_BACKOFF_MIN_OPT] = {"min", HK_OPT_DURATION, AT(struct hk_conf_backoff, min_ms), TIME, PRESET,
                            .example = "1s", .help = "added to every wait (azure-exponential)"},
    [HK_BACKOFF_CAP_OPT] = {"cap", HK_OPT_DURATION, AT(struct hk_conf_backoff, cap_ms), .min = 1, TIME,
                            PRESET, .example = "1h", .help = "no wait is longer"},
    [HK_BACKOFF_FACTOR_OPT] = {"factor", HK_OPT_DOUBLE, AT(struct hk_conf_backoff, factor), .fmin = 1,
                               .fmax = 1000, PRESET, .example = "2",
                               .help = "each wait is the one before times this (exponential)"},
    [HK_BACKOFF_DOUBLINGS_OPT] =
        {"max_doublings", HK_OPT_U32, AT(struct hk_conf_backoff, max_doublings), COUNT, PRESET,
         .example = "16",
         .help = "how many times the wait doubles before it grows by a fixed step (cloud-tasks)"},
    [HK_BACKOFF_FAST_OPT] = {"fast_first", HK_OPT_BOOL, AT(struct hk_conf_backoff, fast_first), PRESET,
                             .example = "true", .help = "the first retry, and only the first, comes at once"},
    [HK_BACKOFF_WAITS_OPT] = {"waits", HK_OPT_LIST, AT(struct hk_conf_backoff, waits), .min = 1,
                              .max = HK_BACKOFF_WAITS_MAX, .elem = &wait_elem, PRESET,
                              .example = "[5s, 5m, 30m]",
                              .help = "every wait in turn, the last one repeats (list)"},
};

const struct hk_opt_table hk_backoff_table = {
    .name = "backoff",
    .where = "policies.NAME.backoff, policies.NAME.classes.CLASS.backoff",
    .size = sizeof(struct hk_conf_backoff),
    .opts = backoff_opts,
    .n_opts = HK_BACKOFF_NOPTS,
    .example = "{ kind: exponential, base: 1s, factor: 2, cap: 1h }",
};

static const struct hk_word jitter_words[] = {
    {"none", HK_JITTER_NONE},
    {"full", HK_JITTER_FULL},
    {"equal", HK_JITTER_EQUAL},
    {"decorrelated", HK_JITTER_DECORRELATED},
    {NULL, 0},
};

static const struct hk_opt jitter_opts[HK_JITTER_NOPTS] = {
    [HK_JITTER_KIND_OPT] = {"kind", HK_OPT_ENUM, HK_OPT_HIDDEN, AT(struct hk_conf_jitter, value.kind),
                            .words = jitter_words, .example = "{ ratio: 0.2 }",
                            .help = "the forms without a number"},
    [HK_JITTER_RATIO_OPT] = {"ratio", HK_OPT_DOUBLE, AT(struct hk_conf_jitter, value.ratio), .fmin = 0,
                             .fmax = 1, .example = "0.2",
                             .help = "each wait is up to this share shorter or longer"},
    [HK_JITTER_ADD_OPT] = {"add", HK_OPT_DURATION, AT(struct hk_conf_jitter, value.add_ms), TIME,
                           .example = "2s", .help = "up to this much is added to each wait"},
};

const struct hk_opt_table hk_jitter_table = {
    .name = "jitter",
    .where = "policies.NAME.jitter, policies.NAME.classes.CLASS.jitter",
    .size = sizeof(struct hk_conf_jitter),
    .opts = jitter_opts,
    .n_opts = HK_JITTER_NOPTS,
    .shorthand = true,
    .example = "{ ratio: 0.2 }",
    .check = hk_check_jitter,
};

static const struct hk_word off_words[] = {{"off", 1}, {NULL, 0}};

#define BREAKER(member) AT(struct hk_conf_breaker, options.member), .otherwise = "as the policy or its preset"

static const struct hk_opt breaker_opts[HK_BREAKER_NOPTS] = {
    [HK_BREAKER_OFF_OPT] = {"off", HK_OPT_ENUM, HK_OPT_HIDDEN, AT(struct hk_conf_breaker, off),
                            .words = off_words, .example = "{ failures: 5, window: 30s }",
                            .help = "no breaker"},
    [HK_BREAKER_FAILURES_OPT] = {"failures", HK_OPT_U32, BREAKER(failures), .max = 1000, .example = "5",
                                 .help =
                                     "this many failures in a row, all within window, open it; 0: rule off"},
    [HK_BREAKER_RATIO_OPT] = {"ratio", HK_OPT_DOUBLE, BREAKER(ratio), .fmin = 0, .fmax = 1, .example = "0.5",
                              .help = "this share of failures within window opens it; 0: rule off"},
    [HK_BREAKER_THROUGHPUT_OPT] = {"min_throughput", HK_OPT_U32, BREAKER(min_throughput), COUNT,
                                   .example = "20", .help = "outcomes in the window before ratio counts"},
    [HK_BREAKER_WINDOW_OPT] = {"window", HK_OPT_DURATION, BREAKER(window_ms), .min = 1, TIME,
                               .example = "30s", .help = "how far back both rules look"},
    [HK_BREAKER_OPEN_OPT] = {"open", HK_OPT_DURATION, BREAKER(open_ms), .min = 1, TIME, .example = "10s",
                             .help = "how long it stays open the first time"},
    [HK_BREAKER_OPEN_FACTOR_OPT] = {"open_factor", HK_OPT_DOUBLE, BREAKER(open_factor), .fmin = 1,
                                    .fmax = 1000000, .example = "2",
                                    .help = "each failed probe multiplies the open time by this"},
    [HK_BREAKER_OPEN_CAP_OPT] = {"open_cap", HK_OPT_DURATION, BREAKER(open_cap_ms), .min = 1, TIME,
                                 .example = "5m", .help = "it never stays open longer"},
    [HK_BREAKER_OPEN_JITTER_OPT] = {"open_jitter", HK_OPT_DOUBLE, BREAKER(open_jitter), .fmin = 0, .fmax = 1,
                                    .example = "0.1", .help = "up to this share is added to the open time"},
    [HK_BREAKER_PROBES_OPT] = {"probes", HK_OPT_U32, BREAKER(probes), .min = 1, COUNT, .example = "1",
                               .help = "requests at once while it is half-open"},
    [HK_BREAKER_SUCCESSES_OPT] = {"successes", HK_OPT_U32, BREAKER(successes), .min = 1, COUNT,
                                  .example = "1", .help = "probes that must succeed to close it"},
};

const struct hk_opt_table hk_breaker_table = {
    .name = "breaker",
    .where = "policies.NAME.breaker, destinations.NAME.breaker",
    .size = sizeof(struct hk_conf_breaker),
    .opts = breaker_opts,
    .n_opts = HK_BREAKER_NOPTS,
    .shorthand = true,
    .example = "{ failures: 5, window: 30s, open: 10s }",
};

static const struct hk_word action_words[] = {{"retry", 1}, {"dead", 0}, {NULL, 0}};

static const struct hk_opt class_opts[HK_CLASS_NOPTS] = {
    [HK_CLASS_ACTION_OPT] = {"action", HK_OPT_ENUM, AT(struct hk_conf_class, retry), .words = action_words,
                             PRESET, .help = "retry, or a dead letter at the first failure"},
    [HK_CLASS_MAX_OPT] =
        {"max_attempts", HK_OPT_U32, AT(struct hk_conf_class, max_attempts), COUNT, PRESET,
         .word = "unlimited", .example = "4",
         .help = "failures of this class until the message is dead; 0: the policy's total decides"},
    [HK_CLASS_CHARGE_OPT] = {"charge", HK_OPT_BOOL, AT(struct hk_conf_class, charge), PRESET,
                             .example = "true",
                             .help = "whether a failure counts against the policy's max_attempts"},
    [HK_CLASS_BACKOFF_OPT] = {"backoff", HK_OPT_SECTION, AT(struct hk_conf_class, backoff),
                              .sub = &hk_backoff_table, .otherwise = "as the policy",
                              .help = "the waits of this class"},
    [HK_CLASS_JITTER_OPT] = {"jitter", HK_OPT_SECTION, AT(struct hk_conf_class, jitter),
                             .sub = &hk_jitter_table, .otherwise = "as the policy", .example = "full",
                             .help = "the jitter of this class"},
    [HK_CLASS_PAUSE_OPT] = {"pause_after", HK_OPT_U32, AT(struct hk_conf_class, pause_after), COUNT, PRESET,
                            .word = "never", .example = "5",
                            .help = "failures in a row that pause the destination; 0: never"},
};

const struct hk_opt_table hk_class_table = {
    .name = "class",
    .where = "policies.NAME.classes.CLASS",
    .size = sizeof(struct hk_conf_class),
    .opts = class_opts,
    .n_opts = HK_CLASS_NOPTS,
    .example = "{ action: retry, max_attempts: 4 }",
};

#define CLASS(word, cls, text)                                                                               \
    {                                                                                                        \
        (word), HK_OPT_SECTION, AT(struct hk_conf_classes, by_class[cls]), .sub = &hk_class_table, PRESET,   \
                                                                           .help = (text)                    \
    }

static const struct hk_opt classes_opts[] = {
    CLASS("transient", HK_CLASS_TRANSIENT, "may pass by itself: network, timeout, 408, 5xx"),
    CLASS("rate_limit", HK_CLASS_RATE_LIMIT, "the destination asks to slow down: 429"),
    CLASS("auth", HK_CLASS_AUTH, "our credentials are refused: 401, 403, 407"),
    CLASS("permanent", HK_CLASS_PERMANENT, "this message will never be accepted: other 4xx, invalid payload"),
    CLASS("unknown", HK_CLASS_UNKNOWN, "any failure without a rule: 3xx, certificates"),
};

const struct hk_opt_table hk_classes_table = {
    .name = "classes",
    .where = "policies.NAME.classes",
    .size = sizeof(struct hk_conf_classes),
    .opts = classes_opts,
    .n_opts = HK_COUNT(classes_opts),
    .example = "{ auth: { pause_after: 5 } }",
};

static const struct hk_word class_words[] = {
    {"transient", HK_CLASS_TRANSIENT},
    {"rate_limit", HK_CLASS_RATE_LIMIT},
    {"auth", HK_CLASS_AUTH},
    {"permanent", HK_CLASS_PERMANENT},
    {"unknown", HK_CLASS_UNKNOWN},
    {"success", HK_CLASS_SUCCESS},
    {NULL, 0},
};

static const struct hk_opt rule_opts[HK_RULE_NOPTS] = {
    [HK_RULE_MATCH_OPT] =
        {"match", HK_OPT_STRING, HK_OPT_REQUIRED, AT(struct hk_conf_rule, match), .min = 1, .max = 64,
         .example = "409",
         .help = "a status (409, 5xx, 500-599), a fault (timeout), a reason code (HTTP_422), or *"},
    [HK_RULE_HEADER_OPT] = {"header", HK_OPT_STRING, AT(struct hk_conf_rule, header), .min = 1,
                            .max = HK_PATTERN_MAX - 1, .check = hk_text_check_header_name,
                            .example = "X-Error", .help = "the answer must also have this header"},
    [HK_RULE_CONTAINS_OPT] = {"contains", HK_OPT_STRING, AT(struct hk_conf_rule, contains), .min = 1,
                              .max = HK_PATTERN_MAX - 1, .example = "quota",
                              .help = "text that this header must contain"},
    [HK_RULE_BODY_OPT] = {"body", HK_OPT_STRING, AT(struct hk_conf_rule, body), .min = 1,
                          .max = HK_PATTERN_MAX - 1, .example = "card_expired",
                          .help = "text that the answer's first bytes must also contain"},
    [HK_RULE_CLASS_OPT] = {"class", HK_OPT_ENUM, HK_OPT_REQUIRED, AT(struct hk_conf_rule, to_class),
                           .words = class_words, .example = "permanent",
                           .help = "the class of a matching attempt"},
    [HK_RULE_REASON_OPT] = {"reason", HK_OPT_STRING, AT(struct hk_conf_rule, reason), .min = 1,
                            .max = HK_REASON_MAX - 1, .check = hk_text_check_reason,
                            .example = "CARD_EXPIRED", .otherwise = "as the default table",
                            .help = "the reason code of a matching attempt"},
    [HK_RULE_PAUSE_OPT] = {"pause", HK_OPT_BOOL, AT(struct hk_conf_rule, pause), .fallback = "false",
                           .help = "pause the destination as well"},
};

const struct hk_opt_table hk_rule_table = {
    .name = "classify rule",
    .where = "policies.NAME.classify[]",
    .size = sizeof(struct hk_conf_rule),
    .opts = rule_opts,
    .n_opts = HK_RULE_NOPTS,
    .example = "{ match: 409, class: permanent }",
};

static const struct hk_word limit_words[] = {{"any", HK_LIMIT_ANY}, {"all", HK_LIMIT_ALL}, {NULL, 0}};

static const struct hk_word hint_words[] = {
    {"standard", HK_HINTS_STANDARD}, {"all", HK_HINTS_ALL}, {"none", HK_HINTS_NONE}, {NULL, 0}};

static const struct hk_opt policy_opts[HK_POLICY_NOPTS] = {
    [HK_POLICY_PRESET_OPT] = {"preset", HK_OPT_NAME, AT(struct hk_conf_policy, preset),
                              .fallback = "standard", .help = "what the policy starts from"},
    [HK_POLICY_CUSTOM_OPT] = {"custom", HK_OPT_NAME, AT(struct hk_conf_policy, custom),
                              .example = "my_policy",
                              .help = "operations that a program registered with hk_policies_register"},
    [HK_POLICY_BACKOFF_OPT] = {"backoff", HK_OPT_SECTION, AT(struct hk_conf_policy, backoff),
                               .sub = &hk_backoff_table, PRESET, .help = "the wait before each retry"},
    [HK_POLICY_JITTER_OPT] = {"jitter", HK_OPT_SECTION, AT(struct hk_conf_policy, jitter),
                              .sub = &hk_jitter_table, PRESET, .example = "full",
                              .help = "random part of each wait, so that many clients do not retry at once"},
    [HK_POLICY_MAX_ATTEMPTS_OPT] = {"max_attempts", HK_OPT_U32,
                                    AT(struct hk_conf_policy, limits.max_attempts), COUNT, PRESET,
                                    .word = "unlimited", .example = "10",
                                    .help = "attempts, the first included; 0 is unlimited"},
    [HK_POLICY_MAX_ELAPSED_OPT] = {"max_elapsed", HK_OPT_DURATION,
                                   AT(struct hk_conf_policy, limits.max_elapsed_ms), TIME, PRESET,
                                   .word = "never", .example = "24h",
                                   .help =
                                       "maximum time since the first attempt, without pauses; 0 is never"},
    [HK_POLICY_TIMEOUT_OPT] = {"timeout", HK_OPT_DURATION, AT(struct hk_conf_policy, limits.timeout_ms), TIME,
                               PRESET, .word = "never", .example = "30s",
                               .help = "maximum time of one attempt; 0 is never"},
    [HK_POLICY_LIMIT_MODE_OPT] =
        {"limit_mode", HK_OPT_ENUM, AT(struct hk_conf_policy, limits.mode), .words = limit_words, PRESET,
         .help =
             "any: the first limit that is reached ends the retries; all: only all set limits together do"},
    [HK_POLICY_HINTS_OPT] =
        {"hints", HK_OPT_ENUM, AT(struct hk_conf_policy, limits.hints), .words = hint_words, PRESET,
         .help =
             "which answers' Retry-After counts: standard: those of 429 and 503; all: of every failure; none"},
    [HK_POLICY_HINT_CAP_OPT] = {"hint_cap", HK_OPT_DURATION, AT(struct hk_conf_policy, limits.hint_cap_ms),
                                TIME, PRESET, .example = "1h", .help = "a longer Retry-After is cut to this"},
    [HK_POLICY_CLASSES_OPT] = {"classes", HK_OPT_SECTION, AT(struct hk_conf_policy, classes),
                               .sub = &hk_classes_table, PRESET,
                               .help = "what happens after a failure of each class"},
    [HK_POLICY_CLASSIFY_OPT] = {"classify", HK_OPT_LIST, AT(struct hk_conf_policy, classify),
                                .max = HK_POLICY_RULES, .sub = &hk_rule_table,
                                .example = "[{ match: 409, class: permanent }]",
                                .help = "rules that apply before the default table; the first match wins"},
    [HK_POLICY_BREAKER_OPT] = {"breaker", HK_OPT_SECTION, AT(struct hk_conf_policy, breaker),
                               .sub = &hk_breaker_table, PRESET,
                               .help = "stops sending to a destination that keeps failing, for a while"},
};

const struct hk_opt_table hk_policy_table = {
    .name = "policy",
    .where = "policies.NAME",
    .size = sizeof(struct hk_conf_policy),
    .opts = policy_opts,
    .n_opts = HK_POLICY_NOPTS,
    .name_offset = offsetof(struct hk_conf_policy, name),
    .example = "{ preset: standard, max_attempts: 10 }",
    .check = hk_check_policy,
};
