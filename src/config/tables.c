/* SPDX-License-Identifier: Apache-2.0 */
/* The option tables of everything but policies: store, relay, destinations, routes. */
#include "base/parse.h"
#include "config/tables.h"
#include "config/text.h"
#include "run/program.h"

#define AT(type, member) .offset = offsetof(type, member)
#define TIME             .max = HK_DURATION_MAX_MS
#define KEEP(member)                                                                                         \
    AT(struct hk_conf_retention, member), TIME, .word = "never", .word_value = HK_CONFIG_NEVER

static const struct hk_opt command_elem = {
    .type = HK_OPT_STRING, .min = 1, .max = 4096, .check = hk_text_check_printable, .example = "kms-decrypt"};

static const struct hk_opt store_opts[] = {
    {"url", HK_OPT_STRING, HK_OPT_SECRET, AT(struct hk_conf_store, url), .min = 1, .max = 2048,
     .fallback = "sqlite:hikyaku.db", .check = hk_text_check_store_url,
     .help = "sqlite:PATH or postgres://…"},
    {"schema", HK_OPT_STRING, AT(struct hk_conf_store, schema), .min = 1, .max = 63, .fallback = "",
     .otherwise = "the connection's", .example = "outbox", .check = hk_text_check_sql_name,
     .help = "database schema that holds the tables"},
    {"prefix", HK_OPT_STRING, AT(struct hk_conf_store, prefix), .min = 1, .max = 32, .fallback = "",
     .otherwise = "none", .example = "hk_", .check = hk_text_check_sql_name,
     .help = "in front of every table's name"},
    {"password_command", HK_OPT_LIST, HK_OPT_ONE, AT(struct hk_conf_store, password_command),
     .max = HK_PROGRAM_WORDS_MAX, .elem = &command_elem,
     .example = "[/usr/local/bin/db-token, \"hikyaku_relay\"]",
     .help = "a program that prints the password, without a shell, in at most 10 s; run anew for each "
             "connection (docs/postgresql.md)"},
};

static const struct hk_opt_table store_table = {
    .name = "store",
    .where = "store",
    .size = sizeof(struct hk_conf_store),
    .opts = store_opts,
    .n_opts = HK_COUNT(store_opts),
    .shorthand = true,
    .example = "{ url: sqlite:hikyaku.db }",
    .check = hk_check_store,
};

static const struct hk_word history_words[] = {
    {"failures", HK_HISTORY_FAILURES}, {"all", HK_HISTORY_ALL}, {"none", HK_HISTORY_NONE}, {NULL, 0}};

static const struct hk_opt relay_opts[] = {
    {"name", HK_OPT_NAME, HK_OPT_RESTART, AT(struct hk_conf_relay, name), .fallback = "",
     .otherwise = "host name and process id", .example = "relay-1",
     .help = "this relay's name in locked_by, logs and metrics"},
    {"batch", HK_OPT_U32, AT(struct hk_conf_relay, batch), .min = 1, .max = 10000, .fallback = "500",
     .help = "messages read at once"},
    {"batch_bytes", HK_OPT_SIZE, AT(struct hk_conf_relay, batch_bytes), .min = 1024, .max = UINT64_C(1) << 30,
     .fallback = "4MiB", .help = "payload bytes read at once"},
    {"max_payload", HK_OPT_SIZE, AT(struct hk_conf_relay, max_payload_bytes), .min = 1,
     .max = UINT64_C(1) << 30, .fallback = "1MiB", .help = "a larger payload is dead, PAYLOAD_TOO_LARGE"},
    {"concurrency", HK_OPT_U32, AT(struct hk_conf_relay, concurrency), .min = 1, .max = 65536,
     .fallback = "256", .help = "requests in flight, all destinations together"},
    {"max_attempts_ceiling", HK_OPT_U32, AT(struct hk_conf_relay, max_attempts_ceiling), .min = 1,
     .max = 1000000, .fallback = "100",
     .help = "a message's own max_attempts may raise its policy's number up to this; it may lower it freely"},
    {"timeout_ceiling", HK_OPT_DURATION, AT(struct hk_conf_relay, timeout_ceiling_ms), .min = 1000,
     .max = 86400000, .fallback = "30m",
     .help = "a message's own timeout may be longer than its policy's, up to this"},
    {"lease", HK_OPT_DURATION, AT(struct hk_conf_relay, lease_ms), .min = 1000, .max = 3600000,
     .fallback = "30s", .help = "how long a claim holds without renewal"},
    {"history", HK_OPT_ENUM, AT(struct hk_conf_relay, history), .words = history_words,
     .fallback = "failures", .help = "which attempts are recorded"},
};

static const struct hk_opt_table relay_table = {
    .name = "relay",
    .where = "relay",
    .size = sizeof(struct hk_conf_relay),
    .opts = relay_opts,
    .n_opts = HK_COUNT(relay_opts),
    .example = "{ batch: 500 }",
    .check = hk_check_relay,
};

static const struct hk_opt retention_opts[] = {
    {"sent", HK_OPT_DURATION, KEEP(sent_ms), .fallback = "24h",
     .help = "rows of sent messages (without payload)"},
    {"sent_rows", HK_OPT_U64, AT(struct hk_conf_retention, sent_rows), .max = UINT64_C(1000000000000),
     .word = "unlimited", .word_value = HK_CONFIG_NEVER, .fallback = "1000000",
     .help = "keep at most this many rows of sent messages; 0 keeps none"},
    {"discarded", HK_OPT_DURATION, KEEP(discarded_ms), .fallback = "90d", .help = "discarded dead letters"},
    {"resolved", HK_OPT_DURATION, KEEP(resolved_ms), .fallback = "90d", .help = "resolved dead letters"},
    {"cancelled", HK_OPT_DURATION, KEEP(cancelled_ms), .fallback = "90d", .help = "cancelled messages"},
    {"attempts", HK_OPT_DURATION, KEEP(attempts_ms), .fallback = "30d", .help = "records of attempts"},
    {"dead", HK_OPT_DURATION, KEEP(dead_ms), .fallback = "never",
     .help =
         "open dead letters, which nobody has requeued, resolved or discarded: 1d or more, unless purge_open"},
    {"purge_open", HK_OPT_BOOL, AT(struct hk_conf_retention, purge_open), .fallback = "false",
     .help =
         "allow dead below a day, down to 0: the relay may delete open dead letters before anybody sees them"},
    {"audit", HK_OPT_DURATION, KEEP(audit_ms), .fallback = "never",
     .help = "audit rows (who did what): 1d or more"},
    {"alerts", HK_OPT_DURATION, KEEP(alerts_ms), .fallback = "30d",
     .help = "alerts that have ended, and notices"},
};

static const struct hk_opt_table retention_table = {
    .name = "retention",
    .where = "retention",
    .size = sizeof(struct hk_conf_retention),
    .opts = retention_opts,
    .n_opts = HK_COUNT(retention_opts),
    .example = "{ sent: 24h }",
    .check = hk_check_retention,
};

static const struct hk_word admin_tls_words[] = {{"terminated", HK_CONF_ADMIN_TLS_TERMINATED}, {NULL, 0}};

static const struct hk_opt admin_tls_opts[] = {
    {"by", HK_OPT_ENUM, HK_OPT_HIDDEN | HK_OPT_RESTART, AT(struct hk_conf_admin_tls, by),
     .words = admin_tls_words, .example = "{ cert: relay.pem, key: relay.key }",
     .help = "a proxy ends TLS in front of the relay"},
    {"cert", HK_OPT_PATH, HK_OPT_RESTART, AT(struct hk_conf_admin_tls, cert), .min = 1, .max = 4096,
     .otherwise = "none", .example = "relay.pem",
     .help = "certificate and its chain, PEM; read again when the file changes"},
    {"key", HK_OPT_PATH, HK_OPT_RESTART, AT(struct hk_conf_admin_tls, key), .min = 1, .max = 4096,
     .otherwise = "none", .example = "relay.key",
     .help = "the certificate's private key, PEM, without a password"},
    {"client_ca", HK_OPT_PATH, HK_OPT_RESTART, AT(struct hk_conf_admin_tls, client_ca), .min = 1, .max = 4096,
     .otherwise = "clients need no certificate", .example = "clients.pem",
     .help = "certificate authorities, PEM: only clients with a certificate of one of them may connect"},
};

static const struct hk_opt_table admin_tls_table = {
    .name = "tls",
    .where = "admin.tls",
    .size = sizeof(struct hk_conf_admin_tls),
    .opts = admin_tls_opts,
    .n_opts = HK_COUNT(admin_tls_opts),
    .shorthand = true,
    .example = "{ cert: relay.pem, key: relay.key }",
};

static const struct hk_word admin_auth_words[] = {
    {"auto", HK_CONF_ADMIN_AUTH_AUTO}, {"tokens", HK_CONF_ADMIN_AUTH_TOKENS}, {NULL, 0}};
static const struct hk_opt admin_host_elem = {
    .type = HK_OPT_STRING, .min = 1, .max = 253, .check = hk_text_check_host, .example = "relay.example"};
static const struct hk_opt admin_origin_elem = {.type = HK_OPT_STRING,
                                                .min = 1,
                                                .max = 300,
                                                .check = hk_text_check_origin,
                                                .example = "https://dash.example"};
static const struct hk_opt admin_proxy_elem = {.type = HK_OPT_CIDR};

static const struct hk_opt admin_opts[] = {
    {"listen", HK_OPT_STRING, HK_OPT_RESTART, AT(struct hk_conf_admin, listen), .min = 1, .max = 300,
     .fallback = "127.0.0.1:8189", .check = hk_text_check_listen,
     .help =
         "address and port of metrics, probes and the API, or none; port 0: any free one. Another address than "
         "loopback needs tls and auth: tokens"},
    {"health_listen", HK_OPT_STRING, HK_OPT_RESTART, AT(struct hk_conf_admin, health_listen), .min = 1,
     .max = 300, .fallback = "none", .example = "0.0.0.0:8190", .check = hk_text_check_listen,
     .help = "a second address and port, on any address, that serves only /metrics, /livez and /readyz"},
    {"unix", HK_OPT_PATH, HK_OPT_RESTART, AT(struct hk_conf_admin, unix_path), .min = 1, .max = 100,
     .otherwise = "none", .example = "/run/hikyaku/admin.sock",
     .help = "also listen on a socket in the file system; only the relay's user can connect to it"},
    {"tls", HK_OPT_SECTION, HK_OPT_RESTART, AT(struct hk_conf_admin, tls), .sub = &admin_tls_table,
     .otherwise = "none",
     .help = "TLS for listen, 1.2 or later: with a certificate, or terminated by a proxy of trusted_proxies"},
    {"auth", HK_OPT_ENUM, HK_OPT_RESTART, AT(struct hk_conf_admin, auth), .words = admin_auth_words,
     .fallback = "auto",
     .help = "auto: clients on this machine need no token; tokens: every client needs one"},
    {"trusted_proxies", HK_OPT_LIST, HK_OPT_RESTART, AT(struct hk_conf_admin, trusted_proxies), .max = 64,
     .elem = &admin_proxy_elem, .example = "[10.0.0.0/8]",
     .help =
         "with tls: terminated, accept requests only from these proxies and read the client's address from X-Forwarded-For"},
    {"hosts", HK_OPT_LIST, HK_OPT_RESTART, AT(struct hk_conf_admin, hosts), .max = 64,
     .elem = &admin_host_elem, .example = "[relay.example]",
     .help = "host names, beside localhost, that clients may use for this relay"},
    {"cors", HK_OPT_LIST, HK_OPT_RESTART, AT(struct hk_conf_admin, cors), .max = 64,
     .elem = &admin_origin_elem, .example = "[\"https://dash.example\"]",
     .help = "origins whose pages may use the API from a browser"},
    {"workers", HK_OPT_U32, HK_OPT_RESTART, AT(struct hk_conf_admin, workers), .min = 1, .max = 16,
     .fallback = "2",
     .help = "how many operations of the API run at once, each with its own connection to the store"},
};

static const struct hk_opt_table admin_table = {
    .name = "admin",
    .where = "admin",
    .size = sizeof(struct hk_conf_admin),
    .opts = admin_opts,
    .n_opts = HK_COUNT(admin_opts),
    .example = "{ listen: 127.0.0.1:8189 }",
    .check = hk_check_admin,
};

/* ---- logs and traces ---- */

static const struct hk_word log_format_words[] = {
    {"logfmt", HK_CONF_LOGFMT}, {"json", HK_CONF_LOG_JSON}, {NULL, 0}};
static const struct hk_word log_level_words[] = {{"error", HK_CONF_LOG_ERROR},
                                                 {"warn", HK_CONF_LOG_WARN},
                                                 {"info", HK_CONF_LOG_INFO},
                                                 {"debug", HK_CONF_LOG_DEBUG},
                                                 {NULL, 0}};

static const struct hk_opt log_opts[] = {
    {"format", HK_OPT_ENUM, AT(struct hk_conf_log, format), .words = log_format_words, .fallback = "logfmt",
     .help = "format of log lines; HIKYAKU_LOG_FORMAT and --log-format win"},
    {"level", HK_OPT_ENUM, AT(struct hk_conf_log, level), .words = log_level_words, .fallback = "info",
     .help = "the least severe level that is logged; HIKYAKU_LOG_LEVEL and --log-level win"},
};

static const struct hk_opt_table log_table = {
    .name = "log",
    .where = "log",
    .size = sizeof(struct hk_conf_log),
    .opts = log_opts,
    .n_opts = HK_COUNT(log_opts),
    .example = "{ format: json }",
};

static const struct hk_opt telemetry_header_opts[] = {
    {"value", HK_OPT_STRING, HK_OPT_HIDDEN | HK_OPT_SECRET, AT(struct hk_conf_header, value), .max = 8192,
     .check = hk_text_check_header_value, .example = "acme", .help = "the header's value"},
};

static const struct hk_opt_table telemetry_header_table = {
    .name = "telemetry header",
    .where = "telemetry.headers.NAME",
    .size = sizeof(struct hk_conf_header),
    .opts = telemetry_header_opts,
    .n_opts = HK_COUNT(telemetry_header_opts),
    .shorthand = true,
    .header_keys = true,
    .name_offset = offsetof(struct hk_conf_header, name),
    .check = hk_check_header,
};

static const struct hk_word otlp_words[] = {
    {"http/protobuf", HK_CONF_OTLP_PROTOBUF}, {"http/json", HK_CONF_OTLP_JSON}, {NULL, 0}};

static const struct hk_word compression_words[] = {
    {"none", HK_CONF_COMPRESS_NONE}, {"gzip", HK_CONF_COMPRESS_GZIP}, {NULL, 0}};

static const struct hk_opt telemetry_opts[] = {
    {"endpoint", HK_OPT_STRING, AT(struct hk_conf_telemetry, endpoint), .min = 1, .max = 2048, .fallback = "",
     .otherwise = "off", .example = "http://127.0.0.1:4318", .check = hk_text_check_http_url,
     .help =
         "OpenTelemetry collector; /v1/traces and /v1/metrics are added. OTEL_EXPORTER_OTLP_ENDPOINT wins"},
    {"protocol", HK_OPT_ENUM, AT(struct hk_conf_telemetry, protocol), .words = otlp_words,
     .fallback = "http/protobuf", .help = "encoding of OTLP; OTEL_EXPORTER_OTLP_PROTOCOL wins"},
    {"compression", HK_OPT_ENUM, AT(struct hk_conf_telemetry, compression), .words = compression_words,
     .fallback = "none", .help = "compression of requests; OTEL_EXPORTER_OTLP_COMPRESSION wins"},
    {"headers", HK_OPT_MAP, AT(struct hk_conf_telemetry, headers), .max = 32, .sub = &telemetry_header_table,
     .example = "{ X-Scope-OrgID: acme }", .help = "sent to the collector; never shown"},
    {"proxy", HK_OPT_NAME, AT(struct hk_conf_telemetry, proxy), .ref = HK_REF_PROXY,
     .otherwise = "default_proxy", .example = "egress",
     .help = "one of proxies; none: the collector is reached directly"},
    {"sample", HK_OPT_DOUBLE, AT(struct hk_conf_telemetry, sample), .fmin = 0, .fmax = 1, .fallback = "1",
     .help =
         "share of the traces that begin here; the others do as traceparent says. OTEL_TRACES_SAMPLER wins"},
    {"traces", HK_OPT_BOOL, AT(struct hk_conf_telemetry, traces), .fallback = "true",
     .help = "send spans; OTEL_TRACES_EXPORTER=none wins"},
    {"metrics", HK_OPT_BOOL, AT(struct hk_conf_telemetry, metrics), .fallback = "true",
     .help = "send the metrics of /metrics; OTEL_METRICS_EXPORTER=none wins"},
    {"metrics_interval", HK_OPT_DURATION, AT(struct hk_conf_telemetry, metrics_interval_ms), .min = 100,
     .max = 3600000, .fallback = "60s", .help = "how often; OTEL_METRIC_EXPORT_INTERVAL wins"},
};

static const struct hk_opt_table telemetry_table = {
    .name = "telemetry",
    .where = "telemetry",
    .size = sizeof(struct hk_conf_telemetry),
    .opts = telemetry_opts,
    .n_opts = HK_COUNT(telemetry_opts),
    .example = "{ endpoint: http://127.0.0.1:4318 }",
};

/* ---- destinations ---- */

static const struct hk_opt header_opts[] = {
    {"value", HK_OPT_STRING, HK_OPT_HIDDEN | HK_OPT_SECRET, AT(struct hk_conf_header, value), .max = 8192,
     .check = hk_text_check_header_value, .example = "acme", .help = "the header's value"},
};

static const struct hk_opt_table header_table = {
    .name = "header",
    .where = "destinations.NAME.http.headers.NAME",
    .size = sizeof(struct hk_conf_header),
    .opts = header_opts,
    .n_opts = HK_COUNT(header_opts),
    .shorthand = true,
    .header_keys = true,
    .name_offset = offsetof(struct hk_conf_header, name),
    .check = hk_check_header,
};

static const struct hk_opt secret_elem = {
    .type = HK_OPT_STRING, .flags = HK_OPT_SECRET, .min = 1, .max = 1024, .check = hk_text_check_secret};

static const struct hk_opt sign_opts[HK_SIGN_NOPTS] = {
    [HK_SIGN_SECRET_OPT] = {"secret", HK_OPT_STRING, HK_OPT_CHOICE | HK_OPT_SECRET,
                            AT(struct hk_conf_sign, secret), .min = 1, .max = 1024,
                            .example = "\"${BILLING_SECRET}\"", .check = hk_text_check_secret,
                            .help =
                                "whsec_ and the key in base64 (v1), or whsk_ and an Ed25519 key (v1a), or …"},
    [HK_SIGN_SECRETS_OPT] = {"secrets", HK_OPT_LIST, HK_OPT_CHOICE, AT(struct hk_conf_sign, secrets),
                             .min = 1, .max = 8, .elem = &secret_elem,
                             .example = "[\"${NEW_SECRET}\", \"${OLD_SECRET}\"]",
                             .help = "… several while keys are changed: each signs"},
};

static const struct hk_opt_table sign_table = {
    .name = "sign",
    .where = "destinations.NAME.http.sign",
    .size = sizeof(struct hk_conf_sign),
    .opts = sign_opts,
    .n_opts = HK_SIGN_NOPTS,
    .example = "{ secret: \"${BILLING_SECRET}\" }",
};

static const struct hk_opt basic_opts[] = {
    {"user", HK_OPT_STRING, HK_OPT_REQUIRED, AT(struct hk_conf_basic, user), .min = 1, .max = 255,
     .check = hk_text_check_user, .example = "relay", .help = "user name"},
    {"password", HK_OPT_STRING, HK_OPT_REQUIRED | HK_OPT_SECRET, AT(struct hk_conf_basic, password),
     .max = 1024, .check = hk_text_check_printable, .example = "\"${BILLING_PASSWORD}\"", .help = "password"},
};

static const struct hk_opt_table basic_table = {
    .name = "basic",
    .where = "destinations.NAME.http.auth.basic",
    .size = sizeof(struct hk_conf_basic),
    .opts = basic_opts,
    .n_opts = HK_COUNT(basic_opts),
    .example = "{ user: relay, password: \"${BILLING_PASSWORD}\" }",
};

static const struct hk_word oauth_words[] = {
    {"basic", HK_CONF_OAUTH_BASIC}, {"body", HK_CONF_OAUTH_BODY}, {NULL, 0}};

const struct hk_opt hk_oauth_opts[HK_OAUTH_NOPTS] = {
    {"token_url", HK_OPT_STRING, HK_OPT_REQUIRED, AT(struct hk_conf_oauth, token_url), .min = 1, .max = 2048,
     .check = hk_text_check_http_url, .example = "https://login.example/token",
     .help = "where access tokens come from; the destination's allow, proxy and certificates hold for it"},
    {"client_id", HK_OPT_STRING, HK_OPT_REQUIRED, AT(struct hk_conf_oauth, client_id), .min = 1, .max = 512,
     .check = hk_text_check_printable, .example = "relay", .help = "who the relay is there"},
    {"client_secret", HK_OPT_STRING, HK_OPT_REQUIRED | HK_OPT_SECRET, AT(struct hk_conf_oauth, client_secret),
     .min = 1, .max = 1024, .check = hk_text_check_printable, .example = "\"${BILLING_CLIENT_SECRET}\"",
     .help = "its secret"},
    {"scope", HK_OPT_STRING, AT(struct hk_conf_oauth, scope), .min = 1, .max = 1024,
     .check = hk_text_check_printable, .otherwise = "none", .example = "\"hooks:write\"",
     .help = "what is asked for; several are parted by blanks"},
    {"audience", HK_OPT_STRING, AT(struct hk_conf_oauth, audience), .min = 1, .max = 1024,
     .check = hk_text_check_printable, .otherwise = "none", .example = "https://billing.example",
     .help = "for endpoints that want one"},
    {"client_auth", HK_OPT_ENUM, AT(struct hk_conf_oauth, style), .words = oauth_words, .fallback = "basic",
     .help = "how id and secret are sent: HTTP Basic, or in the body"},
};

static const struct hk_opt_table oauth_table = {
    .name = "oauth2",
    .where = "destinations.NAME.http.auth.oauth2",
    .size = sizeof(struct hk_conf_oauth),
    .opts = hk_oauth_opts,
    .n_opts = HK_OAUTH_NOPTS,
    .example =
        "{ token_url: https://login.example/token, client_id: relay, client_secret: \"${BILLING_CLIENT_SECRET}\" }",
};

static const struct hk_opt auth_opts[HK_AUTH_NOPTS] = {
    [HK_AUTH_BASIC_OPT] = {"basic", HK_OPT_SECTION, HK_OPT_CHOICE, AT(struct hk_conf_auth, basic),
                           .sub = &basic_table, .help = "HTTP Basic, or …"},
    [HK_AUTH_BEARER_OPT] = {"bearer", HK_OPT_STRING, HK_OPT_CHOICE | HK_OPT_SECRET,
                            AT(struct hk_conf_auth, bearer), .min = 1, .max = 8192,
                            .check = hk_text_check_printable, .example = "\"${BILLING_TOKEN}\"",
                            .help = "… a bearer token, or …"},
    [HK_AUTH_OAUTH_OPT] = {"oauth2", HK_OPT_SECTION, HK_OPT_CHOICE, AT(struct hk_conf_auth, oauth),
                           .sub = &oauth_table, .help = "… one that the relay fetches (client credentials)"},
};

static const struct hk_opt_table auth_table = {
    .name = "auth",
    .where = "destinations.NAME.http.auth",
    .size = sizeof(struct hk_conf_auth),
    .opts = auth_opts,
    .n_opts = HK_AUTH_NOPTS,
    .example = "{ bearer: \"${BILLING_TOKEN}\" }",
};

static const struct hk_word method_words[] = {
    {"POST", HK_METHOD_POST}, {"PUT", HK_METHOD_PUT}, {"PATCH", HK_METHOD_PATCH}, {NULL, 0}};

static const struct hk_word cloudevents_words[] = {{"none", HK_CLOUDEVENTS_NONE},
                                                   {"binary", HK_CLOUDEVENTS_BINARY},
                                                   {"structured", HK_CLOUDEVENTS_STRUCTURED},
                                                   {NULL, 0}};

static const struct hk_opt pin_elem = {.type = HK_OPT_STRING,
                                       .min = 1,
                                       .max = 64,
                                       .check = hk_text_check_pin,
                                       .example = "sha256//47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="};

static const struct hk_word batch_words[] = {
    {"json", HK_CONF_BATCH_JSON}, {"ndjson", HK_CONF_BATCH_NDJSON}, {NULL, 0}};

static const struct hk_opt batch_opts[] = {
    {"messages", HK_OPT_U32, AT(struct hk_conf_batch, messages), .min = 1, .max = HK_CONF_BATCH_MAX,
     .fallback = "100", .help = "in one request, at the most"},
    {"bytes", HK_OPT_SIZE, AT(struct hk_conf_batch, bytes), .min = 1024, .max = UINT64_C(1) << 30,
     .fallback = "1MiB", .help = "of one request, at the most; a larger message travels alone"},
    {"wait", HK_OPT_DURATION, AT(struct hk_conf_batch, wait_ms), .max = 60000, .fallback = "5ms",
     .help = "for how long a message waits for others while a request is in flight"},
    {"format", HK_OPT_ENUM, AT(struct hk_conf_batch, format), .words = batch_words, .fallback = "json",
     .help = "an array, or one message in each line"},
};

static const struct hk_opt_table batch_table = {
    .name = "batch",
    .where = "destinations.NAME.http.batch",
    .size = sizeof(struct hk_conf_batch),
    .opts = batch_opts,
    .n_opts = HK_COUNT(batch_opts),
    .shorthand = true,
    .example = "{ messages: 100, format: ndjson }",
    .check = hk_check_batch,
};

static const struct hk_opt http_opts[HK_HTTP_NOPTS] = {
    [HK_HTTP_URL_OPT] =
        {"url", HK_OPT_STRING, HK_OPT_REQUIRED, AT(struct hk_conf_http, url), .min = 1, .max = 2048,
         .check = hk_text_check_target, .example = "https://billing.example/hooks",
         .help = "where messages go, perhaps with {event_type}, {message_key} and {destination} behind the "
                 "host; message: each names its own URL (docs/cloud-tasks.md)"},
    [HK_HTTP_METHOD_OPT] = {"method", HK_OPT_ENUM, AT(struct hk_conf_http, method), .words = method_words,
                            .fallback = "POST", .help = "the request's method"},
    [HK_HTTP_HEADERS_OPT] = {"headers", HK_OPT_MAP, AT(struct hk_conf_http, headers), .max = 64,
                             .sub = &header_table, .example = "{ X-Tenant: acme }",
                             .help = "sent with every request; secrets are masked in the history"},
    [HK_HTTP_SIGN_OPT] = {"sign", HK_OPT_SECTION, AT(struct hk_conf_http, sign), .sub = &sign_table,
                          .otherwise = "not signed", .help = "Standard Webhooks signature"},
    [HK_HTTP_AUTH_OPT] = {"auth", HK_OPT_SECTION, AT(struct hk_conf_http, auth), .sub = &auth_table,
                          .otherwise = "none", .help = "the Authorization header"},
    [HK_HTTP_CA_OPT] = {"ca_file", HK_OPT_PATH, AT(struct hk_conf_http, ca_file), .min = 1, .max = 4096,
                        .otherwise = "the system's", .example = "ca.pem",
                        .help = "authorities to trust, PEM"},
    [HK_HTTP_CERT_OPT] = {"cert_file", HK_OPT_PATH, AT(struct hk_conf_http, cert_file), .min = 1, .max = 4096,
                          .otherwise = "none", .example = "client.pem", .help = "client certificate, PEM"},
    [HK_HTTP_KEY_OPT] = {"key_file", HK_OPT_PATH, AT(struct hk_conf_http, key_file), .min = 1, .max = 4096,
                         .otherwise = "none", .example = "client.key", .help = "its key, PEM"},
    [HK_HTTP_CLOUDEVENTS_OPT] =
        {"cloudevents", HK_OPT_ENUM, AT(struct hk_conf_http, cloudevents), .words = cloudevents_words,
         .fallback = "none",
         .help = "CloudEvents 1.0: as headers, or (structured) as JSON around the payload"},
    [HK_HTTP_PIN_OPT] = {"pin", HK_OPT_LIST, HK_OPT_ONE, AT(struct hk_conf_http, pins), .max = 8,
                         .elem = &pin_elem, .otherwise = "any that is trusted",
                         .example = "[\"sha256//47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\"]",
                         .help = "public keys of the server: it must have one of them, and be trusted"},
    [HK_HTTP_SOCKET_OPT] =
        {"socket", HK_OPT_PATH, AT(struct hk_conf_http, socket), .min = 1, .max = 100, .otherwise = "none",
         .example = "/run/app/hooks.sock",
         .help = "a socket in the file system that is connected to in place of the URL's host"},
    [HK_HTTP_COMPRESSION_OPT] = {"compression", HK_OPT_ENUM, AT(struct hk_conf_http, compression),
                                 .words = compression_words, .fallback = "none",
                                 .help = "of bodies of 1 KiB and more; signatures are over what is sent"},
    [HK_HTTP_BATCH_OPT] = {"batch", HK_OPT_SECTION, AT(struct hk_conf_http, batch), .sub = &batch_table,
                           .otherwise = "one request for each message", .example = "100",
                           .help = "many messages in one request (docs/batches.md)"},
};

static const struct hk_opt_table http_table = {
    .name = "http",
    .where = "destinations.NAME.http",
    .size = sizeof(struct hk_conf_http),
    .opts = http_opts,
    .n_opts = HK_HTTP_NOPTS,
    .example = "{ url: https://billing.example/hooks }",
    .check = hk_check_http,
};

static const struct hk_opt null_opts[] = {
    {"latency", HK_OPT_DURATION, AT(struct hk_conf_null, latency_ms), .max = 3600000, .fallback = "0s",
     .help = "how long each confirmation takes"},
};

static const struct hk_opt_table null_table = {
    .name = "null",
    .where = "destinations.NAME.null",
    .size = sizeof(struct hk_conf_null),
    .opts = null_opts,
    .n_opts = HK_COUNT(null_opts),
    .example = "{ latency: 5ms }",
};

static const struct hk_opt limits_opts[HK_LIMITS_NOPTS] = {
    [HK_LIMITS_RATE_OPT] = {"rate", HK_OPT_RATE, AT(struct hk_conf_limits, rate_per_s), .fmin = 0.0001,
                            .fmax = 1000000, .otherwise = "no limit", .example = "100/s",
                            .help = "requests a second, minute or hour"},
    [HK_LIMITS_BURST_OPT] = {"burst", HK_OPT_U32, AT(struct hk_conf_limits, burst), .min = 1, .max = 1000000,
                             .otherwise = "one second's requests", .example = "200",
                             .help = "requests that an idle destination may save up"},
    [HK_LIMITS_CONCURRENCY_OPT] = {"concurrency", HK_OPT_U32, AT(struct hk_conf_limits, concurrency),
                                   .min = 1, .max = 65536,
                                   .otherwise =
                                       "64 (with http.batch: 4 batches), or the relay's if that is less",
                                   .example = "64", .help = "messages in flight"},
    [HK_LIMITS_SHARED_OPT] = {"shared", HK_OPT_BOOL, AT(struct hk_conf_limits, shared), .fallback = "false",
                              .help = "share that concurrency among all relays of the database (PostgreSQL)"},
};

static const struct hk_opt_table limits_table = {
    .name = "limits",
    .where = "destinations.NAME.limits",
    .size = sizeof(struct hk_conf_limits),
    .opts = limits_opts,
    .n_opts = HK_LIMITS_NOPTS,
    .example = "{ rate: 100/s, concurrency: 64 }",
    .check = hk_check_limits,
};

static const struct hk_word order_words[] = {{"none", HK_ORDER_NONE}, {"key", HK_ORDER_KEY}, {NULL, 0}};
static const struct hk_word on_dead_words[] = {
    {"block", HK_ON_DEAD_BLOCK}, {"skip", HK_ON_DEAD_SKIP}, {NULL, 0}};
static const struct hk_opt cidr_elem = {.type = HK_OPT_CIDR};

static const struct hk_opt queue_opts[HK_QUEUE_NOPTS] = {
    [HK_QUEUE_NAME_OPT] = {"name", HK_OPT_STRING, HK_OPT_REQUIRED, AT(struct hk_conf_queue, name), .min = 1,
                           .max = 400, .check = hk_text_check_queue,
                           .example = "projects/shop/locations/asia-northeast1/queues/mail",
                           .help = "what Cloud Tasks calls it"},
    [HK_QUEUE_MAX_ATTEMPTS_OPT] = {"max_attempts", HK_OPT_U64, AT(struct hk_conf_queue, max_attempts),
                                   .min = 1, .max = 1000000, .word = "unlimited", .word_value = 0,
                                   .otherwise = "as the policy", .example = "10",
                                   .help = "the first attempt included"},
    [HK_QUEUE_MAX_RETRY_OPT] =
        {"max_retry_duration", HK_OPT_DURATION, AT(struct hk_conf_queue, max_retry_ms), .min = 1, TIME,
         .word = "unlimited", .word_value = 0, .otherwise = "as the policy", .example = "1h",
         .help = "from the first attempt; a task is dead when this and max_attempts are both spent. "
                 "Without either it is dead after 31 days"},
    [HK_QUEUE_MIN_BACKOFF_OPT] = {"min_backoff", HK_OPT_DURATION, AT(struct hk_conf_queue, min_backoff_ms),
                                  TIME, .otherwise = "as the policy", .example = "1s",
                                  .help = "the first wait"},
    [HK_QUEUE_MAX_BACKOFF_OPT] = {"max_backoff", HK_OPT_DURATION, AT(struct hk_conf_queue, max_backoff_ms),
                                  .min = 1, TIME, .otherwise = "as the policy", .example = "1h",
                                  .help = "the longest wait"},
    [HK_QUEUE_MAX_DOUBLINGS_OPT] = {"max_doublings", HK_OPT_U32, AT(struct hk_conf_queue, max_doublings),
                                    .max = 16, .otherwise = "as the policy", .example = "5",
                                    .help =
                                        "how many times the wait doubles before it grows by a fixed step"},
};

static const struct hk_opt_table queue_table = {
    .name = "queue",
    .where = "destinations.NAME.queue",
    .size = sizeof(struct hk_conf_queue),
    .opts = queue_opts,
    .n_opts = HK_QUEUE_NOPTS,
    .example = "{ name: projects/shop/locations/asia-northeast1/queues/mail, max_attempts: 10 }",
};

static const struct hk_word queue_tokens_words[] = {
    {"refuse", HK_QUEUE_TOKENS_REFUSE}, {"ignore", HK_QUEUE_TOKENS_IGNORE}, {NULL, 0}};

static const struct hk_opt queue_limits_opts[] = {
    {"rate", HK_OPT_RATE, AT(struct hk_conf_queue_limits, rate_per_s), .fmin = 0.0001, .fmax = 500,
     .fallback = "500/s", .help = "tasks that a queue dispatches a second, minute or hour"},
    {"burst", HK_OPT_U32, AT(struct hk_conf_queue_limits, burst), .min = 1, .max = 500,
     .otherwise = "a fifth of the queue's rate, 10 to 100", .example = "50",
     .help = "tasks that go at once when a queue has been idle"},
    {"concurrency", HK_OPT_U32, AT(struct hk_conf_queue_limits, concurrency), .min = 1, .max = 5000,
     .fallback = "1000", .help = "tasks in flight, of all relays of the database together"},
};

static const struct hk_opt_table queue_limits_table = {
    .name = "queue limits",
    .where = "queues.limits",
    .size = sizeof(struct hk_conf_queue_limits),
    .opts = queue_limits_opts,
    .n_opts = HK_COUNT(queue_limits_opts),
    .example = "{ rate: 100/s, concurrency: 50 }",
};

static const struct hk_opt queues_opts[] = {
    {"allow", HK_OPT_LIST, AT(struct hk_conf_queues, allow), .max = 64, .elem = &cidr_elem,
     .otherwise = "public addresses only", .example = "[127.0.0.0/8]",
     .help = "private addresses that tasks may go to"},
    {"policy", HK_OPT_NAME, AT(struct hk_conf_queues, policy), .fallback = "cloud-tasks",
     .ref = HK_REF_POLICY, .help = "of queues that name none; a queue's own retryConfig changes it"},
    {"limits", HK_OPT_SECTION, AT(struct hk_conf_queues, limits), .sub = &queue_limits_table,
     .help = "of queues that are made without rateLimits"},
    {"tokens", HK_OPT_ENUM, AT(struct hk_conf_queues, tokens), .words = queue_tokens_words,
     .fallback = "refuse",
     .help =
         "tasks with an oidcToken or oauthToken, which only Google can make: refuse them, or ignore the token"},
    {"max", HK_OPT_U32, AT(struct hk_conf_queues, max), .min = 1, .max = 20000, .fallback = "1000",
     .help = "how many queues clients may make"},
};

static const struct hk_opt_table queues_table = {
    .name = "queues",
    .where = "queues",
    .size = sizeof(struct hk_conf_queues),
    .opts = queues_opts,
    .n_opts = HK_COUNT(queues_opts),
    .example = "{ allow: [127.0.0.0/8] }",
    .check = hk_check_queues,
};

static const struct hk_opt destination_opts[HK_DEST_NOPTS] = {
    [HK_DEST_HTTP_OPT] = {"http", HK_OPT_SECTION, HK_OPT_CHOICE, AT(struct hk_conf_destination, http),
                          .sub = &http_table, .help = "send as HTTP requests"},
    [HK_DEST_NULL_OPT] = {"null", HK_OPT_SECTION, HK_OPT_CHOICE, AT(struct hk_conf_destination, null),
                          .sub = &null_table,
                          .help =
                              "send nothing, confirm everything: for benches and dry runs; quote the key"},
    [HK_DEST_AMQP_OPT] = {"amqp", HK_OPT_SECTION, HK_OPT_CHOICE, AT(struct hk_conf_destination, amqp),
                          .sub = &hk_amqp_table, .help = "publish to RabbitMQ (docs/rabbitmq.md)"},
    [HK_DEST_NATS_OPT] = {"nats", HK_OPT_SECTION, HK_OPT_CHOICE, AT(struct hk_conf_destination, nats),
                          .sub = &hk_nats_table, .help = "publish to NATS JetStream (docs/nats.md)"},
    [HK_DEST_REDIS_OPT] = {"redis", HK_OPT_SECTION, HK_OPT_CHOICE, AT(struct hk_conf_destination, redis),
                           .sub = &hk_redis_table,
                           .help = "add to streams of Redis or Valkey (docs/redis.md)"},
    [HK_DEST_MQTT_OPT] = {"mqtt", HK_OPT_SECTION, HK_OPT_CHOICE, AT(struct hk_conf_destination, mqtt),
                          .sub = &hk_mqtt_table, .help = "publish by MQTT 5 (docs/mqtt.md)"},
    [HK_DEST_KAFKA_OPT] = {"kafka", HK_OPT_SECTION, HK_OPT_CHOICE, AT(struct hk_conf_destination, kafka),
                           .sub = &hk_kafka_table, .help = "send to a topic of Kafka (docs/kafka.md)"},
    [HK_DEST_SQS_OPT] = {"sqs", HK_OPT_SECTION, HK_OPT_CHOICE, AT(struct hk_conf_destination, sqs),
                         .sub = &hk_sqs_table, .help = "send to a queue of Amazon SQS (docs/sqs.md)"},
    [HK_DEST_SNS_OPT] = {"sns", HK_OPT_SECTION, HK_OPT_CHOICE, AT(struct hk_conf_destination, sns),
                         .sub = &hk_sns_table, .help = "publish to a topic of Amazon SNS (docs/sns.md)"},
    [HK_DEST_EVENTBRIDGE_OPT] = {"eventbridge", HK_OPT_SECTION, HK_OPT_CHOICE,
                                 AT(struct hk_conf_destination, eventbridge), .sub = &hk_eventbridge_table,
                                 .help = "put events on a bus of Amazon EventBridge (docs/eventbridge.md)"},
    [HK_DEST_KINESIS_OPT] = {"kinesis", HK_OPT_SECTION, HK_OPT_CHOICE,
                             AT(struct hk_conf_destination, kinesis), .sub = &hk_kinesis_table,
                             .help = "put records into a stream of Amazon Kinesis (docs/kinesis.md)"},
    [HK_DEST_PUBSUB_OPT] = {"pubsub", HK_OPT_SECTION, HK_OPT_CHOICE, AT(struct hk_conf_destination, pubsub),
                            .sub = &hk_pubsub_table,
                            .help = "publish to a topic of Google Cloud Pub/Sub (docs/pubsub.md)"},
    [HK_DEST_POLICY_OPT] = {"policy", HK_OPT_NAME, AT(struct hk_conf_destination, policy),
                            .ref = HK_REF_POLICY, .otherwise = "default_policy", .example = "standard",
                            .help = "a policy of this file, or a preset"},
    [HK_DEST_LIMITS_OPT] = {"limits", HK_OPT_SECTION, AT(struct hk_conf_destination, limits),
                            .sub = &limits_table, .help = "rate and concurrency limits"},
    [HK_DEST_BREAKER_OPT] = {"breaker", HK_OPT_SECTION, AT(struct hk_conf_destination, breaker_conf),
                             .sub = &hk_breaker_table, .otherwise = "as the policy",
                             .help = "changes the policy's breaker for this destination"},
    [HK_DEST_ORDER_OPT] = {"order", HK_OPT_ENUM, AT(struct hk_conf_destination, order), .words = order_words,
                           .fallback = "none",
                           .help = "key: send messages with the same message_key one after another"},
    [HK_DEST_ON_DEAD_OPT] =
        {"on_dead", HK_OPT_ENUM, AT(struct hk_conf_destination, on_dead), .words = on_dead_words,
         .fallback = "block",
         .help =
             "with order: key: block: later messages of the key wait behind a dead letter; skip: they are sent"},
    [HK_DEST_AUTO_REDRIVE_OPT] =
        {"auto_redrive", HK_OPT_BOOL, AT(struct hk_conf_destination, auto_redrive), .fallback = "false",
         .help = "when its breaker closes, requeue messages that ran out of retries while it was open"},
    [HK_DEST_ALLOW_OPT] = {"allow", HK_OPT_LIST, AT(struct hk_conf_destination, allow), .max = 64,
                           .elem = &cidr_elem, .otherwise = "public addresses only",
                           .example = "[127.0.0.0/8]", .help = "private addresses that requests may go to"},
    [HK_DEST_PROXY_OPT] = {"proxy", HK_OPT_NAME, AT(struct hk_conf_destination, proxy_name),
                           .ref = HK_REF_PROXY, .otherwise = "default_proxy", .example = "egress",
                           .help = "one of proxies, which requests go by; none: they go directly"},
    [HK_DEST_QUEUE_OPT] = {"queue", HK_OPT_SECTION, AT(struct hk_conf_destination, queue),
                           .sub = &queue_table, .otherwise = "it is none",
                           .help = "it is a queue of Cloud Tasks; with url: message (docs/cloud-tasks.md)"},
};

const struct hk_opt_table hk_destination_table = {
    .name = "destination",
    .where = "destinations.NAME",
    .size = sizeof(struct hk_conf_destination),
    .opts = destination_opts,
    .n_opts = HK_DEST_NOPTS,
    .name_offset = offsetof(struct hk_conf_destination, name),
    .example = "{ http: { url: https://billing.example/hooks } }",
    .check = hk_check_destination,
};

static const struct hk_opt definitions_opts[] = {
    {"allow", HK_OPT_LIST, AT(struct hk_conf_definitions, allow), .max = 64, .elem = &cidr_elem,
     .otherwise = "public addresses only", .example = "[10.20.0.0/16]",
     .help = "address ranges that a definition's own allow may list"},
    {"secrets", HK_OPT_PATH, AT(struct hk_conf_definitions, secrets), .min = 1, .max = 4096,
     .otherwise = "no files", .example = "/etc/hikyaku/secrets",
     .help = "the folder whose files definitions may name"},
    {"max", HK_OPT_U32, AT(struct hk_conf_definitions, max), .max = 20000, .fallback = "10000",
     .help = "how many definitions may exist; 0: relays use none"},
};

static const struct hk_opt_table definitions_table = {
    .name = "definitions",
    .where = "definitions",
    .size = sizeof(struct hk_conf_definitions),
    .opts = definitions_opts,
    .n_opts = HK_COUNT(definitions_opts),
    .example = "{ allow: [10.20.0.0/16] }",
};

/* ---- routes, validation, the root ---- */

static const struct hk_opt destination_elem = {
    .type = HK_OPT_NAME, .ref = HK_REF_DESTINATION, .example = "billing"};

static const struct hk_opt route_opts[] = {
    {"event_type", HK_OPT_STRING, HK_OPT_REQUIRED, AT(struct hk_conf_route, event_type), .min = 1, .max = 255,
     .check = hk_text_check_printable, .example = "\"Order*\"", .help = "* stands for any text"},
    {"destination", HK_OPT_LIST, HK_OPT_REQUIRED | HK_OPT_ONE, AT(struct hk_conf_route, destinations),
     .min = 1, .max = 64, .elem = &destination_elem, .example = "billing",
     .help = "where they go; a list sends to each"},
};

static const struct hk_opt_table route_table = {
    .name = "route",
    .where = "routes[]",
    .size = sizeof(struct hk_conf_route),
    .opts = route_opts,
    .n_opts = HK_COUNT(route_opts),
    .example = "{ event_type: \"Order*\", destination: billing }",
    .check = hk_check_route,
};

static const struct hk_opt field_elem = {
    .type = HK_OPT_STRING, .min = 1, .max = 255, .check = hk_text_check_field, .example = "order.id:integer"};

static const struct hk_opt validate_opts[HK_VALIDATE_NOPTS] = {
    [HK_VALIDATE_EVENT_OPT] = {"event_type", HK_OPT_STRING, HK_OPT_REQUIRED,
                               AT(struct hk_conf_validate, event_type), .min = 1, .max = 255,
                               .check = hk_text_check_printable, .example = "OrderCreated",
                               .help = "* stands for any text"},
    [HK_VALIDATE_REQUIRED_OPT] = {"required", HK_OPT_LIST, AT(struct hk_conf_validate, required), .max = 64,
                                  .elem = &field_elem, .example = "[\"orderId:integer\", customer.id]",
                                  .help = "fields that the JSON payload must have: path, or path:type"},
    [HK_VALIDATE_JSON_OPT] = {"json", HK_OPT_BOOL, AT(struct hk_conf_validate, json),
                              .otherwise = "true with required", .example = "true",
                              .help = "the payload must be JSON"},
    [HK_VALIDATE_SIZE_OPT] = {"max_size", HK_OPT_SIZE, AT(struct hk_conf_validate, max_size_bytes), .min = 1,
                              .max = UINT64_C(1) << 30, .otherwise = "relay.max_payload", .example = "64KiB",
                              .help = "the payload may not be larger"},
};

static const struct hk_opt_table validate_table = {
    .name = "validate rule",
    .where = "validate[]",
    .size = sizeof(struct hk_conf_validate),
    .opts = validate_opts,
    .n_opts = HK_VALIDATE_NOPTS,
    .example = "{ event_type: OrderCreated, required: [orderId] }",
    .check = hk_check_validate,
};

static const struct hk_opt path_elem = {
    .type = HK_OPT_STRING, .min = 1, .max = 255, .check = hk_text_check_path, .example = "customer.email"};
static const struct hk_opt header_name_elem = {
    .type = HK_OPT_STRING, .min = 1, .max = 128, .check = hk_text_check_header_name, .example = "x-api-key"};

static const struct hk_opt mask_opts[HK_MASK_NOPTS] = {
    [HK_MASK_EVENT_OPT] = {"event_type", HK_OPT_STRING, AT(struct hk_conf_mask, event_type), .min = 1,
                           .max = 255, .check = hk_text_check_printable, .otherwise = "every type",
                           .example = "\"Order*\"", .help = "* stands for any text"},
    [HK_MASK_PATHS_OPT] = {"paths", HK_OPT_LIST, AT(struct hk_conf_mask, paths), .max = 64,
                           .elem = &path_elem, .example = "[customer.email, \"items[*].card\"]",
                           .help = "values in the payload"},
    [HK_MASK_HEADERS_OPT] = {"headers", HK_OPT_LIST, AT(struct hk_conf_mask, headers), .max = 64,
                             .elem = &header_name_elem, .example = "[x-api-key]",
                             .help = "values of these headers, of requests and answers"},
};

static const struct hk_opt_table mask_table = {
    .name = "mask",
    .where = "masks[]",
    .size = sizeof(struct hk_conf_mask),
    .opts = mask_opts,
    .n_opts = HK_MASK_NOPTS,
    .example = "{ event_type: \"Order*\", paths: [customer.email] }",
    .check = hk_check_mask,
};

/* ---- sealed payloads ---- */

static const struct hk_opt seal_key_opts[] = {
    {"id", HK_OPT_STRING, HK_OPT_REQUIRED, AT(struct hk_conf_seal_key, id), .min = 1,
     .max = HK_KEY_ID_MAX - 1, .check = hk_text_check_key_id, .example = "2026-11",
     .help = "the key's id, stored in every payload that the key sealed; never reuse it for another key"},
    {"file", HK_OPT_PATH, HK_OPT_CHOICE, AT(struct hk_conf_seal_key, file), .min = 1, .max = 4096,
     .example = "/run/keys/hikyaku", .help = "a file with 32 bytes in base64, or …"},
    {"env", HK_OPT_STRING, HK_OPT_CHOICE, AT(struct hk_conf_seal_key, env), .min = 1, .max = 255,
     .check = hk_text_check_printable, .example = "HIKYAKU_KEY", .help = "… the name of a variable, or …"},
    {"credential", HK_OPT_NAME, HK_OPT_CHOICE, AT(struct hk_conf_seal_key, credential), .min = 1, .max = 255,
     .example = "hikyaku-key", .help = "… of a credential that systemd gives the relay, or …"},
    {"command", HK_OPT_LIST, HK_OPT_CHOICE | HK_OPT_ONE, AT(struct hk_conf_seal_key, command), .min = 1,
     .max = HK_PROGRAM_WORDS_MAX, .elem = &command_elem, .example = "[/usr/local/bin/kms-decrypt, hikyaku]",
     .help =
         "… a program that prints it, without a shell, in at most 10 s; a relay runs it at its start and at each reload"},
};

static const struct hk_opt_table seal_key_table = {
    .name = "key",
    .where = "seal.keys[]",
    .size = sizeof(struct hk_conf_seal_key),
    .opts = seal_key_opts,
    .n_opts = HK_COUNT(seal_key_opts),
    .example = "{ id: \"2026-11\", file: /run/keys/hikyaku }",
};

static const struct hk_word seal_words[] = {
    {"off", HK_SEAL_OFF}, {"rest", HK_SEAL_REST}, {"end", HK_SEAL_END}, {NULL, 0}};

static const struct hk_opt seal_opts[HK_SEAL_NOPTS] = {
    [HK_SEAL_MODE_OPT] =
        {"mode", HK_OPT_ENUM, AT(struct hk_conf_seal, mode), .words = seal_words, .fallback = "off",
         .help =
             "rest: relays seal payloads that they write; end: hikyaku enqueue seals payloads. Relays open sealed payloads in every mode"},
    [HK_SEAL_STORE_OPT] =
        {"store", HK_OPT_STRING, AT(struct hk_conf_seal, store), .min = 1, .max = HK_SEAL_STORE_MAX - 1,
         .check = hk_text_check_key_id, .fallback = "hikyaku", .example = "shop",
         .help = "a name for the outbox; payloads that were sealed for another name cannot be opened here"},
    [HK_SEAL_KEYS_OPT] = {"keys", HK_OPT_LIST, AT(struct hk_conf_seal, keys), .max = HK_KEYS_MAX,
                          .sub = &seal_key_table, .example = "[{ id: \"2026-11\", file: /run/keys/hikyaku }]",
                          .help = "the newest first: it seals, and all of them open"},
};

static const struct hk_opt_table seal_table = {
    .name = "seal",
    .where = "seal",
    .size = sizeof(struct hk_conf_seal),
    .opts = seal_opts,
    .n_opts = HK_SEAL_NOPTS,
    .example = "{ mode: end, keys: [{ id: \"2026-11\", file: /run/keys/hikyaku }] }",
    .check = hk_check_seal,
};

static const struct hk_opt root_opts[] = {
    {"store", HK_OPT_SECTION, HK_OPT_RESTART, AT(struct hk_config, store), .sub = &store_table,
     .help = "where the outbox is"},
    {"relay", HK_OPT_SECTION, AT(struct hk_config, relay), .sub = &relay_table,
     .help = "how this relay process works"},
    {"retention", HK_OPT_SECTION, AT(struct hk_config, retention), .sub = &retention_table,
     .help = "how long finished messages and records are kept"},
    {"default_policy", HK_OPT_NAME, AT(struct hk_config, default_policy), .fallback = "standard",
     .ref = HK_REF_POLICY, .help = "the policy of destinations that name none"},
    {"admin", HK_OPT_SECTION, AT(struct hk_config, admin), .sub = &admin_table,
     .help = "metrics, probes and the API"},
    {"log", HK_OPT_SECTION, AT(struct hk_config, log), .sub = &log_table,
     .help = "log lines on standard error"},
    {"telemetry", HK_OPT_SECTION, HK_OPT_RESTART, AT(struct hk_config, telemetry), .sub = &telemetry_table,
     .help = "traces to an OpenTelemetry collector"},
    {"policies", HK_OPT_MAP, AT(struct hk_config, policy_conf), .max = 1000, .sub = &hk_policy_table,
     .example = "{ orders: { max_attempts: 10 } }",
     .help = "retry policies by name; a preset's name replaces it"},
    {"destinations", HK_OPT_MAP, AT(struct hk_config, destinations), .max = 10000,
     .sub = &hk_destination_table, .example = "{ billing: { http: { url: https://billing.example/hooks } } }",
     .help = "where messages go, by name"},
    {"proxies", HK_OPT_MAP, AT(struct hk_config, proxies), .max = 100, .sub = &hk_proxy_table,
     .example = "{ egress: { url: http://proxy.internal:3128 } }",
     .help = "how requests leave the network, by name (docs/security.md)"},
    {"default_proxy", HK_OPT_NAME, AT(struct hk_config, default_proxy), .ref = HK_REF_PROXY,
     .otherwise = "none", .example = "egress",
     .help = "of destinations, channels and telemetry that name none"},
    {"queues", HK_OPT_SECTION, AT(struct hk_config, queues), .sub = &queues_table, .otherwise = "off",
     .help = "clients of Google's Cloud Tasks may make queues and tasks (docs/cloud-tasks.md)"},
    {"definitions", HK_OPT_SECTION, AT(struct hk_config, definitions), .sub = &definitions_table,
     .help = "limits for destinations that are created at run time"},
    {"routes", HK_OPT_LIST, AT(struct hk_config, routes), .max = 1000, .sub = &route_table,
     .example = "[{ event_type: \"Order*\", destination: billing }]",
     .help = "destinations of messages that name none; the first match wins"},
    {"validate", HK_OPT_LIST, AT(struct hk_config, validate), .max = 1000, .sub = &validate_table,
     .example = "[{ event_type: OrderCreated, required: [orderId] }]",
     .help = "checks before anything is sent; a message that fails is dead"},
    {"masks", HK_OPT_LIST, AT(struct hk_config, masks), .max = 1000, .sub = &mask_table,
     .example = "[{ event_type: \"Order*\", paths: [customer.email] }]",
     .help = "personal data: shown as *** wherever messages are shown, logged or exported"},
    {"seal", HK_OPT_SECTION, AT(struct hk_config, seal), .sub = &seal_table,
     .help = "encrypt payloads with keys outside the store (docs/personal-data.md)"},
    {"channels", HK_OPT_MAP, AT(struct hk_config, channels), .max = 32, .sub = &hk_channel_table,
     .example = "{ ops: { slack: { url: \"${SLACK_URL}\" } } }",
     .help = "ways to send alert notices to people, by name"},
    {"alerts", HK_OPT_SECTION, AT(struct hk_config, alerts), .sub = &hk_alerts_table,
     .help = "which conditions raise alerts, and who gets notices"},
};

const struct hk_opt_table hk_root_table = {
    .name = "configuration",
    .where = "",
    .size = sizeof(struct hk_config),
    .opts = root_opts,
    .n_opts = HK_COUNT(root_opts),
    .example = "{ store: sqlite:hikyaku.db }",
    .check = hk_check_root,
};

const struct hk_opt_table *hk_schema_table(size_t i)
{
    static const struct hk_opt_table *const tables[] = {
        &hk_root_table,      &store_table,          &relay_table,
        &retention_table,    &admin_table,          &admin_tls_table,
        &hk_policy_table,    &hk_backoff_table,     &hk_jitter_table,
        &hk_classes_table,   &hk_class_table,       &hk_rule_table,
        &hk_breaker_table,   &hk_destination_table, &http_table,
        &header_table,       &sign_table,           &auth_table,
        &basic_table,        &hk_amqp_table,        &hk_nats_table,
        &hk_redis_table,     &hk_mqtt_table,        &hk_kafka_table,
        &hk_sasl_table,      &hk_sasl_oauth_table,  &hk_sqs_table,
        &hk_sns_table,       &hk_eventbridge_table, &hk_kinesis_table,
        &hk_pubsub_table,    &null_table,           &limits_table,
        &route_table,        &validate_table,       &mask_table,
        &log_table,          &telemetry_table,      &telemetry_header_table,
        &hk_channel_table,   &hk_slack_table,       &hk_email_table,
        &hk_hook_table,      &hk_pagerduty_table,   &hk_exec_table,
        &hk_alerts_table,    &hk_quiet_table,       &hk_alert_rule_table,
        &queue_table,        &queues_table,         &definitions_table,
        &seal_table,         &seal_key_table,       &hk_proxy_table,
        &queue_limits_table, &oauth_table,          &batch_table,
    };
    return i < HK_COUNT(tables) ? tables[i] : NULL;
}
